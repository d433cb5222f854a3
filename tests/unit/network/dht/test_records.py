import time

from codezero.network.dht.dht import key_id
from codezero.network.dht.records import OfferedRecord, RecordStore

KIB = 1 << 10


def item(key="k", subkey: str | None = None, size: int = 10, ttl_s: float = 100.0) -> OfferedRecord:
    return OfferedRecord(
        key=key_id(key), subkey=subkey, value=b"x" * size, expires_at_s=time.time() + ttl_s, sender="somebody"
    )


def add(store: RecordStore, one: OfferedRecord, address: str, version: float = 1.0) -> bool:
    return store.add(one, (0.0, version), address)


def addresses(store: RecordStore, key="k") -> list[str]:
    return sorted(record.address for record in store.under(key_id(key)).values())


def test_one_flooding_address_never_takes_the_last_half():
    store = RecordStore(capacity_bytes=100 * KIB)
    stored = sum(add(store, item(f"k{number}", size=9 * KIB), "flooder") for number in range(100))
    assert stored == 5  # of 10 KiB each
    assert sum(add(store, item(f"other{number}", size=9 * KIB), "honest") for number in range(100)) == 3
    assert add(store, item("third", size=9 * KIB), "third")


def test_many_small_records_are_no_way_around_the_limit():
    store = RecordStore(capacity_bytes=100 * KIB)
    assert sum(add(store, item(f"k{number}", size=0), "flooder") for number in range(1000)) == 50


def test_what_expires_makes_room_again_though_nobody_asks_for_it(clock):
    store = RecordStore(capacity_bytes=100 * KIB)
    while add(store, item(f"{time.perf_counter_ns()}", size=9 * KIB), "flooder"):
        pass
    clock.skip(101)
    assert add(store, item("new", size=9 * KIB), "flooder")
    assert len(store._records) == 1


def test_a_new_version_takes_the_room_of_the_old_one():
    store = RecordStore(capacity_bytes=24 * KIB)
    for version in range(100):
        assert add(store, item(size=9 * KIB), "somebody", version)
    assert add(store, item("other", size=9 * KIB), "somebody else")


def test_an_expired_record_is_gone(clock):
    store = RecordStore()
    add(store, item(subkey="a", ttl_s=50), "x")
    add(store, item(subkey="b", ttl_s=150), "x")
    clock.skip(100)
    assert list(store.under(key_id("k"))) == ["b"]
    clock.skip(100)
    assert store.under(key_id("k")) == {}
    assert store._records == {}
    assert store._held == {}


def test_a_thousand_identities_of_one_address_neither_evict_nor_keep_out_three_honest_addresses():
    store = RecordStore()
    assert add(store, item(subkey="before"), "honest 1")
    for number in range(1000):
        add(store, item(subkey=f"sybil {number}"), "flooder")
    assert add(store, item(subkey="after"), "honest 2")
    for number in range(1000, 2000):
        add(store, item(subkey=f"sybil {number}"), "flooder")
    assert add(store, item(subkey="late"), "honest 3")
    assert addresses(store)[61:] == ["honest 1", "honest 2", "honest 3"]
    assert len(addresses(store)) == 64


def test_the_oldest_entries_of_the_largest_address_stay():
    store = RecordStore()
    for number in range(64):
        add(store, item(subkey=str(number)), "flooder")
    add(store, item(subkey="honest"), "honest")
    assert "63" not in store.under(key_id("k"))
    assert "0" in store.under(key_id("k"))


def test_large_entries_of_many_addresses_leave_a_directory_that_fits_in_one_message():
    store = RecordStore()
    for number in range(64):
        add(store, item(subkey=str(number), size=256 * KIB), f"address {number}")
    held = store.under(key_id("k")).values()
    assert sum(len(record.value) for record in held) <= 3 << 20
    assert len(held) == 11


def test_a_small_entry_drives_out_a_large_one_and_not_the_other_way_round():
    store = RecordStore()
    for number in range(11):
        add(store, item(subkey=str(number), size=256 * KIB), f"address {number}")
    assert all(add(store, item(subkey=f"small {number}"), f"small {number}") for number in range(10))
    assert not add(store, item(subkey="large", size=256 * KIB), "another")
    assert all(f"small {number}" in store.under(key_id("k")) for number in range(10))


def test_a_refused_entry_changes_nothing():
    store = RecordStore()
    for number in range(64):
        add(store, item(subkey=str(number)), f"address {number}")
    before = dict(store.under(key_id("k")))
    assert not add(store, item(subkey="one more"), "another")
    assert store.under(key_id("k")) == before


def test_directories_do_not_share_their_places():
    store = RecordStore()
    for number in range(64):
        add(store, item("full", subkey=str(number)), "flooder")
    assert add(store, item("empty", subkey="a"), "flooder")


def test_bookkeeping_ends_with_the_records(clock):
    store = RecordStore()
    for number in range(500):
        add(store, item(f"k{number % 7}", subkey=str(number), size=number), f"address {number % 5}", number)
    assert sum(store._held.values()) == sum(
        record.size for entries in store._records.values() for record in entries.values()
    )
    clock.skip(200)
    add(store, item("last"), "x")
    assert set(store._held) == {"x"}
