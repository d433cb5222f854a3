"""The stage manager: advances the coordinator's stage, or round, when a period is over.

Nothing is remembered here. When the running stage began is read from the chain, and so is the time, so a manager that
is started again goes on where the last one was. Two managers never advance twice for one period: both act for the
same account, and each takes the account's next nonce *before* it looks whether the period is over. Whoever is second
then either sees the new stage or signs with a nonce that is used up, and the chain refuses that.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from web3.contract import Contract
from web3.types import FilterParams

from codezero.devchain.client import ChainClient, Superseded, read
from codezero.errors import ChainError
from codezero.runtime.console import Console

MAX_PAUSE_S = 5.0
"""Between two looks at the chain; a manager that is stopped in between has nothing to finish."""
WINDOW_BLOCKS = 1000
"""Searched at once for the last advance, from the newest block backwards; public servers allow no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """What the chain says, read in this order."""

    nonce: int
    round: int
    stage: int
    began_s: int
    """When the running stage began, in the chain's time."""
    now_s: int

    def left_s(self, every_s: float) -> float:
        """Until the period is over; 0 or less when it is."""
        return self.began_s + every_s - self.now_s


def look(client: ChainClient, contract: Contract) -> Clock:
    """Raises ChainError."""
    nonce = client.next_nonce()
    round_, stage = read(client, contract, "currentRound()"), read(client, contract, "currentStage()")
    with client.asking():
        began = client.web3.eth.get_block(_block_of_last_advance(client, contract))["timestamp"]
        now = client.web3.eth.get_block("pending")["timestamp"]
    return Clock(nonce=nonce, round=round_, stage=stage, began_s=began, now_s=now)


def _block_of_last_advance(client: ChainClient, contract: Contract) -> int:
    """The block in which the running stage began; for the first one that of the deployment. Raises ChainError."""
    advanced, deployed = (contract.events[name]().topic for name in ("StageAdvanced", "RoleGranted"))
    first_grant: int | None = None
    last: int = client.web3.eth.block_number
    while last >= 0:
        first = max(0, last - WINDOW_BLOCKS + 1)
        wanted: FilterParams = {
            "address": contract.address,
            "fromBlock": first,
            "toBlock": last,
            "topics": [[advanced, deployed]],
        }
        logs = client.web3.eth.get_logs(wanted)
        if advances := [log["blockNumber"] for log in logs if log["topics"][0].to_0x_hex() == advanced]:
            return advances[-1]
        first_grant = logs[0]["blockNumber"] if logs else first_grant
        last = first - 1
    if first_grant is None:
        raise ChainError(f"{client.rpc_url} no longer has the events of {contract.address}: it keeps too few blocks")
    return first_grant


def advance_if_due(client: ChainClient, contract: Contract, every_s: float) -> tuple[bool, float]:
    """Whether this call has advanced the stage, and the seconds until it will be due. Raises ChainError."""
    clock = look(client, contract)
    if clock.left_s(every_s) > 0:
        return False, clock.left_s(every_s)
    try:
        client.transact(contract, "updateStageAndRound()", nonce=clock.nonce)
    except Superseded:
        return False, 0.0
    return True, every_s


def run(client: ChainClient, contract: Contract, every_s: float, asked: threading.Event, console: Console) -> None:
    """Advances the stage every `every_s` seconds until asked to stop. A chain that cannot be reached is waited for.

    Raises ChainError: this account may not advance it, or the chain cannot be reached at the start.
    """
    role = read(client, contract, "STAGE_MANAGER_ROLE()")
    if not read(client, contract, "hasRole(bytes32,address)", role, client.account.address):
        raise ChainError(f"{client.account.address} is no stage manager of {contract.address}: use the folder it owns")
    began = look(client, contract)
    console.line(f"round {began.round}, stage {began.stage}; advances every {every_s:g} s")
    trouble = ""
    while not asked.is_set():
        try:
            has_advanced, left_s = advance_if_due(client, contract, every_s)
            if has_advanced:
                round_, stage = read(client, contract, "currentRound()"), read(client, contract, "currentStage()")
                console.line(f"{time.strftime('%H:%M:%S')} round {round_}, stage {stage}")
            if trouble:
                console.line("the chain answers again")
            trouble = ""
        except ChainError as error:
            if str(error) != trouble:
                console.line(f"warning: {error}")
            trouble, left_s = str(error), MAX_PAUSE_S
        asked.wait(min(max(left_s, 0.2), MAX_PAUSE_S))
