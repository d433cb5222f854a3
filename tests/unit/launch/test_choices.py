"""What is started: options before the environment, that before questions, these before defaults."""

import io
from dataclasses import replace

import pytest

from codezero.config import LedgerKind, Network, swarm_file
from codezero.config.load import load_config
from codezero.config.swarm_file import SwarmFile
from codezero.errors import ConfigError
from codezero.launch import choices
from codezero.launch.choices import Options, SignIn, Way, choose
from codezero.launch.terminal import NotAnswered, Terminal
from codezero.runtime.console import Console

ADDRESS = "/ip4/203.0.113.7/tcp/4001/p2p/QmPbv7NpeUKWm7VUtEKm1Uc9XbNw7iV1qVBNJoqNDmbkhj"


class Scripted(Terminal):
    """Somebody who types these answers; no answer left is Ctrl-C."""

    def __init__(self, *answers, interactive=True):
        self.shown = io.StringIO()
        super().__init__(Console(self.shown), interactive=interactive)
        self.answers = list(answers)
        self.asked = []

    def _typed(self, read):
        if not self.answers:
            raise NotAnswered
        return self.answers.pop(0)

    def text(self, question):
        self.asked.append(question)
        return super().text(question)

    def secret(self, question):
        self.asked.append(question)
        return super().secret(question)


def nobody():
    return Scripted(interactive=False)


def test_a_testnet_node_by_sign_in_is_a_configuration_that_loads():
    chosen = choose(Options(market=False), {}, Scripted("3", "", "", ""))
    assert (chosen.way, chosen.sign_in, chosen.token, chosen.took) == (Way.TESTNET, SignIn.APP, "", ())
    config = load_config(chosen.settings)
    assert config.ledger.kind is LedgerKind.modal
    assert config.ledger.contract_address == "0x7745a8FE4b8D2D2c3BB103F8dCae822746F35Da0"
    assert (config.swarm.network, config.rollout.num_generations) == (Network.genrl, 2)


def test_a_wallet_gets_the_testnets_contract_and_warns_of_little_money():
    chosen = choose(Options(way=Way.TESTNET, sign_in=SignIn.WALLET), {}, nobody())
    ledger = load_config(chosen.settings).ledger
    assert (ledger.kind, ledger.chain_id, ledger.warn_below_eth) == (LedgerKind.wallet, 685685, 0.01)


def test_a_swarm_file_with_an_account_of_the_sign_in_app_takes_a_wallet_if_asked(tmp_path):
    swarm = SwarmFile(
        name="x", network=Network.native, bootnodes=(ADDRESS,), ledger=LedgerKind.modal, num_generations=8
    )
    swarm_file.write(tmp_path / "invite.yaml", swarm)
    joining = Options(way=Way.JOIN, swarm_file=str(tmp_path / "invite.yaml"))
    chosen = choose(joining, {}, nobody())
    assert (chosen.sign_in, load_config(chosen.settings).ledger.kind) == (SignIn.APP, LedgerKind.modal)
    chosen = choose(replace(joining, sign_in=SignIn.WALLET), {}, nobody())
    assert load_config(chosen.settings).ledger.kind is LedgerKind.wallet


@pytest.mark.parametrize("options", [Options(way=Way.LOCAL), Options(settings=["swarm.num_local=2"])])
def test_an_option_of_a_swarm_of_ones_own_is_refused_elsewhere(options):
    with pytest.raises(ConfigError, match="--with-verifier is for a swarm of your own: add --own, or leave it out"):
        choose(replace(options, of_swarm=["--with-verifier"]), {}, nobody())
    assert choose(replace(options, way=Way.OWN, of_swarm=["--with-verifier"]), {}, nobody()).way is Way.OWN


def test_a_new_wallet_lies_beside_a_key_that_is_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options, elsewhere = Options(way=Way.TESTNET, sign_in=SignIn.WALLET), {"IDENTITY_PATH": "/keys/it's/swarm.pem"}
    assert load_config(choose(options, {}, nobody()).settings).ledger.keystore == "wallet.json"
    assert load_config(choose(options, elsewhere, nobody()).settings).ledger.keystore == "/keys/it's/wallet.json"
    (tmp_path / "wallet.json").write_text("{}")
    assert load_config(choose(options, elsewhere, nobody()).settings).ledger.keystore == "wallet.json"


