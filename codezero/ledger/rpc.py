"""Reads and writes a chain through an RPC: answers have types, and each error has its own class (see `faults`).

All that a server may send is checked here. The first request, and each one after a fault, also asks for the chain's id
and the code of the contracts in use, and no other answer is used unless these are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codezero.errors import LedgerError
from codezero.ledger.contract import Contract, ContractCall, checksummed, error_name
from codezero.ledger.faults import (
    AlreadyKnown,
    InsufficientFunds,
    NoContract,
    NonceRace,
    Reverted,
    RpcBadReply,
    RpcFault,
    RpcRefused,
    WrongChain,
)
from codezero.ledger.http import shown
from codezero.ledger.jsonrpc import Answer, JsonRpc, Request, RpcRefusal

LATEST, PENDING = "latest", "pending"
# Parts of error messages: geth, reth and anvil word these differently, with the same code (-32000).
_NONCE_RACE = (
    "nonce too low",
    "nonce is too low",
    "nonce too high",
    "invalid nonce",
    "invalid transaction nonce",
    "replacement transaction underpriced",
    "already used nonce",
)
_ALREADY_KNOWN = ("already known", "already imported", "known transaction", "already exists")
_NO_FUNDS = ("insufficient funds", "insufficient balance", "cannot afford", "sender does not have enough")
_WRONG_CHAIN = ("invalid chain id", "chain id mismatch", "invalid chainid", "incompatible eip155")


class Rpc:
    """A client of one chain."""

    def __init__(
        self,
        transport: JsonRpc,
        *,
        chain_id: int,
        contracts: Sequence[str] = (),
        contract_setting: str = "ledger.contract_address",
    ) -> None:
        """`contracts` are addresses that must have code; messages name `contract_setting`, where they come from."""
        self._transport, self.chain_id = transport, chain_id
        self._contracts, self._contract_setting = tuple(contracts), contract_setting
        self._verified = False

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Returns the answers in order, refusals included. Raises RpcFault, WrongChain, NoContract."""
        checks: list[Request] = []
        if not self._verified:
            checks = [("eth_chainId", []), *(("eth_getCode", [address, LATEST]) for address in self._contracts)]
        try:
            answers = self._transport.ask([*checks, *requests])
            if checks:
                self._verify(answers[: len(checks)])
                self._verified = True
        except RpcFault:
            self._verified = False
            raise
        return answers[len(checks) :]

    def read(self, calls: Sequence[ContractCall]) -> list[tuple[object, ...]]:
        """Returns the values of each call. Raises what `ask` raises, and Reverted, RpcRefused: a call is refused."""
        answers = self.ask([call_request(call) for call in calls])
        return [self.values(call, answer) for call, answer in zip(calls, answers, strict=True)]

    def look(
        self, calls: Sequence[ContractCall], account: str, hashes: Sequence[str]
    ) -> tuple[list[tuple[object, ...]], dict[str, bool], int]:
        """Makes one HTTP request. Returns the values of each call; for each transaction that was mined, by its hash,
        True if it succeeded; and the number of the account's transactions that were mined. Raises as `read` does."""
        # The number first: if a block arrives between the answers, a transaction in it does not look replaced.
        requests: list[Request] = [("eth_getTransactionCount", [account, LATEST])]
        requests += [("eth_getTransactionReceipt", [hash_]) for hash_ in hashes]
        nonce, *answers = self.ask([*requests, *map(call_request, calls)])
        receipts = {}
        for hash_, answer in zip(hashes, answers, strict=False):
            receipt = self.fields(answer, "eth_getTransactionReceipt")
            if receipt is not None and receipt.get("blockNumber") is not None:
                receipts[hash_] = self.quantity(receipt.get("status"), "a receipt's status") == 1
        values = [self.values(call, answer) for call, answer in zip(calls, answers[len(hashes) :], strict=True)]
        return values, receipts, self.quantity(nonce, "eth_getTransactionCount")

    def simulate(self, call: ContractCall, sender: str) -> None:
        """Simulates a call by an account. Raises Reverted: the contract would refuse it now; and what `ask` raises."""
        (answer,) = self.ask([call_request(call, sender)])
        self.text(answer, call.name)

    def values(self, call: ContractCall, answer: Answer) -> tuple[object, ...]:
        """Returns the values in the answer to `call_request(call)`. Raises as `text` and `ContractCall.decode` do."""
        return call.decode(self.text(answer, call.name))

    def broadcast(self, raw: bytes) -> None:
        """Sends a signed transaction once. Raises RpcFault: it may have arrived; NonceRace, InsufficientFunds,
        Reverted, WrongChain: it was not accepted; AlreadyKnown: it arrived before."""
        try:
            (answer,) = self._transport.ask([("eth_sendRawTransaction", ["0x" + raw.hex()])], repeat=False)
        except RpcFault:
            self._verified = False
            raise
        self.text(answer, "eth_sendRawTransaction")

    def quantity(self, answer: Answer, what: str, bits: int = 256) -> int:
        """Returns the number in an answer. Raises as `text` does, also for a number of more than `bits` bits."""
        text = self.text(answer, what)
        try:
            number = int(text, 16)
        except ValueError as error:
            raise self._not_hex(text, what) from error
        if number.bit_length() > bits:  # one of thousands of digits is neither shown nor divided without an error
            raise self._not_hex(text, what)
        return number

    def text(self, answer: Answer, what: str) -> str:
        """Returns hex digits with 0x. Raises a refusal's error (see `fault`); RpcBadReply: the answer is not hex."""
        if isinstance(answer, RpcRefusal):
            raise self.fault(answer, what)
        if not isinstance(answer, str) or not answer.startswith("0x") or not answer.isascii():
            raise self._not_hex(answer, what)
        return answer

    def fields(self, answer: Answer, what: str) -> Mapping[str, object] | None:
        """Returns an answer that is a record, such as a block, or None. Raises as `text` does."""
        if isinstance(answer, RpcRefusal):
            raise self.fault(answer, what)
        if answer is not None and not isinstance(answer, dict):
            raise self._not_hex(answer, what)
        return answer

    def fault(self, refusal: RpcRefusal, what: str) -> LedgerError:
        """Returns the error that a refusal stands for."""
        message = refusal.message.lower()
        if refusal.code == 3 or "revert" in message:  # first, since the rest of the text is the contract's
            from codezero.ledger import abi  # imports eth-utils, which nodes without a chain do not need

            name = error_name(refusal.data, abi.error_names())
            return Reverted(f"the contract refuses {what}: {name}", name)
        if any(words in message for words in _NONCE_RACE):
            return NonceRace(f"another transaction of the account took the nonce ({refusal.message}): sent again")
        if any(words in message for words in _ALREADY_KNOWN):
            return AlreadyKnown(f"{self._transport.place} has this transaction already")
        if any(words in message for words in _NO_FUNDS):
            return InsufficientFunds(f"the account cannot pay for {what} ({refusal.message}): send it some ETH")
        if any(words in message for words in _WRONG_CHAIN):
            return WrongChain(f"{self._transport.place} is for another chain ({refusal.message}): check ledger.rpc_url")
        return RpcRefused(f"{self._transport.place} refuses {what}: {refusal.message} (code {refusal.code})")

    def _verify(self, answers: Sequence[Answer]) -> None:
        found = self.quantity(answers[0], "eth_chainId")
        if found != self.chain_id:
            raise WrongChain(
                f"{self._transport.place} serves chain {found}, not {self.chain_id}: correct ledger.rpc_url or "
                "ledger.chain_id; nothing is written until then"
            )
        for address, answer in zip(self._contracts, answers[1:], strict=True):
            if self.text(answer, "eth_getCode") == "0x":
                raise NoContract(
                    f"there is no contract at {address} on chain {self.chain_id}: check {self._contract_setting}"
                )

    def _not_hex(self, answer: object, what: str) -> RpcFault:
        return RpcBadReply(
            f"{self._transport.place} answered {what} with {shown(str(answer)[:40])!r}, not a valid answer: "
            "a proxy in between may have sent it"
        )


