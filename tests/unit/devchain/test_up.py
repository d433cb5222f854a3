"""`codezero chain up` as a process: its folder, its restarts, its end."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from codezero.devchain import anvil, coordinator, folder
from codezero.devchain.folder import ChainFolder
from codezero.devchain.up import ChainOptions, choose, introduction
from codezero.errors import ChainError
from tests.chains import NO_ANVIL, DevChain
from tests.commands import spawn
from tests.ports import free_port
from tests.processes import is_alive, wait_until, wait_until_gone


@pytest.fixture
def up(tmp_path):
    """Starts chains in a folder and leaves none running."""
    if NO_ANVIL:
        pytest.skip(NO_ANVIL)
    started, port = [], free_port()

    def start(*options):
        process = spawn(
            [
                *(sys.executable, "-m", "codezero", "chain", "up", "--stop-with-parent"),
                *("--folder", str(tmp_path / "chain"), "--port", str(port), *options),
            ],
            stdin=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup has it ignored
        )
        started.append(process)
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if lines[-1].startswith("stop: "):
                break
        return SimpleNamespace(process=process, lines=lines, path=tmp_path / "chain", port=port)

    yield start
    for process in started:
        children = psutil.Process(process.pid).children() if is_alive(process.pid) else []
        for each in (process, *children):
            each.kill()
        process.wait(120)
        process.stdout.close()
        process.stdin.close()


def end(running, how=signal.SIGTERM):
    running.process.send_signal(how)
    running.process.stdin.close()
    rest = running.process.stdout.read()
    return running.process.wait(120), rest


def registered(path, *peers):
    client, contract = coordinator.open_coordinator(path, None)
    return [address != "0x" + "0" * 40 for address in client.read(contract, "getEoa(string[])", list(peers))]


def register(path, peer):
    client, contract = coordinator.open_coordinator(path, None)
    client.transact(contract, "registerPeer(string)", peer)


class Silent:
    def line(self, text):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_chain_runs_is_alone_in_its_folder_and_goes_on_where_it_was(up, host):
    first = up("--host", host, "--chain-id", "4242")
    assert first.lines[0] == f"chain 4242 ready at http://127.0.0.1:{first.port} (kept in {first.path})"
    coordinator.deploy(first.path, None, 1, Silent())
    register(first.path, "early")
    second = up()
    assert second.process.wait(120) == 1
    assert second.lines[-1].startswith(f"error: chain folder {first.path} is in use by the chain with process id ")
    code, rest = end(first)
    assert (code, rest.splitlines()[-1]) == (0, "chain stopped; the same command continues where it stopped")
    again = up("--host", host)
    assert again.lines[0] == first.lines[0]
    assert registered(again.path, "early", "late") == [True, False]
    register(again.path, "late")
    assert registered(again.path, "early", "late") == [True, True]


@pytest.mark.parametrize(
    ("how", "host"), [(signal.SIGINT, "localhost"), (signal.SIGHUP, "localhost"), ("parent gone", "::")]
)
def test_a_chain_stops_when_asked_and_leaves_no_process(up, host, how):
    running = up("--host", host)
    children = [child.pid for child in psutil.Process(running.process.pid).children()]
    assert len(children) == 1
    running.process.stdin.close() if how == "parent gone" else running.process.send_signal(how)
    assert running.process.stdout.read().endswith("chain stopped; the same command continues where it stopped\n")
    assert running.process.wait(120) == 0
    wait_until_gone(children)


def test_other_machines_reach_no_more_than_the_proxy_passes_on(up):
    running = up("--host", "0.0.0.0")
    coordinator.deploy(running.path, None, 1, Silent())
    chain = DevChain(folder.find(running.path).rpc_url)
    for method in ("anvil_impersonateAccount", "anvil_setBalance", "eth_sendTransaction", "evm_mine"):
        with pytest.raises(AssertionError, match=f"'{method}' is not available here"):
            chain.ask(method)
    (child,) = psutil.Process(running.process.pid).children()
    assert {at.laddr.ip for at in child.net_connections() if at.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_an_anvil_that_outlives_its_command_holds_the_folder_and_is_named(up):
    running = up()
    (child,) = psutil.Process(running.process.pid).children()
    running.process.kill()
    running.process.wait(120)
    second = up()
    assert second.lines[-1].startswith(
        f"error: chain folder {running.path} is in use by the chain with process id {child.pid}: stop that chain"
    )
    child.terminate()
    wait_until_gone([child.pid])
    assert up().lines[0].startswith("chain 31337 ready")


def test_an_anvil_that_ends_by_itself_ends_the_command(up):
    running = up()
    (child,) = psutil.Process(running.process.pid).children()
    child.kill()
    log = running.path / "anvil.log"
    assert running.process.stdout.read() == f"error: anvil ended with exit code -9: it says nothing; see {log}\n"
    assert running.process.wait(120) == 1


def test_anvil_starts_from_the_copy_when_its_state_is_cut_off(up):
    first = up()
    coordinator.deploy(first.path, None, 1, Silent())
    register(first.path, "kept")
    end(first)
    state = first.path / "anvil.json"
    state.write_bytes(state.read_bytes()[:-100])
    again = up()
    assert again.lines[0] == (
        f"warning: {state} is cut off; starting from anvil.previous.json, so what was done after that is lost"
    )
    assert registered(again.path, "kept") == [True]


def test_receipts_and_events_stay_however_many_blocks_follow(up):
    running = up()
    coordinator.deploy(running.path, None, 1, Silent())
    client, contract = coordinator.open_coordinator(running.path, None)
    receipt = client.transact(contract, "registerPeer(string)", "kept")
    chain = DevChain(client.rpc_url)
    chain.ask("anvil_mine", hex(1000))
    assert chain.web3.eth.get_transaction_receipt(receipt["transactionHash"])["status"] == 1
    end(running)
    up()
    events = chain.contract("SwarmCoordinator", contract.address).events
    assert len(events.PeerRegistered().get_logs(from_block=0)) == 1


def test_anvil_has_no_account_but_the_owner_of_the_folder(up):
    running = up()
    found = folder.find(running.path)
    eth = DevChain(found.rpc_url).web3.eth
    assert eth.accounts == []
    known = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # the first of the mnemonic that everybody knows
    assert eth.get_balance(known) == 0
    assert eth.get_balance(found.owner().address) == 10_000 * 10**18


@pytest.mark.parametrize(
    ("host", "reason"), [("127.0.0.1", "anvil ended with exit code 1"), ("0.0.0.0", "cannot listen on port")]
)
def test_a_port_in_use_is_told(up, host, reason):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        running = up("--host", host, "--port", str(taken.getsockname()[1]))
        assert running.process.wait(300) == 1
    assert running.lines[-1].startswith(f"error: {reason}")
    assert not (running.path / "chain.json").exists()


@pytest.mark.slow
def test_two_managers_of_which_one_is_killed_and_started_again_advance_once_a_period(up):
    running = up()
    coordinator.deploy(running.path, None, 1, Silent())
    chain, found = DevChain(f"http://127.0.0.1:{running.port}"), folder.find(running.path)

    def advances():
        return chain.contract("SwarmCoordinator", found.coordinator()).events.RoundAdvanced().get_logs(from_block=0)

    command = [sys.executable, "-m", "codezero", "chain", "tick", "--every", "2s", "--folder", str(running.path)]
    managers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for manager in managers:
            assert manager.stdout.readline().startswith("round ")
        wait_until(lambda: len(advances()) >= 2)
        managers[0].kill()
        managers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert managers[2].stdout.readline().startswith("round ")
        wait_until(lambda: len(advances()) >= 4)
        for manager in managers[1:]:
            manager.terminate()
            assert manager.wait(120) == 0
    finally:
        for manager in managers:
            manager.kill()
            manager.wait(120)
            manager.stdout.close()
    logs = advances()
    assert [log["args"]["newRoundNumber"] for log in logs] == list(range(1, len(logs) + 1))
    times = [chain.web3.eth.get_block(log["blockNumber"])["timestamp"] for log in logs]
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(times))


# The folder, without a process


def options(path, **changes):
    return ChainOptions(folder=path, **changes)


def test_a_folder_keeps_its_chain_id(tmp_path):
    folder.save(choose(options(tmp_path, chain_id=7)))
    again = choose(options(tmp_path, port=9000))
    assert (again.chain_id, again.rpc_url) == (7, "http://127.0.0.1:9000")
    with pytest.raises(ChainError, match=r"--chain-id 8 is not possible: the chain in .* has 7; leave the option out"):
        choose(options(tmp_path, chain_id=8))


def test_a_chain_of_an_earlier_version_goes_on_unless_it_is_one_of_py_evm(tmp_path):
    (tmp_path / "chain.json").write_text('{"chain_id": 7, "engine": "anvil", "rpc_url": ""}')
    assert choose(options(tmp_path)).chain_id == 7
    (tmp_path / "chain.db").write_bytes(b"")
    with pytest.raises(ChainError, match=r"is one of py-evm, .*: give another --folder for a new chain"):
        choose(options(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"port": 0}, "--port 0"), ({"port": 65536}, "--port 65536"), ({"chain_id": 0}, "--chain-id 0")],
)
def test_a_port_or_chain_id_that_is_none_is_refused(tmp_path, changes, message):
    with pytest.raises(ChainError, match=f"{message} is not possible: use 1 to"):
        choose(options(tmp_path, **changes))


def test_anvil_is_found_where_npm_puts_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ChainError, match=r"anvil is not installed, .*: npm install @foundry-rs/anvil in "):
        anvil.require_anvil()
    binary = tmp_path / "node_modules" / "@foundry-rs" / "anvil-linux-amd64" / "bin" / "anvil"
    binary.parent.mkdir(parents=True)
    binary.write_text("")
    assert anvil.find_anvil() is None
    binary.chmod(0o755)
    assert anvil.find_anvil() == str(binary)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_is_no_reason_for_a_warning(tmp_path, host):
    assert not [line for line in introduction(choose(options(tmp_path, host=host)), host) if "warning" in line]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8545"),
        ("::", "http://[::1]:8545"),
        ("192.0.2.1", "http://192.0.2.1:8545"),
    ],
)
def test_listening_elsewhere_is_warned_of(tmp_path, host, url):
    chain = choose(options(tmp_path, host=host))
    (warning,) = [line for line in introduction(chain, host) if line.startswith("warning")]
    assert "whoever reaches port 8545 can read it, send what they have signed" in warning
    assert chain.rpc_url == url


# anvil's state file


@pytest.fixture
def chain(tmp_path):
    return ChainFolder(path=tmp_path, chain_id=5, rpc_url="")


WHOLE, CUT = json.dumps({"block": 2}), '{"block": 2'


@pytest.mark.parametrize(
    ("state", "previous", "start"),
    [
        (None, None, None),
        (WHOLE, None, WHOLE),
        (WHOLE, CUT, WHOLE),
        (CUT, '{"block": 1}', '{"block": 1}'),
        ("", '{"block": 1}', '{"block": 1}'),
        (None, '{"block": 1}', '{"block": 1}'),
    ],
)
def test_the_chain_starts_from_its_state_or_else_the_copy(chain, state, previous, start):
    for path, content in ((anvil.state_path(chain), state), (anvil.previous_path(chain), previous)):
        if content is not None:
            path.write_text(content)
    told = anvil.recover(chain)
    assert (told is None) == (start == state)
    assert start is None or anvil.state_path(chain).read_text() == start
    if state == CUT:
        assert (chain.path / "anvil.broken.json").read_text() == CUT


@pytest.mark.parametrize("previous", [None, "[]", "{"])
def test_a_chain_without_a_whole_state_is_not_started_from_nothing(chain, previous):
    anvil.state_path(chain).write_text(CUT)
    if previous is not None:
        anvil.previous_path(chain).write_text(previous)
    with pytest.raises(ChainError, match=r"cannot be read, neither anvil\.json nor anvil\.previous\.json"):
        anvil.recover(chain)
    assert anvil.state_path(chain).read_text() == CUT


def test_only_a_whole_state_replaces_the_copy(chain):
    state, previous = anvil.state_path(chain), anvil.previous_path(chain)
    anvil.keep_copy(chain)
    assert not previous.exists()
    state.write_text('{"block": 1}')
    anvil.keep_copy(chain)
    assert previous.read_text() == '{"block": 1}'
    time.sleep(0.02)
    state.write_text(CUT)
    anvil.keep_copy(chain)
    assert previous.read_text() == '{"block": 1}'
    state.write_text(WHOLE)
    anvil.keep_copy(chain)
    assert previous.read_text() == WHOLE
    state.write_text('{"block": 3}')
    os.utime(state, (1.0, 1.0))  # the clock was set back
    anvil.keep_copy(chain)
    assert previous.read_text() == '{"block": 3}'
