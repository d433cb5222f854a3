"""The AI Prediction Market: the policy bets on the answer of a problem whose clues come one by one."""
