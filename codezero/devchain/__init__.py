"""A private chain on anvil, and the commands of the owner of the contract on it."""