@pytest.mark.parametrize(
    ("options", "environment", "way"),
    [
        (Options(way=Way.LOCAL), {"CODEZERO_JOIN": "testnet"}, Way.LOCAL),
        (Options(), {"CODEZERO_JOIN": "testnet"}, Way.TESTNET),
        (Options(settings=["seed=1"]), {"CODEZERO_JOIN": "local"}, Way.LOCAL),
        (Options(settings=["swarm=native"]), {"CODEZERO_JOIN": "local"}, Way.AS_CONFIGURED),
        (Options(settings=["seed=1"]), {}, Way.AS_CONFIGURED),
        (Options(rounds=1), {"CODEZERO_JOIN": ""}, Way.AS_CONFIGURED),
        (Options(), {}, Way.OWN),
        (Options(model="org/model"), {}, Way.OWN),
    ],
)
def test_what_decides_where_to_train(options, environment, way):
    assert choose(options, environment, nobody()).way is way


def test_a_node_alone_is_one_of_the_answers():
    chosen = choose(Options(), {}, Scripted("4", "", ""))
    assert (chosen.way, chosen.settings) == (Way.LOCAL, ["preset=local"])


def test_who_has_said_where_is_asked_nothing_but_on_the_testnet():
    terminal = Scripted()
    assert choose(Options(way=Way.LOCAL), {}, terminal).settings == ["preset=local"]
    assert choose(Options(settings=["seed=1"]), {}, terminal).settings == ["seed=1"]
    assert terminal.asked == []
    with pytest.raises(NotAnswered):
        choose(Options(way=Way.TESTNET), {}, terminal)


def test_what_is_said_is_not_asked():
    terminal = Scripted()
    options = Options(way=Way.TESTNET, sign_in=SignIn.APP, push=False, model="org/model", market=False)
    assert "model.name='org/model'" in choose(options, {}, terminal).settings
    assert terminal.asked == []


def test_where_nobody_answers_defaults_are_taken():
    chosen = choose(Options(way=Way.TESTNET), {}, nobody())
    assert chosen.sign_in is SignIn.APP
    assert "market.enabled=true" in chosen.settings
    assert "sign-in in the browser (other: --sign-in wallet)" in chosen.took


def test_the_users_settings_come_behind_those_of_the_choice_and_rounds_last():
    options = Options(way=Way.LOCAL, settings=["seed=7", "rounds=5"], rounds=3, model="org/model")
    chosen = choose(options, {"CPU_ONLY": "true"}, nobody())
    assert chosen.settings == [
        "preset=local",
        "model.name='org/model'",
        "model.device=cpu",
        "seed=7",
        "rounds=5",
        "rounds=3",
    ]
    assert load_config(chosen.settings).rounds == 3


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({}, []),
        ({"CPU_ONLY": ""}, []),
        ({"CPU_ONLY": "1"}, ["model.device=cpu"]),
        ({"CPU_ONLY": "0"}, ["model.device=cuda"]),
    ],
)
def test_cpu_only_0_as_in_the_gpu_image_wants_a_gpu(given, settings):
    assert [one for one in choose(Options(way=Way.LOCAL), given, nobody()).settings if "device" in one] == settings


@pytest.mark.parametrize("setting", ["model=qwen_1_5b", "model.name=org/other"])
def test_a_setting_of_the_model_wins_over_the_environment(setting):
    chosen = choose(Options(settings=[setting]), {"MODEL_NAME": "org/model"}, nobody())
    assert chosen.settings == [setting]


