"""Records kept by many nodes for each other: a Kademlia DHT over libp2p. Knows no rollouts."""
