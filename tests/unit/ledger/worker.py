"""A node's submissions in a process of their own, to be killed or run at the same time as others: see
test_delivery_chain. Arguments: URL, contract, key in hex, peer id, outbox, number of rounds."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import codezero.ledger
from codezero.ledger.account import Account
from codezero.ledger.coordinator import WalletWriter
from codezero.ledger.delivery import Delivery
from codezero.ledger.jsonrpc import JsonRpc
from codezero.types import RoundId
from tests.chain import Deployed

ROOM = str(Path(codezero.ledger.__file__).parent)


class Remote:
    """What `Deployed` needs of a chain."""

    def __init__(self, url):
        self.transport = JsonRpc(url)


def submit_all(url, contract, key, peer_id, path, num_rounds):
    """One reward of 3 and one vote a round, until the chain has all of them. Doing it again changes nothing."""
    deployed = Deployed(Remote(url), contract)
    outbox = deployed.outbox(Path(path), peer_id)
    writer = WalletWriter(deployed.contract, Account(bytes.fromhex(key), deployed.rpc()))
    deliver = Delivery(outbox, deployed.coordinator, writer, peer_id).deliver
    for number in range(num_rounds):
        outbox.credit(RoundId(number=number), 3.0, [peer_id])
        outbox.fold()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        view = deployed.coordinator.view(peer_id, writer.address)
        if view.owner is None:
            outbox.ensure_registration()
        deliver(view)
        if view.owner is not None and not outbox.open_items():
            return
    raise TimeoutError(f"still open: {outbox.open_items()}")


def die_at(line, counted):
    """Kills this process at that line of the ledger's code, counted as they run; `counted` holds how far it came."""

    def local(frame, event, _):
        if event == "line":
            counted[0] += 1
            if counted[0] == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return local

    def trace(frame, *_):
        return local if frame.f_code.co_filename.startswith(ROOM) else None

    sys.settrace(trace)


def run_killed(num_kills, seed, url, contract, key, peer_id, path, num_rounds):
    """Children of this process do it, each of which is killed at a random line; prints how many died."""
    draw, killed, part = random.Random(seed), 0, 0
    most = 3000
    while killed < num_kills:
        part += 1
        while True:
            child = os.fork()
            if child == 0:
                die_at(draw.randrange(1, most) if killed < num_kills else 0, counted := [0])
                try:
                    submit_all(url, contract, key, f"{peer_id}{part}", f"{path}{part}", num_rounds)
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(1)
                print(f"{counted[0]} lines", file=sys.stderr, flush=True)
                os._exit(0)
            draw.random()  # the next child draws another line
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                assert status == 0
                break
            killed += 1
    print(killed, part, flush=True)


if __name__ == "__main__":
    *place, rounds = sys.argv[-6:]
    if sys.argv[1] == "killed":
        run_killed(int(sys.argv[2]), int(sys.argv[3]), *place, int(rounds))
    else:
        submit_all(*place, int(rounds))
