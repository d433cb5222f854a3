"""The AI Prediction Market, in which the policy bets on the answer of a problem whose clues come one by one."""
