"""A node's submissions in a process of their own, to be killed or run at the same time as others: see
test_delivery_processes. Arguments: URL, contract, key in hex, peer id, outbox, number of rounds."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import codezero.ledger
from codezero.ledger import delivery
from codezero.ledger.account import Account
from codezero.ledger.coordinator import CoordinatorWriter
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.submissions import Submissions
from codezero.types import RoundId
from tests.chain import Deployed

ROOM = str(Path(codezero.ledger.__file__).parent)


class Remote:
    """What `Deployed` needs of a chain."""

    def __init__(self, url):
        self.transport = JsonRpc(url)


def submit_all(url, address, key, peer_id, path, num_rounds):
    """One reward of 3 and one vote a round, until the chain has all of them. Doing it again changes nothing."""
    deployed = Deployed(Remote(url), address)
    outbox = deployed.outbox(Path(path), peer_id)
    writer = CoordinatorWriter(deployed.contract, Account(bytes.fromhex(key), deployed.rpc()))
    deliver = Submissions(outbox, deployed.coordinator, writer).deliver
    for number in range(num_rounds):
        outbox.credit(RoundId(number=number), 3.0, [peer_id])
        outbox.fold()
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        view = deployed.coordinator.view(peer_id, writer.address)
        if view.owner is None:
            outbox.ensure_registration()
        deliver(view)
        if view.owner is not None and not outbox.open_items():
            return
        time.sleep(0.02)
    raise TimeoutError(f"still open: {outbox.open_items()}")


def die_while_sending(line):
    """Kills this process at that line of the ledger's code, counting those that run from taking a nonce until the RPC
    has the transaction."""
    send_once, counted = Account._send_once, 0

    def local(frame, event, _):
        nonlocal counted
        counted += event == "line"
        if counted == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return local

    def trace(frame, *_):
        return local if frame.f_code.co_filename.startswith(ROOM) else None

    def traced(*arguments):
        sys.settrace(trace)
        try:
            return send_once(*arguments)
        finally:
            sys.settrace(None)

    Account._send_once = traced


def die_after(seconds):
    """Ends this process after a time, wherever it is by then, as abruptly as SIGKILL would."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def run_killed(num_kills, seed, url, address, key, peer_id, path, num_rounds):
    """Children of this process do it, most of which are killed; prints how many, and in how many outboxes."""
    delivery.LOOK_AGAIN_S = 0.0
    draw, killed, part, died = random.Random(seed), 0, 1, False
    while killed < num_kills or died:
        line, seconds = draw.randrange(1, 700), draw.uniform(0.0, 2.0)
        sending = draw.random() < 0.6
        child = os.fork()
        if child == 0:
            try:
                if killed < num_kills:
                    die_while_sending(line) if sending else die_after(seconds)
                submit_all(url, address, key, f"{peer_id}{part}", f"{path}{part}", num_rounds)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        died = os.WIFSIGNALED(status)
        assert died or status == 0
        killed += died
        part += not died
    print(killed, part - 1, flush=True)


if __name__ == "__main__":
    *place, rounds = sys.argv[-6:]
    if sys.argv[1] == "killed":
        run_killed(int(sys.argv[2]), int(sys.argv[3]), *place, int(rounds))
    else:
        delivery.LOOK_AGAIN_S = 0.1
        submit_all(*place, int(rounds))
