"""Encodes calls of a contract as bytes, and decodes its answers and errors (the Solidity contract ABI).

https://docs.soliditylang.org/en/latest/abi-spec.html. eth-abi is imported when first used: nodes without a chain do not
need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codezero.ledger.faults import RpcBadReply
from codezero.ledger.http import shown

Abi = Sequence[Mapping[str, Any]]
_ERROR_STRING, _PANIC = "0x08c379a0", "0x4e487b71"
"""Selectors of Solidity's own Error(string) and Panic(uint256)."""
MAX_ANSWER_BYTES = 1 << 17
"""The most bytes in the answer to one call; hundreds of bootnodes fit. The elements of a list may all point at the same
place, so what eth-abi decodes can grow with the square of the answer's length: 1.6 MB become 20 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractCall:
    """One call of a contract's function, to be simulated, sent or read; or a deployment or transfer, to be sent."""

    to: str
    """The checksummed address of the contract, or of who gets a transfer; empty for a deployment."""
    name: str
    """The function's name, for messages."""
    data: str
    """Hex digits with 0x: selector and arguments."""
    outputs: tuple[str, ...]
    """ABI types of the values that the function returns."""
    path: str = ""
    """The path of the sign-in app's API that makes this call; empty for a read."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """The fields of the request to that path."""
    value: int = 0
    """The amount in wei that goes with it."""

    def decode(self, answer: str) -> tuple[Any, ...]:
        """Returns the values in an answer. Raises RpcBadReply: the answer does not hold values of these types."""
        from eth_abi.abi import decode
        from eth_abi.exceptions import DecodingError

        try:
            if len(answer) > 2 * MAX_ANSWER_BYTES:
                raise ValueError
            return decode(self.outputs, bytes.fromhex(answer.removeprefix("0x")))
        except (DecodingError, ValueError, OverflowError) as error:  # ValueError: not hex, not UTF-8, too long
            raise RpcBadReply(
                f"the RPC's answer to {self.name}() does not decode ({shown(answer[:40])}): a proxy in between "
                "may have sent it, or the contract is of another kind"
            ) from error


class Contract:
    """A contract at an address, whose calls it encodes."""

    def __init__(self, address: str, abi: Abi) -> None:
        """`address` as `checksummed` gives it."""
        self.address = address
        from eth_utils.abi import abi_to_signature, get_abi_output_types

        self._outputs = {
            abi_to_signature(entry): tuple(get_abi_output_types(entry))  # type: ignore[arg-type]
            for entry in abi
            if entry["type"] == "function"
        }

    def call(self, signature: str, *arguments: object, path: str = "", **fields: object) -> ContractCall:
        """Returns a call. `signature` has types, as `submitReward(uint256,uint256,int256,string)`: names are shared.
        `path` and `fields` are as in `ContractCall`."""
        from eth_abi.abi import encode

        name, _, types = signature.removesuffix(")").partition("(")
        encoded = encode(types.split(",") if types else [], arguments)
        return ContractCall(
            to=self.address,
            name=name,
            data=selector(signature) + encoded.hex(),
            outputs=self._outputs[signature],
            path=path,
            fields=fields,
        )


def error_name(data: str, names: Mapping[str, str]) -> str:
    """Returns the reason in the data of a revert: the name of a contract's error, Solidity's own text, or the selector.

    `names` maps selectors to names. A call of a function that the contract does not have reverts without data.
    """
    first = data[:10].lower()
    if first in names:
        return names[first]
    if first == _ERROR_STRING:
        from eth_abi.abi import decode
        from eth_abi.exceptions import DecodingError

        try:
            (text,) = decode(("string",), bytes.fromhex(data[10:]))
        except (DecodingError, ValueError, OverflowError):
            return "Error"
        return shown(text) or "Error"
    if first == _PANIC:
        return "Panic"
    return f"unknown error {shown(first)}" if len(first) == 10 else "no reason given"


def checksummed(address: str) -> str:
    """Returns the address with its checksum in upper and lower case (EIP-55). Raises ValueError: the text is not an
    address, or its checksum is wrong."""
    from eth_utils.address import is_address, to_checksum_address

    if not address.startswith("0x") or not is_address(address):
        raise ValueError(f"{address!r} is not an address: an address has 0x and 40 hex digits")
    correct = str(to_checksum_address(address))
    if address not in (correct, address.lower()):
        raise ValueError(f"{address!r} is not an address: its checksum in upper and lower case is wrong")
    return correct


def selector(signature: str) -> str:
    """Returns the first four bytes of a call or an error, as hex with 0x."""
    from eth_utils.crypto import keccak

    return "0x" + bytes(keccak(text=signature)[:4]).hex()
