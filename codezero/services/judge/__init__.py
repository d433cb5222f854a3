"""The network's judge service: it asks a question in each round and gives the market's clues. Not the evaluator."""