def open_contract(
    name: str,
    address: str,
    *,
    rpc_url: str,
    chain_id: int,
    setting: str = "ledger.contract_address",
    timeout_s: float = 10.0,
    retries: int = 2,
) -> tuple[Contract, Rpc]:
    """Returns one of `abi.ARTIFACTS` at an address and a client of its chain, without a request. `setting` names the
    setting of the address. Raises LedgerError: the address or the URL is not valid."""
    from codezero.ledger import abi  # imports eth-utils, which nodes without a chain do not need

    try:
        contract = Contract(checksummed(address), abi.load(name).abi)
    except ValueError as error:
        raise LedgerError(f"{setting}: {error}") from error
    transport = JsonRpc(rpc_url, timeout_s=timeout_s, retries=retries)
    rpc = Rpc(transport, chain_id=chain_id, contracts=[contract.address], contract_setting=setting)
    return contract, rpc


def call_request(call: ContractCall, sender: str | None = None) -> Request:
    """Returns the request that simulates a call, from `sender` if one is given."""
    fields = {"to": call.to, "data": call.data, "from": sender, "value": hex(call.value) if call.value else ""}
    return "eth_call", [{name: value for name, value in fields.items() if value}, LATEST]


def balance(transport: JsonRpc, address: str) -> tuple[int, int]:
    """Returns the id of the chain that the server serves, and an account's balance there in wei. Raises RpcFault."""
    chain, held = transport.ask([("eth_chainId", []), ("eth_getBalance", [address, LATEST])])
    rpc = Rpc(transport, chain_id=0)
    return rpc.quantity(chain, "eth_chainId"), rpc.quantity(held, "eth_getBalance")
