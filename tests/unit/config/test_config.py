import shutil
from pathlib import Path

import pytest
import yaml
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from omegaconf import OmegaConf

from codezero.config import (
    LossType,
    NodeConfig,
    PeerTasks,
    PushedCheckpoint,
    RewardConfig,
    TrainConfig,
    TrainMethod,
    VerdictMode,
    Vote,
)
from codezero.config.load import explain, load_config, settings_of
from codezero.errors import ConfigError
from tests.settings import by_key, leaves

CONFIGS = Path(__file__).parents[3] / "configs"
CHOICES = [f"{f.parent.name}={f.stem}" for f in sorted(CONFIGS.glob("*/*.yaml"))]


NEEDED = {"ledger=wallet": [f"ledger.contract_address=0x{'1' * 40}"]}
"""What a shipped file leaves to the user."""


@pytest.mark.parametrize("choice", CHOICES)
def test_every_shipped_file_loads(choice):
    assert isinstance(load_config([choice, *NEEDED.get(choice, [])]), NodeConfig)


def test_every_group_of_the_house_is_there():
    groups = {path.name for path in CONFIGS.iterdir() if path.is_dir()}
    assert groups >= {"model", "tasks", "evaluator", "train", "swarm", "ledger", "tracking", "preset", "reward"}


def test_faithful_preset_is_the_public_nodes_table():
    node = load_config(["preset=faithful"])
    assert (node.swarm.num_local, node.swarm.num_external, node.rollout.num_generations) == (2, 2, 2)
    assert (node.rollout.max_new_tokens, node.rollout.temperature, node.rollout.top_p) == (256, 1.0, 1.0)
    train = node.train
    assert (train.epsilon, train.epsilon_high, train.beta, train.learning_rate) == (0.2, 0.28, 0.0, 1e-6)
    assert (train.num_iterations, train.minibatch_size, train.method) == (1, 2, TrainMethod.full)
    assert (node.evaluator.model, node.evaluator.verdict) == ("Qwen2.5-Coder-1.5B-Instruct", VerdictMode.generate)
    assert node.reward == RewardConfig(correct=1.0, structure=0.0, formatting=0.0, alignment=0.0, hard_verdict=True)
    assert (node.evaluator.dry_run, node.evaluator.fatal_rules) == (False, False)
    assert (node.tasks.mbpp.weight, node.tasks.code_contests.weight) == (1.0, 1.0)


OPERATOR_S_OWN = {
    *("seed", "rounds", "state_dir", "model.name", "model.device", "model.cache_dir", "model.threads"),
    *("rollout.servers", "rollout.transfer"),
    *("tasks.mbpp.path", "tasks.code_contests.path", "evaluator.batch_size", "evaluator.url", "evaluator.api_key_env"),
    *("evaluator.timeout_s", "evaluator.retries", "evaluator.workers"),
    *("train.micro_batch_size", "train.gradient_checkpointing"),
    *("train.memory_limit_gib", "proposer.batches", "proposer.backend", "proposer.model", "proposer.url"),
    *("proposer.api_key_env", "proposer.timeout_s", "proposer.retries", "swarm.network", "swarm.name"),
    *("swarm.bootnodes", "swarm.listen", "swarm.announce", "swarm.reach", "swarm.identity_path", "swarm.banned_peers"),
    *("swarm.startup_timeout_s", "ledger.kind", "ledger.path", "ledger.round_s", "ledger.rpc_url"),
    *("ledger.contract_address", "ledger.chain_id", "ledger.keystore", "ledger.passphrase_file", "ledger.proxy_url"),
    *("ledger.org_id", "ledger.account_address", "ledger.login_dir", "ledger.max_fee_gwei", "ledger.warn_below_eth"),
    *("ledger.patience_s", "ledger.bootnodes"),
}
"""Settings that say where and with what a node runs, and for whom; all others decide what it does in a round."""
BESIDE_THE_ROUND = ("judge", "market", "push", "tracking", "verifier")


