"""The judge service of the network: a question a round, and the clues of the prediction market. Not the evaluator."""
