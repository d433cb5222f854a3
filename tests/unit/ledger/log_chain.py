"""A chain as far as its logs go: blocks of a coordinator's events, answered as an RPC does, and changed at will."""

import hashlib

from eth_abi import encode

from codezero.ledger.events import REGISTERED, REWARD, TOTAL, VOTE, topics
from codezero.ledger.jsonrpc import RpcRefusal

ADDRESS = "0x" + "C0" * 20
CHAIN_ID = 7
ACCOUNT = "0x" + "00" * 12 + "aa" * 20
_TOPICS = {event: topic for topic, event in topics().items()}


def registered(peer):
    return log(REGISTERED, [ACCOUNT], encode(["string"], [peer]))


def rewarded(peer, number, points, total):
    return [
        log(REWARD, [ACCOUNT, word(number), word(0)], encode(["int256", "string"], [points, peer])),
        log(TOTAL, [ACCOUNT], encode(["string", "int256"], [peer, total])),
    ]


def voted(peer, number, *winners):
    return log(VOTE, [ACCOUNT, word(number)], encode(["string", "string[]"], [peer, winners]))


def log(event, indexed, data):
    return {"address": ADDRESS, "topics": [_TOPICS[event], *indexed], "data": "0x" + data.hex()}


def word(number):
    return f"0x{number:064x}"


class LogChain:
    """What `Rpc` asks of `JsonRpc`."""

    place = "the RPC at test"

    def __init__(self, *blocks, most_blocks=None, most_logs=None):
        """A block is a list of logs. `most_blocks` and `most_logs`: what it gives at once."""
        self.blocks, self.most_blocks, self.most_logs = list(blocks), most_blocks, most_logs
        self.salt = ""
        """Of the hashes of blocks that are added."""
        self.salts = [""] * len(blocks)
        self.asked = []
        """Ranges of blocks."""
        self.answers = {}
        """By method: a function that makes another answer of the right one."""

    def add(self, *blocks):
        self.blocks += blocks
        self.salts += [self.salt] * len(blocks)

    def cut(self, count):
        """The last blocks are gone, and those that come are others."""
        del self.blocks[-count:], self.salts[-count:]
        self.salt += "x"

    def ask(self, requests, *, repeat=True):
        return [self._answer(method, params) for method, params in requests]

    def _answer(self, method, params):
        right = getattr(self, method)(*params)
        return self.answers[method](right) if method in self.answers else right

    def eth_chainId(self):
        return hex(CHAIN_ID)

    def eth_getCode(self, address, block):
        return "0x01"

    def eth_blockNumber(self):
        return hex(len(self.blocks) - 1)

    def eth_getBlockByNumber(self, number, whole):
        at = int(number, 16)
        if at >= len(self.blocks):
            return None
        return {"number": number, "hash": "0x" + hashlib.sha256(f"{at} {self.salts[at]}".encode()).hexdigest()}

    def eth_getLogs(self, wanted):
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        assert wanted["address"].lower() == ADDRESS.lower()
        assert wanted["topics"] == [list(topics())]
        self.asked.append((first, last))
        if self.most_blocks is not None and last - first + 1 > self.most_blocks:
            return RpcRefusal(code=-32000, message=f"block range is too wide, at most {self.most_blocks}")
        found = [
            log | {"blockNumber": hex(number), "logIndex": hex(index)}
            for number in range(first, last + 1)
            for index, log in enumerate(self.blocks[number])
        ]
        if self.most_logs is not None and len(found) > self.most_logs:
            return RpcRefusal(code=-32005, message="query returned more than 10000 results")
        return found