def test_faithful_preset_leaves_nothing_that_a_node_does_to_a_default():
    preset = yaml.safe_load((CONFIGS / "preset" / "faithful.yaml").read_text())
    chosen = {
        f"{key.removeprefix('override /')}/{name}.yaml"
        for choice in preset.pop("defaults")
        for key, name in choice.items()
    }
    assert chosen == {f"{group}/faithful.yaml" for group in ("tasks", "evaluator", "reward", "proposer")}
    files = {Path(name).parent.name: yaml.safe_load((CONFIGS / name).read_text()) for name in chosen}
    pinned = {*leaves(preset), *leaves(files)}
    settings = {key for key in by_key(load_config([])) if key.partition(".")[0] not in BESIDE_THE_ROUND}
    unsettled = settings - pinned - OPERATOR_S_OWN
    assert not unsettled, (
        f"{sorted(unsettled)}: give each the value that it has had until now in configs/preset/faithful.yaml or in a "
        "faithful file of its group, or say here that it is the operator's own"
    )
    assert settings >= OPERATOR_S_OWN
    assert not pinned & OPERATOR_S_OWN


def test_the_defaults_of_training_in_the_code_are_the_shipped_ones():
    assert load_config([]).train == TrainConfig()


@pytest.mark.parametrize(
    ("settings", "vote"),
    [
        (["swarm=native"], Vote.mean),
        (["swarm=genrl"], Vote.sum),
        (["preset=faithful", "swarm=native"], Vote.sum),
        (["swarm=genrl", "swarm.vote=mean"], Vote.mean),
    ],
)
def test_votes_are_the_public_networks_where_that_is_asked_for(settings, vote):
    assert load_config(settings).swarm.vote is vote


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        (["swarm=native"], PeerTasks.known),
        (["preset=local", "swarm=native"], PeerTasks.known),
        (["swarm.network=native"], PeerTasks.known),
        (["swarm=genrl"], PeerTasks.any),
        (["preset=faithful", "swarm=native"], PeerTasks.any),
        (["swarm=genrl", "swarm.tasks=known"], PeerTasks.known),
    ],
)
def test_a_node_knows_what_it_trains_on_but_in_the_public_networks_way(settings, tasks):
    assert load_config(settings).swarm.tasks is tasks


def test_local_preset_needs_nobody():
    node = load_config(["preset=local"])
    assert (node.tasks.mbpp.weight, node.tasks.code_contests.weight, node.tasks.builtin.weight) == (0, 0, 1)


