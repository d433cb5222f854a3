"""A Kademlia DHT over libp2p, in which nodes keep records for each other, whatever these contain."""
