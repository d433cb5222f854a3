"""Ports for servers that tests start."""

import random
import socket


def free_port(count=1):
    """Returns the first of `count` TCP ports in a row on which nothing listens. They lie below those that the kernel
    gives to connections, so that another test is not given one before its server has started, or between two starts."""
    while True:
        port = random.randrange(20_000, 32_000 - count)
        try:
            for number in range(port, port + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port