def test_an_override_wins_over_a_preset():
    assert load_config(["preset=faithful", "train.loss_type=dapo"]).train.loss_type is LossType.dapo


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.learnin_rate=1", r"unknown setting train\.learnin_rate: did you mean train\.learning_rate"),
        ("zzz=1", r"unknown setting zzz: see `[^ ]*codezero run --show-config`"),
        ("tasks=mpbb", r"tasks=mpbb is not one of the shipped choices: auto, builtin, code_contests, faithful, mbpp"),
        ("rounds", r"'rounds' is not a setting: write it as key=value"),
        ("train.epsilon=abc", r"train\.epsilon: Value 'abc' of type 'str' could not be converted to Float"),
        ("train.m2_threshold=0", r"train\.m2_threshold=0\.0 is not possible: use 0\.04"),
        ("train.lora_r=1024", r"train\.lora_r=1024 is not possible: use a rank up to 512, such as 16"),
        ("train.lora_alpha=0", r"train\.lora_alpha=0 is not possible: use twice the rank"),
        ("train.method=half", r"train\.method: Invalid value 'half', expected one of \[full, lora\]"),
        ("rollout.num_generations=1", r"rollout\.num_generations=1 is not possible: .*use 2 or more"),
        ("rollout.temperature=0", r"rollout\.temperature=0.* is not possible"),
        ("rollout.temperature=101", r"rollout\.temperature=101\.0 is not possible: use a value from 0\.01 to 100"),
        ("rollout.temperature=0.009", r"rollout\.temperature=0\.009 is not possible: use a value from 0\.01 to 100"),
        ("proposer.temperature=101", r"proposer\.temperature=101\.0 is not possible: use a value up to 100"),
        ("verifier.temperature=101", r"verifier\.temperature=101\.0 is not possible: use a value from 0\.01 to 100"),
        ("verifier.temperature=0.009", r"verifier\.temperature=0\.009 is not possible: use a value from 0\.01 to"),
        ("tasks.builtin.min_difficulty=6", r"levels run from 1 to 5"),
        ("tracking.level=LOUD", r"tracking\.level=LOUD is not possible: use one of DEBUG"),
        ("rounds=-1", r"rounds=-1 is not possible"),
        (
            "model.threads=9999999999",
            r"model\.threads=9999999999 is not possible: use 0 for one per core, at most 1024",
        ),
        ("rounds=[1]", r"rounds: Value '\[1\]' of type 'list'"),
        ("swarm.bootnodes=[[/ip4]]", r"swarm\.bootnodes=\[\['/ip4'\]\] is not possible: it is a list of texts"),
        ("tasks.modules=[[a]]", r"tasks\.modules=\[\['a'\]\] is not possible: it is a list of texts"),
        ("swarm=~nobody-here/a.yaml", r"swarm file ~nobody-here/a\.yaml: there is no such user; check the path"),
    ],
)
def test_a_mistake_names_the_key_and_the_fix(override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_config([override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"defaults: [\n\tx", r"node\.yaml, line 2: .*: correct it, or CODEZERO_RESET_CONFIG=1"),
        (b"seed: 1\nseed: 2", r"node\.yaml, line 2: found duplicate key.*: correct it"),
        (b"\xff\xfe\xfa", "correct it, or CODEZERO_RESET_CONFIG=1 .* puts the shipped files back"),
        (b"", r"node\.yaml: it lacks `- schema` among its defaults: correct it, or CODEZERO_RESET_CONFIG=1"),
    ],
    ids=["no YAML", "a key twice", "no text", "nothing"],
)
def test_a_settings_file_that_cannot_be_read_is_a_mistake_with_its_place(text, says, tmp_path, monkeypatch):
    shutil.copytree(CONFIGS, tmp_path / "configs")
    (tmp_path / "configs" / "node.yaml").write_bytes(text)
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", str(tmp_path / "configs"))
    with pytest.raises(ConfigError, match=says) as caught:
        load_config()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "swarm/alone.yaml",
            "banned_peerz: [a]",
            r"unknown setting swarm\.banned_peerz in .*/swarm/alone\.yaml: .*swarm\.banned_peers",
        ),
        (
            "preset/none.yaml",
            "market: {max_bett: 1}",
            r"unknown setting market\.max_bett in .*/preset/none\.yaml: .*market\.max_bet",
        ),
        ("node.yaml", "sed: 1", r"unknown setting sed in .*/node\.yaml: did you mean seed"),
    ],
)
def test_a_misspelt_name_in_a_settings_file_is_told_with_the_nearest_one(name, text, says, tmp_path, monkeypatch):
    shutil.copytree(CONFIGS, tmp_path / "configs")
    shipped = (tmp_path / "configs" / name).read_text().replace("{}", "")
    (tmp_path / "configs" / name).write_text(f"{shipped}\n{text}\n")
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", str(tmp_path / "configs"))
    with pytest.raises(ConfigError, match=says) as caught:
        load_config()
    assert "\n" not in str(caught.value)


def test_reasoning_gym_is_a_choice_of_tasks_and_its_name_the_modules_last_part():
    tasks = load_config(["tasks=reasoning_gym"]).tasks
    assert tasks.environments == {"reasoning_gym": "codezero.tasks.reasoning_gym"}
    assert tasks.builtin.weight == tasks.mbpp.weight == tasks.code_contests.weight == 0


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["tasks.modules=[sums]", "swarm=genrl"], "GenRL's format has no environments: use swarm=native"),
        (["swarm=genrl", "swarm.logprobs=true"], "swarm.logprobs=True .*GenRL's format has none: use swarm=native"),
        (["rollout.num_generations=65", "swarm=native"], "at most 64 attempts of a group: use so many, or swarm=alone"),
        (["swarm.pool=8", "swarm.num_external=0"], "swarm.pool=8 .*num_external=0 trains on none, or set both"),
        (["swarm.pool=2", "swarm.num_external=4"], "swarm.pool=2 .*at least swarm.num_external=4"),
        (["state_dir=~nobody-here/x"], "state_dir=~nobody-here/x is not possible: there is no such user"),
        ([f"seed={2**63}"], "seed=9223372036854775808 is not possible"),
        (["swarm.patience=inf"], "swarm.patience=inf is not possible: use a finite number"),
        (["reward.correct=nan"], "reward.correct=nan is not possible"),
        (["swarm.listen=/ip4/0.0.0.0/tcp/1"], r"swarm.listen is a list: write it as 'swarm.listen=\[A,B\]'"),
        (["state_dir="], "state_dir='' is not possible: use state"),
        (["tracking.log_dir="], "tracking.log_dir='' is not possible: use logs"),
        (["train.weight_decay=-1"], "train.weight_decay=-1.0 is not possible: use 0"),
        (["tasks.modules=[a.sums,b.sums]"], "tasks.modules=.* is not possible: give each another last name"),
        (["tasks.modules=[my.builtin]"], "tasks.modules=.* is not possible: give each another last name"),
        (["preset=local", "tasks.builtin.weight=0"], "every weight 0 .*give at least one source a weight"),
    ],
)
def test_settings_that_mean_nothing_or_exclude_each_other_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config(overrides)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("train.replay=4", r"train\.replay=4 is not possible: .* learns from new groups alone: leave it out"),
        ("train.method=full", r"train\.method=full is not possible: .* use train\.method=lora"),
        ("preset=faithful", r"train\.method=full is not possible"),
    ],
)
def test_what_a_solver_beside_a_test_writer_does_not_do_is_refused(setting, says):
    load_config([setting])
    with pytest.raises(ConfigError, match=says):
        load_config([setting, "verifier.train_solver=true"])


