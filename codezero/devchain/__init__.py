"""A private chain: anvil or a small server on py-evm, and the commands of the owner of the contract on it."""
