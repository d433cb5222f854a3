"""Proposing: writing problems with unit tests, and checking what was written, by this node or by a peer."""