def test_the_best_checkpoint_is_pushed_only_where_probes_tell_which_it_is():
    best = ["push.enabled=true", "push.checkpoint=best"]
    assert load_config(best).push.checkpoint is PushedCheckpoint.best
    with pytest.raises(ConfigError, match=r"push\.checkpoint=best is not possible: .* use probe\.share=0\.05"):
        load_config([*best, "probe.share=0"])


@pytest.mark.parametrize("repo", ["me/my-model", "my_model.v2", "a", "x" * 96, "_me/_"])
def test_a_repository_that_the_hub_takes_is_one(repo):
    validate_repo_id(repo)
    assert load_config([f"push.repo={repo}"]).push.repo == repo


@pytest.mark.parametrize(
    "repo",
    ["a--b", "a..b", "me/a--b", "-a", "a.", "me/.a", "me-/a", "a.git", "a/b/c", "a b", "x" * 97, "me/", "me/../you"],
)
def test_a_repository_that_the_hub_refuses_is_refused_at_the_start(repo):
    with pytest.raises(HFValidationError):
        validate_repo_id(repo)
    with pytest.raises(ConfigError, match=r"push\.repo=.* is not possible: use NAME or OWNER/NAME"):
        load_config([f"push.repo={repo}"])


@pytest.mark.parametrize(
    "path",
    [
        "~/swarm.sqlite",
        "my runs (old)/a, b.sqlite",
        "it's",
        "{",
        "a=b",
        "${x",
        "/data/a,b",
        "choice(a,b)",
        "2026_11_25",
        "1e5",
        "1.50",
        "true",
        "NaN",
    ],
)
def test_a_path_means_itself_whatever_hydra_would_make_of_it(path):
    assert load_config([f"ledger.path={path}"]).ledger.path == path


def test_settings_without_a_value_take_texts():
    """`load_config` quotes what is given for them."""
    empty = [key for key, value in by_key(NodeConfig()).items() if value is None]
    for key in empty:
        assert by_key(load_config([f"{key}=2026_11_25"]))[key] == "2026_11_25"
    assert empty


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["preset=faithful", "rounds=3"],
        ["swarm=native", "swarm.bootnodes=[/ip4/127.0.0.1/tcp/1/p2p/Qm]", "swarm.name=its"],
        ["ledger=wallet", "ledger.rpc_url='http://x/?a=b'", f"ledger.contract_address=0x{'ab' * 20}"],
        ["train.method=lora", "train.learning_rate=2e-6", "ledger.path=~/a b.sqlite", "tracking.wandb=offline"],
    ],
)
def test_a_configuration_as_settings_is_the_same_again(settings):
    config = load_config(settings)
    assert load_config(settings_of(config)) == config


def test_shown_config_is_yaml_that_holds_the_values():
    loaded = load_config(["seed=7", "tasks.mbpp.path=a/b.jsonl", "train.learning_rate=3e-7"])
    shown = OmegaConf.create(explain(loaded))
    assert OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(NodeConfig), shown)) == loaded
    assert "# Adam's step size for full fine-tuning; held constant." in explain(loaded)
