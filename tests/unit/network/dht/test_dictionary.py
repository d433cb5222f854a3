import msgpack
import pytest
from hivemind.dht.storage import DictionaryDHTValue
from hivemind.utils import MSGPackSerializer

from codezero.network.dht.dictionary import pack_dictionary, read_dictionary, read_subkey

ENTRIES = [("QmA", b"one", 1e12), ("QmB", b"", 2e12)]


def hivemind_pack(entries) -> bytes:
    value = DictionaryDHTValue()
    with value.freeze():
        for entry in entries:
            value.store(*entry)
        return MSGPackSerializer.dumps(value)


def sent(entries, maxsize=float("inf"), latest=1e12) -> bytes:
    """What a hostile node may send as a directory."""
    return msgpack.packb(msgpack.ExtType(0x50, msgpack.packb([maxsize, latest, entries])))


def nested(depth: int) -> bytes:
    """hivemind's tuples inside each other."""
    raw = msgpack.packb(None)
    for _ in range(depth):
        raw = msgpack.packb(msgpack.ExtType(0x40, b"\x91" + raw))
    return raw


@pytest.mark.parametrize("entries", [ENTRIES, [], [("Qm" * 30, b"x" * 70_000, 1.5)]])
def test_a_directory_is_packed_and_read_as_hivemind_does(entries):
    assert pack_dictionary(entries) == hivemind_pack(entries)
    assert read_dictionary(hivemind_pack(entries)) == entries


def test_one_unreadable_entry_hides_no_other():
    good = ["QmA", b"one", 1e12]
    bad = [
        [],
        ["QmB", b"x"],
        ["QmB", b"x", 1.0, 2],
        [7, b"x", 1.0],
        [[1], b"x", 1.0],
        [{}, b"x", 1.0],
        [None, b"x", 1.0],
        [b"QmB", b"x", 1.0],
        ["QmB", "text", 1.0],
        ["QmB", None, 1.0],
        ["QmB", b"x", None],
        ["QmB", b"x", "soon"],
        ["Q" * 129, b"x", 1.0],
        "QmB",
        None,
        msgpack.ExtType(0x50, b""),
        [msgpack.ExtType(0x40, nested(50)), b"x", 1.0],
        ["QmB", msgpack.ExtType(0x50, b"\xc1"), 1.0],
    ]
    assert read_dictionary(sent([*bad, good, *bad])) == [("QmA", b"one", 1e12)]


@pytest.mark.parametrize("maxsize", [0, -1, None, "many", 1, float("nan"), 2**63, []])
def test_the_size_that_the_sender_claims_is_of_no_consequence(maxsize):
    assert read_dictionary(sent([["QmA", b"one", 1e12], ["QmB", b"", 2e12]], maxsize)) == ENTRIES


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        b"\xc0",
        msgpack.packb(ENTRIES),
        msgpack.packb(msgpack.ExtType(0x51, hivemind_pack(ENTRIES))),
        msgpack.packb(msgpack.ExtType(0x50, b"")),
        msgpack.packb(msgpack.ExtType(0x50, msgpack.packb([1, 2]))),
        msgpack.packb(msgpack.ExtType(0x50, msgpack.packb([1, 2, {}]))),
        hivemind_pack(ENTRIES)[:-1],
        hivemind_pack(ENTRIES) + b"\xc0",
        sent([["QmA", b"", 1.0]] * 4097),
        sent(b"\x91" * 5000),
        msgpack.packb(msgpack.ExtType(0x50, b"\x93" + b"\x91" * 100_000 + b"\xc0\xc0\x90")),
    ],
)
def test_what_is_no_directory_has_no_entries(raw):
    assert read_dictionary(raw) == []


def test_a_million_empty_entries_are_refused_by_their_number():
    raw = b"\x93\xc0\xc0\xdd" + (4_000_000).to_bytes(4, "big") + b"\xc0" * 4_000_000
    assert read_dictionary(msgpack.packb(msgpack.ExtType(0x50, raw))) == []


def test_nested_extensions_do_not_overflow_the_c_stack():
    """hivemind's own decoder ends the process on 200 of these."""
    assert read_subkey(nested(2000)) is None
    assert read_dictionary(nested(2000)) == []
    assert read_dictionary(sent([["QmA", b"one", 1e12], [nested(2000), b"", 1.0]])) == [("QmA", b"one", 1e12)]


@pytest.mark.parametrize(
    "tag", [b"", b"\xc1", b"\xc0", b"\x07", b"\xa2\xff\xfe", msgpack.packb(b"QmA"), msgpack.packb("Q" * 129), b"\xa1"]
)
def test_a_subkey_is_a_short_text(tag):
    assert read_subkey(tag) is None
    assert read_subkey(msgpack.packb("Q" * 128)) == "Q" * 128
