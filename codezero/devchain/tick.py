"""The stage manager: it advances the coordinator's stage, or round, when a period is over.

It keeps no state: the start of the running stage and the time are read from the chain, so a manager that is started
again continues where the last one stopped. Two managers never advance twice for one period: both act as the same
account, and each reads the account's next nonce *before* it checks whether the period is over. The second one then
either sees the new stage or signs with a used nonce, which the chain refuses.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from codezero.devchain.client import ChainClient
from codezero.errors import ChainError, LedgerError
from codezero.ledger.contract import Contract
from codezero.ledger.events import logs, topic
from codezero.ledger.faults import NonceRace
from codezero.ledger.jsonrpc import RpcRefusal
from codezero.runtime.console import Console

MAX_PAUSE_S = 5.0
"""Longest pause in seconds between two checks; a manager that is stopped meanwhile has nothing to finish."""
WINDOW_BLOCKS = 1000
"""Blocks in one search for the last advance, from the newest block backwards; public servers allow no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The chain's state; the fields are read in this order."""

    nonce: int
    round: int
    stage: int
    began_s: int
    """The chain's time at which the running stage began."""
    now_s: int

    def left_s(self, every_s: float) -> float:
        """Returns the seconds until the period is over; 0 or less if it is."""
        return self.began_s + every_s - self.now_s


def look(client: ChainClient, contract: Contract) -> Clock:
    """Reads the chain's state. Raises ChainError, LedgerError."""
    nonce = client.next_nonce()
    round_, stage = client.read(contract, "currentRound()"), client.read(contract, "currentStage()")
    began_s = client.time_of(_block_of_last_advance(client, contract))
    return Clock(nonce=nonce, round=round_, stage=stage, began_s=began_s, now_s=client.time_of("pending"))


def _block_of_last_advance(client: ChainClient, contract: Contract) -> str:
    """Returns the number in hex of the block in which the running stage began, for the first that of the deployment.

    Raises ChainError: the server no longer has it; LedgerError.
    """
    advanced, deployed = topic("StageAdvanced(uint256,uint256)"), topic("RoleGranted(bytes32,address,address)")
    first_grant: str | None = None
    (newest,) = client.rpc.ask([("eth_blockNumber", [])])
    last = client.rpc.quantity(newest, "eth_blockNumber")
    while last >= 0:
        first = max(0, last - WINDOW_BLOCKS + 1)
        wanted = {"address": contract.address, "fromBlock": hex(first), "toBlock": hex(last)}
        (answer,) = client.rpc.ask([("eth_getLogs", [wanted | {"topics": [[advanced, deployed]]}])])
        if isinstance(answer, RpcRefusal):
            raise client.rpc.fault(answer, "eth_getLogs")
        found = logs(answer)
        if advances := [log.block_number for log in found if log.topics[0].lower() == advanced]:
            return advances[-1]
        first_grant = found[0].block_number if found else first_grant
        last = first - 1
    if first_grant is None:
        raise ChainError(f"{client.rpc_url} no longer has the events of {contract.address}: it keeps too few blocks")
    return first_grant


def advance_if_due(client: ChainClient, contract: Contract, every_s: float) -> tuple[bool, float]:
    """Advances the stage if it is due. Returns True if it did, and the seconds until it is due. Raises ChainError,
    LedgerError."""
    clock = look(client, contract)
    if clock.left_s(every_s) > 0:
        return False, clock.left_s(every_s)
    try:
        client.transact(contract, "updateStageAndRound()", nonce=clock.nonce)
    except NonceRace:
        return False, 0.0
    return True, every_s


def run(client: ChainClient, contract: Contract, every_s: float, asked: threading.Event, console: Console) -> None:
    """Advances the stage every `every_s` seconds until `asked` is set; waits for a chain that cannot be reached.

    Raises ChainError: this account may not advance the stage; LedgerError: the chain cannot be reached at the start.
    """
    role = client.read(contract, "STAGE_MANAGER_ROLE()")
    if not client.read(contract, "hasRole(bytes32,address)", role, client.address):
        raise ChainError(f"{client.address} is not a stage manager of {contract.address}: use the folder it owns")
    began = look(client, contract)
    console.line(f"round {began.round}, stage {began.stage}; advances every {every_s:g} s")
    trouble = ""
    while not asked.is_set():
        try:
            has_advanced, left_s = advance_if_due(client, contract, every_s)
            if has_advanced:
                round_, stage = client.read(contract, "currentRound()"), client.read(contract, "currentStage()")
                console.line(f"{time.strftime('%H:%M:%S')} round {round_}, stage {stage}")
            if trouble:
                console.line("the chain answers again")
            trouble = ""
        except (ChainError, LedgerError) as error:
            if str(error) != trouble:
                console.line(f"warning: {error}")
            trouble, left_s = str(error), MAX_PAUSE_S
        asked.wait(min(max(left_s, 0.2), MAX_PAUSE_S))
