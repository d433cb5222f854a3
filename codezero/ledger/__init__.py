"""The record of rounds, rewards and votes."""
