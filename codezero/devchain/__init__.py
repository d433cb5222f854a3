"""A chain of one's own: anvil or a small server on py-evm, and what its owner does with the contract on it."""