def test_a_token_in_the_environment_means_yes_unless_it_says_none_or_an_option_says_no():
    token = {"HUGGINGFACE_ACCESS_TOKEN": "hf_secret"}
    chosen = choose(Options(way=Way.LOCAL), token, nobody())
    assert chosen.token == "hf_secret"
    assert "hf_secret" not in repr(chosen)
    assert choose(Options(way=Way.LOCAL, push=False), token, nobody()).token == ""
    assert choose(Options(way=Way.LOCAL), {"HUGGINGFACE_ACCESS_TOKEN": "None"}, nobody()).token == ""


def test_a_token_has_the_node_push_unless_the_users_own_setting_says_no():
    options = Options(way=Way.LOCAL, settings=["push.every_rounds=5"])
    chosen = choose(options, {"HUGGINGFACE_ACCESS_TOKEN": "hf_secret"}, nobody())
    assert chosen.settings == ["preset=local", "push.enabled=true", "push.every_rounds=5"]
    assert "push.enabled=true" not in choose(Options(way=Way.LOCAL), {}, nobody()).settings


def test_a_token_that_is_asked_for_is_not_shown():
    terminal = Scripted("1", "y", "hf_secret", "")
    chosen = choose(Options(), {}, terminal)
    assert chosen.token == "hf_secret"
    assert "push.enabled=true" in chosen.settings
    assert "hf_secret" not in terminal.shown.getvalue()


def test_no_token_after_all_pushes_nothing_and_says_so():
    terminal = Scripted("1", "y", "", "")
    chosen = choose(Options(), {}, terminal)
    assert (chosen.token, "push.enabled=true" in chosen.settings) == ("", False)
    assert "nothing is pushed" in terminal.shown.getvalue()


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_the_hubs_own_variable_serves_a_push_and_is_no_wish_for_one(variable):
    environment = {variable: "hf_general"}
    assert choose(Options(way=Way.LOCAL), environment, nobody()).token == ""
    assert choose(Options(way=Way.LOCAL, push=True), environment, nobody()).token == "hf_general"


def test_a_push_that_nobody_can_give_a_token_for_is_refused():
    with pytest.raises(ConfigError, match="--push needs a token of the Hugging Face hub that may write"):
        choose(Options(way=Way.LOCAL, push=True), {}, nobody())


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"CODEZERO_JOIN": "mars"}, "CODEZERO_JOIN=mars is not possible: use own, local, testnet or a swarm file"),
        ({"CODEZERO_JOIN": "configured"}, "CODEZERO_JOIN=configured is not possible"),
        ({"CODEZERO_JOIN": "testnet", "CODEZERO_SIGN_IN": "carrier pigeon"}, "use app or wallet"),
        ({"CPU_ONLY": "maybe"}, "CPU_ONLY=maybe is not possible: use 1 or 0"),
        ({"CODEZERO_MARKET": "maybe"}, "CODEZERO_MARKET=maybe is not possible: use 1 or 0"),
    ],
)
def test_a_variable_that_means_nothing_is_refused(environment, said):
    with pytest.raises(ConfigError, match=said):
        choose(Options(), environment, nobody())


@pytest.mark.parametrize(
    ("options", "environment", "answers", "setting"),
    [
        (Options(), {}, ["3", "", "", "", ""], "market.enabled=true"),
        (Options(), {}, ["3", "", "", "", "n"], "market.enabled=false"),
        (Options(way=Way.TESTNET, market=False), {}, ["", "", ""], "market.enabled=false"),
        (Options(way=Way.TESTNET), {"CODEZERO_MARKET": "0"}, ["", "", ""], "market.enabled=false"),
        (Options(way=Way.LOCAL, market=True), {}, [], "market.enabled=true"),
    ],
)
def test_the_market_is_on_the_testnet_unless_refused(options, environment, answers, setting):
    terminal = Scripted(*answers)
    chosen = choose(options, environment, terminal)
    found = [each for each in chosen.settings if each.startswith("market")]
    named = chosen.way is Way.TESTNET and setting.endswith("true")
    assert found == [setting, *(["market.contract_address=" + choices.PUBLIC_MARKET] if named else [])]
    assert terminal.answers == []


def test_elsewhere_the_market_is_left_as_configured():
    assert choose(Options(), {}, Scripted("", "", "")).settings == []
