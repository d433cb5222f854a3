"""run_rl_swarm.sh as people use it: on a terminal, where it asks, and without one."""

import os
import signal
import subprocess
import sys
import time

import pytest

from codezero.ledger import keystore
from tests.commands import executable
from tests.e2e.checkout import checkout as checkout_of
from tests.processes import is_alive, wait_until_gone
from tests.unit.launch.login_app import ORG_ID, LoginApp
from tests.unit.launch.stand_in import ROOT, Checkout
from tests.unit.launch.tty import Tty

WHERE = "where shall your node train?"
PUSH = "push the trained model to the Hugging Face hub? [y/N]"
MODEL = "model: a name, hub id or folder, or Enter for the default:"
TWO_GPUS = "#!/bin/sh\nprintf '0\\n1\\n'\n"
SWARM = """\
version: 1
name: home
network: native
bootnodes:
- /ip4/127.0.0.1/tcp/4001/p2p/QmWgbQ9dQoMBGbXbMRPHsYgNqzZMbHwoZHs3Y2vvbN1hLX
ledger: local
num_generations: 4
"""


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


@pytest.fixture
def on_terminal(checkout):
    open_ones = []

    def start(*arguments, **environment):
        tty = Tty(checkout.command(*arguments), cwd=checkout.folder, env={**checkout.environment, **environment})
        open_ones.append(tty)
        return tty

    yield start
    for tty in open_ones:
        tty.close()


