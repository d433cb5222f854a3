"""Which ledger a configuration gets, and the bootnodes that a contract names."""

import io
import os
from contextlib import ExitStack

import pytest

from codezero.config.load import load_config
from codezero.errors import ConfigError, LedgerError
from codezero.ledger import keystore
from codezero.ledger.board import read_swarm_board
from codezero.ledger.build import MAX_BOOTNODES, load_key, make_ledger, with_contract_bootnodes
from codezero.ledger.faults import WalletError
from codezero.ledger.leaderboard import read_leaderboard
from codezero.ledger.local import LocalLedger
from codezero.ledger.location import LedgerLocation, read_location, write_location
from codezero.ledger.reading import read_view
from codezero.network.join import join
from codezero.runtime.console import Console
from codezero.types import SOLO_PEER_ID, RoundId
from tests.builders import rollout, scored
from tests.chain import new_key
from tests.processes import wait_until
from tests.sign_in import SignInApp

PEER = "Qm" + "a" * 44
ADDRESS = "0x" + "1" * 40


def on(dev_chain, address, *settings):
    return load_config(
        [
            "ledger=wallet",
            f"ledger.rpc_url={dev_chain.url}",
            f"ledger.contract_address={address}",
            f"ledger.chain_id={dev_chain.chain_id}",
            *settings,
        ]
    )


def named(dev_chain, *addresses):
    """A coordinator that names these bootnodes."""
    address = dev_chain.coordinator()
    client = dev_chain.client()
    client.transact(client.contract("SwarmCoordinator", address), "addBootnodes(string[])", list(addresses))
    return address


def swarm_of(config, shown=None):
    return with_contract_bootnodes(config.swarm, config.ledger, Console(shown or io.StringIO()))


def test_without_a_chain_the_ledger_is_a_file(tmp_path):
    config = load_config([])
    with ExitStack() as stack:
        made = make_ledger(config, None, tmp_path, "me", Console(io.StringIO()), stack)
        assert isinstance(made, LocalLedger)
        assert read_location(tmp_path) == LedgerLocation(kind="local", peer_id="me")
        assert swarm_of(config) is config.swarm


def test_nodes_may_share_a_file_with_a_clock_and_have_names_of_their_own_then(tmp_path):
    path = tmp_path / "new" / "shared.sqlite"
    config = load_config(
        [f"ledger.path={path}", "ledger.round_s=0.01", f"swarm.identity_path={tmp_path / 'swarm.pem'}"]
    )
    console = Console(io.StringIO())
    with ExitStack() as stack:
        place = join(config.swarm, 2, tmp_path, console, stack, needs_name=config.ledger.is_shared)
        assert place.peer_id != SOLO_PEER_ID
        made = make_ledger(config, None, tmp_path, place.peer_id, console, stack)
        assert made.next_round(RoundId(number=3)).number > 3
    assert [at.peer_id for at in read_leaderboard(path)] == [place.peer_id]
    assert read_location(tmp_path) == LedgerLocation(kind="local", peer_id=place.peer_id, path=str(path))


def test_a_ledger_below_a_file_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    config = load_config([f"ledger.path={tmp_path / 'file' / 'shared.sqlite'}"])
    with ExitStack() as stack, pytest.raises(LedgerError, match=r"cannot make the folder of ledger\.path="):
        make_ledger(config, None, tmp_path, "me", Console(io.StringIO()), stack)


def test_the_sign_in_app_s_user_becomes_the_node_s_account(dev_chain, tmp_path):
    """A node's rewards reach the contract through the app, as configured."""
    address, shown = dev_chain.coordinator(), io.StringIO()
    with SignInApp(dev_chain.url, address, dev_chain.accounts[5]).serving() as app, ExitStack() as stack:
        app.write_files(tmp_path / "temp-data")
        config = load_config(
            [
                *("ledger=modal", f"ledger.proxy_url={app.url}", f"ledger.login_dir={tmp_path / 'temp-data'}"),
                *(f"ledger.rpc_url={dev_chain.url}", f"ledger.contract_address={address}"),
                f"ledger.chain_id={dev_chain.chain_id}",
            ]
        )
        ledger = make_ledger(config, None, tmp_path, "modal-peer", Console(shown), stack)
        ledger.settle(ledger.next_round(None), [scored([rollout()], [2.0])])
        wait_until(lambda: "register-peer" in app.names())
        assert app.names() == ["register-peer"]
        assert ledger.status() == ""
        wait_until(lambda: read_swarm_board([tmp_path]).num_peers)
        board = read_swarm_board([tmp_path])
    assert (board.problem, board.own.peer_id, board.own_rank) == ("", "modal-peer", 1)
    view = read_view(tmp_path)
    assert (view.kind, view.contract, view.chain_id, view.problems) == ("modal", address, 31337, ())
    assert (tmp_path / "ledger.json").stat().st_mode & 0o777 == 0o600
    assert shown.getvalue() == f"ledger: {address} on chain 31337, as {app.address} through {app.url}\n"


def test_a_disk_that_does_not_take_the_location_does_not_stop_a_node(tmp_path, caplog):
    write_location(tmp_path / "missing", LedgerLocation(kind="local", peer_id="me"))
    assert "cannot write" in caplog.text


