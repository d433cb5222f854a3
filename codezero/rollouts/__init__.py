"""The rollout service: a server samples for a trainer on another machine, which sends it the weights."""