def without_terminal(checkout, *arguments, folder=None, **environment):
    """Runs it to its end, from another folder if one is given; returns exit code and output."""
    done = subprocess.run(
        checkout.command(*arguments),
        cwd=folder or checkout.folder,
        env={**checkout.environment, "NODE": "ends", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout


def test_enter_at_every_question_starts_a_swarm_of_ones_own(on_terminal):
    tty = on_terminal()
    tty.expect(WHERE)
    tty.type("\n")
    tty.expect(PUSH)
    tty.type("\n")
    tty.expect(MODEL)
    tty.type("\n")
    tty.expect("swarm 'home' with 2 nodes and 1 proposer")
    tty.expect("node-2")
    tty.type("\x03")
    assert tty.wait() == 0


def test_joining_asks_for_the_swarm_file_until_it_can_be_one(checkout, on_terminal):
    (checkout.folder / "friends.yaml").write_text(SWARM)
    tty = on_terminal(NODE="ends")
    tty.expect(WHERE)
    tty.type("7\n")
    tty.expect("type a number from 1 to 4")
    tty.type("2\n")
    tty.expect("swarm file:")
    tty.type("friends\n")
    tty.expect("a swarm file ends in .yaml")
    tty.type("friends.yaml\n")
    tty.expect(PUSH)
    tty.type("perhaps\n")
    tty.expect("type y or n")
    tty.type("n\n")
    tty.expect(MODEL)
    tty.type("org/it's $(touch hacked)\n")
    tty.expect("starts run --stop-with-parent swarm=friends.yaml model.name='org/it\\'s $(touch hacked)'")
    tty.expect("input is a terminal False output True")
    assert tty.wait() == 0
    assert not (checkout.folder / "hacked").exists()


def test_a_token_is_not_shown_and_goes_to_the_node_alone(checkout, on_terminal):
    (checkout.folder / "friends.yaml").write_text(SWARM)
    tty = on_terminal("--push", "--join", "friends.yaml", NODE="ends")
    tty.expect("token of the hub, one that may write (not shown; Enter to push nothing):")
    tty.type("hf_secret\n")
    tty.expect("swarm=friends.yaml push.enabled=true")
    tty.expect("HUGGINGFACE_ACCESS_TOKEN hf_secret")
    assert tty.wait() == 0
    assert tty.shown.count("hf_secret") == 1


def test_a_new_wallet_is_made_and_its_passphrase_goes_to_the_node(checkout, on_terminal):
    tty = on_terminal("--testnet", "--no-market", NODE="ends")
    tty.expect("how does it get its account there?")
    tty.type("2\n")
    tty.expect(PUSH)
    tty.type("\n")
    tty.expect(MODEL)
    tty.type("\n")
    for question in ("passphrase of the wallet:", "the same again:"):
        tty.expect(question)
        tty.type("long enough\n")
    tty.expect("back up wallet.json and the passphrase")
    tty.expect("swarm=genrl rollout.num_generations=2 judge.enabled=true ledger=modal ledger.kind=wallet")
    tty.expect("CODEZERO_WALLET_PASSPHRASE long enough")
    assert tty.wait() == 0
    assert keystore.address(checkout.folder / "wallet.json") in tty.shown


def test_a_wallet_is_unlocked_before_the_node_starts_and_a_mistake_may_be_mended(checkout, on_terminal):
    keystore.save(bytes(31) + b"7", checkout.folder / "wallet.json", "long enough", scrypt_n=2)
    tty = on_terminal("ledger=wallet", "ledger.contract_address=0x" + "1" * 40, NODE="ends")
    tty.expect("passphrase of the wallet:")
    tty.type("wrong one\n")
    tty.expect("does not open")
    tty.expect("passphrase of the wallet:")
    tty.type("long enough\n")
    tty.expect("CODEZERO_WALLET_PASSPHRASE long enough")
    assert tty.wait() == 0


def test_with_its_passphrase_at_hand_a_wallet_is_made_without_a_question(checkout):
    settings = ("ledger=wallet", "ledger.contract_address=0x" + "1" * 40)
    code, shown = without_terminal(checkout, *settings, CODEZERO_WALLET_PASSPHRASE="long enough")
    assert code == 0, shown
    made = keystore.load(checkout.folder / "wallet.json", "long enough")
    assert "back up wallet.json" in shown
    assert without_terminal(checkout, *settings, CODEZERO_WALLET_PASSPHRASE="long enough")[0] == 0
    assert keystore.load(checkout.folder / "wallet.json", "long enough") == made


def test_a_swarm_of_ones_own_asks_for_the_wallets_passphrase_too(checkout, on_terminal):
    keystore.save(bytes(31) + b"7", checkout.folder / "wallet.json", "long enough", scrypt_n=2)
    tty = on_terminal("--nodes", "1", "--proposers", "0", "ledger=wallet", "ledger.contract_address=0x" + "1" * 40)
    tty.expect("passphrase of the wallet:")
    tty.type("\x03")
    tty.expect("stopped before a node was started")


@pytest.fixture
def login(checkout):
    found = LoginApp(checkout.folder)
    checkout.environment["PATH"] = f"{found.tools}:{checkout.environment['PATH']}"
    checkout.environment["CODEZERO_SIGN_IN_PORT"] = str(found.port)
    return found


def test_ctrl_c_while_waiting_for_the_sign_in_ends_the_app_and_keeps_what_is_signed_in(login, on_terminal):
    login.sign_in(ORG_ID, activated=False)
    tty = on_terminal("--testnet", "--sign-in", "app", "--yes")
    tty.expect("sign-in: ALCHEMY_API_KEY is not set here or in modal-login/sign-in.env")
    tty.expect("is not activated yet: continue in the browser; 15 minutes left")
    tty.type("\x03")
    tty.expect("stopped before a node was started; keys, sign-ins and settings are unchanged")
    assert tty.wait() == 130
    assert (login.folder / "temp-data" / "userData.json").exists()
    assert (login.folder / "temp-data" / "userApiKey.json").exists()
    wait_until_gone([login.pid()])


def test_a_ctrl_c_while_the_app_ends_after_its_node_waits_no_longer_and_changes_nothing(login, on_terminal, checkout):
    login.sign_in(ORG_ID)
    (login.folder.parent / "slow").touch()
    tty = on_terminal("--testnet", "--sign-in", "app", "--yes", NODE="ends")
    tty.expect("input is a terminal")
    wait_until_gone(checkout.pids())
    time.sleep(1)  # the launcher sees the end of it within 0.1 s, and the app needs 3 s for its own
    assert is_alive(login.pid())
    tty.type("\x03")
    tty.expect("sign-in: the app is still ending and is not waited for")
    assert tty.wait() == 0
    assert "stopped before a node" not in tty.shown
    wait_until_gone([login.pid()])


def test_a_second_ctrl_c_while_the_app_ends_leaves_at_once(login, on_terminal):
    login.sign_in(ORG_ID, activated=False)
    (login.folder.parent / "slow").touch()
    tty = on_terminal("--testnet", "--sign-in", "app", "--yes")
    tty.expect("is not activated yet: continue in the browser")
    tty.type("\x03")
    time.sleep(1)
    tty.type("\x03")
    tty.expect("sign-in: the app is still ending and is not waited for")
    tty.expect("stopped before a node was started; keys, sign-ins and settings are unchanged")
    assert tty.wait() == 130
    assert "Traceback" not in tty.shown
    wait_until_gone([login.pid()])


def test_only_nodes_get_secrets(login, on_terminal, checkout):
    names = ("HUGGINGFACE_ACCESS_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "CODEZERO_WALLET_PASSPHRASE")
    secrets = dict.fromkeys((*names, "WANDB_API_KEY", "OPENAI_API_KEY"), "hf_secret")
    browser = executable(login.tools / "browser", f"#!/bin/sh\nenv >{checkout.folder}/seen\n")
    login.sign_in(ORG_ID, activated=False)
    tty = on_terminal("--testnet", "--sign-in", "app", "--yes", **secrets, BROWSER=f"{browser} %s")
    tty.expect("continue in the browser")
    login.sign_in(ORG_ID)
    tty.expect("HUGGINGFACE_ACCESS_TOKEN hf_secret")
    tty.expect("HF_TOKEN hf_secret")
    tty.expect("CODEZERO_WALLET_PASSPHRASE hf_secret")
    assert not set(secrets) & set(login.environment())
    assert "hf_secret" not in (checkout.folder / "seen").read_text()
    tty.type("\x03")


def test_a_session_is_resumed_for_a_node_that_the_app_ends_with(login, on_terminal):
    login.sign_in(ORG_ID)
    tty = on_terminal("--testnet", "--yes", HUGGINGFACE_ACCESS_TOKEN="hf_secret")
    tty.expect(f"sign-in: user {ORG_ID} is already signed in")
    tty.expect("starts run --stop-with-parent swarm=genrl rollout.num_generations=2 judge.enabled=true ledger=modal")
    tty.expect(f"ledger.proxy_url='http://127.0.0.1:{login.port}' ledger.org_id='{ORG_ID}' ledger.login_dir='")
    tty.expect("HUGGINGFACE_ACCESS_TOKEN hf_secret")
    seen = login.environment()
    assert "HUGGINGFACE_ACCESS_TOKEN" not in seen
    assert seen["SMART_CONTRACT_ADDRESS"] == "0x7745a8FE4b8D2D2c3BB103F8dCae822746F35Da0"
    assert seen["NODE_KEYS"] == str(login.folder.parent / "swarm.pem")
    tty.type("\x03")
    tty.expect("node stops")
    assert tty.wait() == 0
    wait_until_gone([login.pid()])


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--join", "friends.yaml"], {}),
        (["--join=friends.yaml"], {}),
        (["swarm=friends.yaml"], {}),
        ([], {"CODEZERO_JOIN": "friends.yaml"}),
    ],
)
def test_a_swarm_file_is_that_of_the_folder_it_is_named_from(checkout, tmp_path, arguments, environment):
    folder = tmp_path / "from here"
    folder.mkdir()
    (folder / "friends.yaml").write_text(SWARM)
    code, shown = without_terminal(checkout, *arguments, folder=folder, **environment)
    assert code == 0
    assert f"starts run --stop-with-parent swarm={folder}/friends.yaml" in shown


def test_files_named_like_the_value_of_an_option_are_not_taken_for_it(checkout, tmp_path):
    for name in ("3", "--local", "seed=5"):
        (tmp_path / name).touch()
    code, shown = without_terminal(checkout, "--local", "seed=5", "--rounds", "3", folder=tmp_path)
    assert code == 0
    assert "preset=local seed=5 rounds=3 rounds=3\n" in shown


def test_the_script_starts_where_cd_prints_where_it_goes(checkout):
    started = ["bash", f"{checkout.folder.name}/run_rl_swarm.sh", "--local"]
    environment = {**checkout.environment, "NODE": "ends", "CDPATH": f".:{checkout.folder.parent}"}
    done = subprocess.run(
        started, cwd=checkout.folder.parent, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_script_may_be_started_by_a_link_elsewhere(checkout, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "relative").symlink_to(f"../{checkout.folder.relative_to(tmp_path)}/run_rl_swarm.sh")
    (tmp_path / "bin" / "node").symlink_to(tmp_path / "bin" / "relative")
    (tmp_path / "bin" / "friends.yaml").write_text(SWARM)
    done = subprocess.run(
        ["./node", "--join=friends.yaml"],
        cwd=tmp_path / "bin",
        env={**checkout.environment, "NODE": "ends"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"starts run --stop-with-parent swarm={tmp_path}/bin/friends.yaml" in done.stdout


def test_a_swarm_whose_ledger_needs_a_sign_in_starts_the_app_too_unless_one_is_named(checkout, login):
    login.sign_in(ORG_ID)
    invitation = SWARM.replace("ledger: local", "ledger: modal")
    (checkout.folder / "friends.yaml").write_text(invitation)
    _, shown = without_terminal(checkout, "--join", "friends.yaml")
    assert f"starts run --stop-with-parent swarm=friends.yaml ledger.proxy_url='http://127.0.0.1:{login.port}'" in shown
    _, shown = without_terminal(checkout, "--join", "friends.yaml", "ledger.proxy_url=http://example.org")
    assert "starts run --stop-with-parent swarm=friends.yaml ledger.proxy_url=http://example.org rounds=0\n" in shown
    assert login.asked().count("start") == 1


def test_nodes_on_several_gpus_share_one_sign_in(checkout, login):
    login.sign_in(ORG_ID)
    executable(login.tools / "nvidia-smi", TWO_GPUS)
    code, shown = without_terminal(checkout, "--testnet")  # all GPUs by default
    assert code == 0
    assert "nothing was asked; defaults taken: sign-in in the browser (other: --sign-in wallet)" in shown
    for number in ("0", "1"):
        assert any(
            line.startswith(f"gpu-{number} | starts run") and f"ledger.org_id='{ORG_ID}'" in line
            for line in shown.splitlines()
        )
    keys = [str(checkout.folder / "gpus" / f"gpu-{number}" / "swarm.pem") for number in "01"]
    assert login.environment()["NODE_KEYS"].split(",") == keys  # before any of them is there
    assert login.asked().count("start") == 1
    wait_until_gone([login.pid()])


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_leaving_at_a_question_starts_nothing(checkout, on_terminal, key):
    tty = on_terminal()
    tty.expect("number:")
    tty.type(key)
    tty.expect("stopped before a node was started")
    assert tty.wait() == 130
    assert not (checkout.folder / "starts.txt").exists()


def test_one_ctrl_c_stops_the_node_once_and_cleanly(checkout, on_terminal):
    tty = on_terminal("--local")
    tty.expect("input is a terminal")
    tty.type("\x03")
    tty.expect("node stops")
    assert tty.wait() == 0
    assert tty.shown.count("node stops") == 1
    wait_until_gone(checkout.pids())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_script_reaches_the_node(checkout, on_terminal, number):
    tty = on_terminal("--local")
    tty.expect("input is a terminal")
    os.kill(tty.process.pid, number)
    tty.expect("node stops")
    tty.wait()
    wait_until_gone(checkout.pids())


def test_without_a_terminal_nothing_is_asked_and_the_defaults_are_told(checkout):
    code, shown = without_terminal(checkout)
    assert code == 0
    assert WHERE not in shown
    assert (
        "nothing was asked; defaults taken: a swarm of your own on this machine (others: --join FILE, --testnet, "
        "--local), no push to Hugging Face, the configured model\n"
    ) in shown
    assert "swarm 'home' with 2 nodes and 1 proposer" in shown
    log = (checkout.folder / "swarms" / "home" / "swarm_launcher.log").read_text()
    assert "swarm 'home' with 2 nodes and 1 proposer" in log
    assert "Z node-1     | " in log


@pytest.mark.parametrize("name", ["HUGGINGFACE_ACCESS_TOKEN", "CODEZERO_WALLET_PASSPHRASE"])
def test_in_a_swarm_of_ones_own_only_nodes_get_the_secret(checkout, name):
    code, shown = without_terminal(checkout, "--local", "--nodes", "1", **{name: "hf_secret"})
    assert code == 0
    assert "swarm 'home' with 1 node and 1 proposer" in shown
    pairs = [[part.strip() for part in line.split(" | ", 1)] for line in shown.splitlines() if " | " in line]
    tokens = {who: said.split()[1] for who, said in pairs if said.startswith(f"{name} ")}
    assert tokens.pop("node-1") == "hf_secret"
    assert tokens.pop("bootnode") == "None"
    assert set(tokens.values()) <= {"None"}  # of the proposer, which may be stopped before it says so


def test_settings_alone_run_a_node_as_configured(checkout):
    code, shown = without_terminal(checkout, "train.method=lora", "--rounds", "3", "seed=5")
    assert code == 0
    assert "starts run --stop-with-parent train.method=lora seed=5 rounds=3 rounds=3\n" in shown
    assert "nothing was asked" not in shown


def test_a_crashed_node_is_started_again(checkout):
    code, shown = without_terminal(checkout, "--local", NODE="crashes")
    assert code == 0
    assert "node | crashed: killed by signal 9, Killed; starts again in 1 s where it stopped\n" in shown
    assert shown.count("starts run --stop-with-parent preset=local rounds=0\n") == 2
    log = (checkout.folder / "logs" / "swarm_launcher.log").read_text()
    assert "Z node | crashed: killed by signal 9, Killed; starts again in 1 s" in log


def test_an_edited_configuration_is_used_and_told_until_it_is_reset(checkout):
    without_terminal(checkout, "--local")
    node_yaml = checkout.folder / "configs" / "node.yaml"
    node_yaml.write_text(node_yaml.read_text().replace("seed: 0", "seed: 9"))
    _, shown = without_terminal(checkout, "--local")
    assert "configuration: yours differ from the shipped ones and are kept" in shown
    assert "  node.yaml: seed: 9\n" in shown
    assert "\nseed: 9\n" in without_terminal(checkout, "--local", "--show-config")[1]
    _, shown = without_terminal(checkout, "--local", CODEZERO_RESET_CONFIG="1")
    assert "configuration: node.yaml as shipped again; yours are in " in shown
    assert "\nseed: 0\n" in without_terminal(checkout, "--local", "--show-config")[1]


@pytest.mark.parametrize("port", ["²", "9" * 5000, "0"])
def test_a_port_in_the_environment_that_is_none_is_told_in_one_line(checkout, port):
    code, shown = without_terminal(checkout, "--testnet", CODEZERO_SIGN_IN_PORT=port)
    assert code == 1
    assert f"error: CODEZERO_SIGN_IN_PORT={port} is not a port: use 1 to 65535, such as 3000\n" in shown


def test_the_environment_answers_like_options(checkout):
    (checkout.folder / "friends.yaml").write_text(SWARM)
    answers = {"CODEZERO_JOIN": "friends.yaml", "MODEL_NAME": "org/model", "CPU_ONLY": "1"}
    code, shown = without_terminal(checkout, "seed=5", **answers, HUGGINGFACE_ACCESS_TOKEN="None")
    assert code == 0
    assert "swarm=friends.yaml model.name='org/model' model.device=cpu seed=5 rounds=0\n" in shown
    assert "HUGGINGFACE_ACCESS_TOKEN None\n" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--local", "--testnet"], "error: --own, --nodes, --local, --join and --testnet exclude each other"),
        (["--local", "train.speed=9"], "error: unknown setting train.speed"),
        (["--join", "gone.yaml"], "error: swarm file gone.yaml: there is no such file"),
        (["--own", "--gpus", "all"], "error: --gpus: this machine has no NVIDIA GPU"),
        (
            ["--local", "--folder", "mine"],
            "error: --folder mine is for a swarm of your own and for nodes on several GPUs",
        ),
        (["--local", "--gpus", "all"], "error: --gpus: this machine has no NVIDIA GPU"),
    ],
)
def test_a_mistake_is_told_in_one_line_before_anything_starts(checkout, arguments, said):
    code, shown = without_terminal(checkout, *arguments, PATH="/usr/bin:/bin")
    assert code == 1
    assert said in shown
    assert not (checkout.folder / "starts.txt").exists()


def test_a_misspelt_setting_is_refused_before_any_question(on_terminal):
    tty = on_terminal("--testnet", "rollout.num_generation=4")
    tty.expect("error: unknown setting rollout.num_generation: did you mean rollout.num_generations")
    assert tty.wait() == 1
    assert "?" not in tty.shown.partition("error:")[0]


def without_installation(folder, *arguments):
    """Starts the script of a fresh checkout, and returns how it ends without having set anything up."""
    copy = checkout_of(folder)
    bare = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    done = subprocess.run(["./run_rl_swarm.sh", *arguments], cwd=copy, env=bare, capture_output=True, text=True)
    assert not (copy / ".venv").exists()
    return done


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["--local", "swarm.banned_peerz=a"],
            1,
            "error: unknown setting swarm.banned_peerz: did you mean swarm.banned",
        ),
        (["swarm=elsewhere.yaml", "train=gpro"], 1, "error: train=gpro is not one of the shipped choices: grpo"),
        (["--locl"], 2, "error: unrecognized arguments: --locl"),
    ],
)
def test_the_first_start_tells_a_misspelt_name_before_it_sets_up(tmp_path, arguments, code, said):
    done = without_installation(tmp_path, *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_a_check_of_names_needs_no_package():
    command = [sys.executable, "-S", "-m", "codezero", "start", "--check-names", "--local", "seed=1"]
    assert subprocess.run(command, cwd=ROOT, env={}).returncode == 0


def test_a_folder_without_codezero_is_no_virtual_environment(checkout):
    code, shown = without_terminal(checkout, "--local", CODEZERO_VENV="/nowhere")
    assert (code, shown) == (1, "error: CODEZERO_VENV=/nowhere holds no codezero: install it there, or unset it\n")


def test_each_gpu_that_nvidia_smi_names_gets_a_node_of_its_own(checkout):
    tool = executable(checkout.folder / "tools" / "nvidia-smi", TWO_GPUS)
    path = f"{tool.parent}:{checkout.environment['PATH']}"
    code, shown = without_terminal(checkout, "--local", "--gpus", "all", PATH=path)
    assert code == 0
    assert "a node on each of GPU 0, 1" in shown
    for number in ("0", "1"):
        assert f"gpu-{number} | CUDA_VISIBLE_DEVICES {number}\n" in shown
        assert f"state_dir='gpus/gpu-{number}/state'" in shown


def test_help_needs_no_installation(checkout):
    code, shown = without_terminal(checkout, "--help", CODEZERO_VENV="")
    assert code == 0
    assert shown.startswith("Sets up codezero in .venv beside this script")
    assert "CODEZERO_VENV" in shown


def test_the_help_for_all_options_needs_no_installation(tmp_path):
    done = without_installation(tmp_path, "--help-all")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--sign-in-minutes" in done.stdout