def test_the_location_is_written_through_no_link_and_over_no_open_file(tmp_path):
    (tmp_path / "other").write_text("theirs")
    temporary = tmp_path / f".ledger.json.{os.getpid()}.tmp"
    temporary.symlink_to(tmp_path / "other")
    write_location(tmp_path, LedgerLocation(kind="local", peer_id="me"))
    assert (tmp_path / "other").read_text() == "theirs"
    temporary.touch(mode=0o644)
    write_location(tmp_path, LedgerLocation(kind="wallet", peer_id="me"))
    assert (tmp_path / "ledger.json").stat().st_mode & 0o777 == 0o600


def test_without_a_sign_in_the_node_says_what_to_do(dev_chain, tmp_path):
    config = load_config(["ledger=modal", f"ledger.rpc_url={dev_chain.url}", f"ledger.login_dir={tmp_path}"])
    with (
        ExitStack() as stack,
        pytest.raises(LedgerError, match=r"nobody has signed in: .*sign in first"),
    ):
        make_ledger(config, None, tmp_path, "me", Console(io.StringIO()), stack)


def test_bootnodes_of_the_contract_come_after_those_of_the_settings(dev_chain):
    good = f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}"
    own = f"/ip4/198.51.100.1/tcp/4001/p2p/{PEER}"
    address = named(dev_chain, good, "rm -rf /", "/ip4/203.0.113.7/tcp/4001", own)
    shown = io.StringIO()
    assert swarm_of(on(dev_chain, address, f"swarm.bootnodes=[{own}]"), shown).bootnodes == [own, good]
    assert shown.getvalue() == "swarm: 1 bootnode from the contract\n"


def test_a_contract_cannot_name_more_bootnodes_than_a_node_dials(dev_chain):
    address = named(dev_chain, *[f"/ip4/203.0.113.7/tcp/{port}/p2p/{PEER}" for port in range(4001, 4041)])
    assert len(swarm_of(on(dev_chain, address)).bootnodes) == MAX_BOOTNODES


def test_a_contract_that_does_not_answer_keeps_no_node_from_its_swarm(dev_chain, caplog):
    address = dev_chain.coordinator()
    config = on(dev_chain, address, "ledger.rpc_url=http://127.0.0.1:9")
    assert swarm_of(config) is config.swarm
    assert "the contract's bootnodes are not known" in caplog.text


def test_the_contract_s_bootnodes_can_be_left_alone(dev_chain):
    config = on(dev_chain, dev_chain.coordinator(), "ledger.bootnodes=false")
    assert swarm_of(config) is config.swarm


def test_a_missing_keystore_is_named_with_the_command_that_makes_one(dev_chain, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEZERO_WALLET_PASSPHRASE", "a long one")
    config = on(dev_chain, dev_chain.coordinator(), f"ledger.keystore={tmp_path / 'no wallet.json'}")
    with pytest.raises(WalletError, match=r"codezero wallet create --keystore '.*/no wallet\.json'` makes one"):
        load_key(config.ledger)


def test_the_wallet_s_passphrase_is_not_left_to_processes_that_the_node_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEZERO_WALLET_PASSPHRASE", "a long one")
    key = new_key()
    keystore.save(key, tmp_path / "wallet.json", "a long one", scrypt_n=2)
    wallet = ("ledger=wallet", f"ledger.keystore={tmp_path / 'wallet.json'}")
    chain = ("ledger.rpc_url=http://127.0.0.1:9", f"ledger.contract_address={ADDRESS}")
    assert load_key(load_config([*wallet, *chain]).ledger) == key
    assert "CODEZERO_WALLET_PASSPHRASE" not in os.environ


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["ledger=wallet"], "ledger.contract_address='' is not possible: give the coordinator"),
        (["ledger=wallet", "ledger.rpc_url="], "give the chain's RPC"),
        (["ledger=wallet", "ledger.contract_address=0x12"], "0x and 40 hex digits"),
        (["ledger=modal", "ledger.proxy_url="], "ledger.proxy_url='' is not possible: give the app"),
        (["ledger=modal", "ledger.proxy_url=http://localhost:3000/?a"], "give the app, such as"),
        (["ledger=modal", "ledger.rpc_url="], "give the chain's RPC"),
        (["ledger=modal", "ledger.path=shared.sqlite"], "only ledger=local has a database to share"),
        (["ledger=modal", "ledger.round_s=60"], "the contract says which round it is"),
        (["ledger.round_s=-1"], "use 0 or more"),
        (
            ["market.enabled=true", f"market.contract_address={ADDRESS}"],
            "market.enabled=true is not possible: bets are",
        ),
        (["market.enabled=true"], "market.contract_address='' is not possible: give the market's contract"),
        (["market.contract_address=0x12"], "0x and 40 hex digits"),
        (["market.fraction=1.5"], "use a share from 0 to 1"),
        (["judge.timeout_s=0"], "use 10"),
        (["judge.url="], "judge.url='' is not possible"),
        (["ledger.max_fee_gwei=0"], "use a price such as 100"),
        (["ledger.submit_period_s=-1"], "use 0 or more"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        load_config(settings)
