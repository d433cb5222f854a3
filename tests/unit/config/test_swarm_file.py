import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.config import LedgerKind, Network, swarm_file
from codezero.config.load import load_config
from codezero.config.multiaddr import Multiaddr
from codezero.config.swarm_file import SwarmFile, SwarmTasks, quoted
from codezero.errors import ConfigError

PEER = "QmUp7gSPEbCMiiKUtgC17sZ3bSLwxmT4UqN9sTDcLBhx3N"
ADDRESS = f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}"


def swarm(**changes):
    values = {
        "name": "home",
        "network": Network.native,
        "bootnodes": (ADDRESS, f"/dns4/seed.example.org/tcp/4001/p2p/{PEER}"),
        "ledger": LedgerKind.local,
        "num_generations": 6,
    }
    return SwarmFile(**{**values, **changes})


def content(**changes):
    """A good file's content with some values replaced; None removes a key."""
    values = {"version": 1, "name": "home", "network": "native", "bootnodes": [ADDRESS], "ledger": "local"}
    values = {**values, "num_generations": 4, **changes}
    return yaml.safe_dump({key: value for key, value in values.items() if value is not None}, allow_unicode=True)


def written(folder, text):
    path = folder / "friend.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("tasks", [None, *SwarmTasks])
def test_what_is_written_is_read(tmp_path, tasks):
    path = tmp_path / "new" / "swarm.yaml"
    swarm_file.write(path, swarm(tasks=tasks))
    assert swarm_file.read(path) == swarm(tasks=tasks)
    assert [found.name for found in path.parent.iterdir()] == ["swarm.yaml"]


@pytest.mark.parametrize("name", ["no", "1e3", "~", "null", "2024-01-01", "{a: b}", "- x", "'", "# x", " x", "猫 🐈"])
def test_names_that_yaml_would_read_as_something_else_stay_names(tmp_path, name):
    swarm_file.write(tmp_path / "swarm.yaml", swarm(name=name))
    assert swarm_file.read(tmp_path / "swarm.yaml").name == name


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write swarm file .*taken/x\.yaml"):
        swarm_file.write(tmp_path / "taken" / "x.yaml", swarm())


STEPS = list(zip("abcdefghij", "bcdefghijk", strict=True))
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 20)}]}}\n" for old, new in STEPS
)
ALIAS_BOMB = "[&a [x, x], " + ", ".join(f"&{new} [{', '.join([f'*{old}'] * 20)}]" for old, new in STEPS) + "]"
HOSTILE = {
    "empty": ("", "it has no keys"),
    "not a mapping": ("- a\n- b\n", "it has no keys"),
    "not yaml": ("name: [", "it is not YAML at line 1"),
    "two documents": (content() + "---\n" + content(), "it is not YAML at line"),
    "invalid utf-8": (b"name: \xff\xfe\n", "it is not YAML"),
    "control characters": ("name: \x1b[2Jgone\n", "it is not YAML"),
    "deep nesting": ("[" * 60_000, "it is not YAML"),
    "merge bomb": (MERGE_BOMB, "version=nothing is not known"),
    "alias bomb": (content(bootnodes=None) + f"bootnodes: {ALIAS_BOMB}\n", "bootnodes=a list is not possible"),
    "alias bomb as a name": (content(name=None) + f"name: {ALIAS_BOMB}\n", "name=a list is not possible"),
    "python object": ("!!python/object/apply:os.system ['touch pwned']", "it has no keys"),
    "python object as a name": (content().replace("home", "!!python/name:os.system ''"), "use 1 to 64 printable"),
    "giant": ("#" * (64 * 1024 + 1), "it has more than 64 KiB"),
    "giant number": (content(num_generations="9" * 30_000), "num_generations='999999"),
    "another version": (content(version=2), "version='2' is not known here, only 1; update codezero"),
    "unknown key": (content(state_dir="/etc"), "key='state_dir' is not possible: remove it"),
    "a key that is a list": (content() + "? [a]\n: b\n", "it is not YAML"),
    "missing key": (content(ledger=None), "ledger=nothing is not possible: add it"),
    "no network": (content(network="none"), "network=none is not possible: use native or genrl"),
    "foreign network": (content(network="tor"), "network='tor' is not possible: use one of none, native, genrl"),
    "foreign ledger": (content(ledger="chain"), "ledger='chain' is not possible: use one of local"),
    "foreign tasks": (content(tasks="[/etc]"), r"tasks='\[/etc\]' is not possible: use one of auto, builtin"),
    "nested name": (content(name={"a": "b"}), "name=a dict is not possible: give one text"),
    "empty name": (content(name=""), "name='' is not possible"),
    "long name": (content(name="x" * 65), "use 1 to 64 printable characters"),
    "name with a newline": (content(name="a\nstate_dir: /etc"), r"name='a\\nstate_dir: /etc' is not possible"),
    "name that turns the text around": (content(name="a\u202eb"), r"name='a\\u202eb' is not possible"),
    "one generation": (content(num_generations=1), "num_generations=1 is not possible: use 2 to 64"),
    "many generations": (content(num_generations=65), "num_generations=65 is not possible"),
    "fractional generations": (content(num_generations=4.5), "num_generations='4.5' is not possible: give a whole"),
    "no bootnodes": (content(bootnodes=[]), "bootnodes=0 addresses is not possible: give 1 to 32"),
    "many bootnodes": (content(bootnodes=[ADDRESS] * 33), "bootnodes=33 addresses is not possible"),
    "bootnodes as text": (content(bootnodes=ADDRESS), "is not possible: give a list of texts"),
    "nested bootnodes": (content(bootnodes=[[ADDRESS]]), "bootnodes=a list is not possible"),
    "bootnode without a peer": (content(bootnodes=["/ip4/1.2.3.4/tcp/1"]), "end it with /p2p/ and the peer id"),
    "bootnode without a port": (content(bootnodes=[f"/ip4/1.2.3.4/tcp/0/p2p/{PEER}"]), "name the port"),
    "bootnode that is an option": (
        content(bootnodes=["--listen=/unix/x"]),
        "bootnodes: '--listen=/unix/x' is not an address",
    ),
    "bootnode with a comma": (content(bootnodes=[ADDRESS + ",/ip4/1.2.3.4"]), "is not an address"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_that_names_the_file(tmp_path, name):
    text, message = HOSTILE[name]
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        swarm_file.read(path)
    line = str(caught.value)
    assert line.startswith(f"swarm file {path}: ")
    assert line.isprintable()
    assert len(line) < 400 + len(str(path))


@pytest.mark.parametrize("place", ["missing.yaml", "."])
def test_what_is_no_file_is_refused(tmp_path, place):
    with pytest.raises(ConfigError, match="there is no such file"):
        swarm_file.read(tmp_path / place)


def test_a_swarm_file_sets_what_the_swarm_needs_and_explicit_settings_win(tmp_path):
    path = tmp_path / "swarm.yaml"
    swarm_file.write(path, swarm())
    assert path.read_text().splitlines()[0].endswith(": ./run_rl_swarm.sh --join FILE")
    joined = load_config([f"swarm={path}"])
    assert (joined.swarm.network, joined.swarm.name, joined.swarm.num_external) == (Network.native, "home", 2)
    assert joined.swarm.bootnodes == list(swarm().bootnodes)
    assert (joined.rollout.num_generations, joined.ledger.kind) == (6, LedgerKind.local)
    faithful = load_config(["rollout.num_generations=8", "preset=faithful", f"swarm={path}", "swarm.name=mine"])
    assert (faithful.rollout.num_generations, faithful.swarm.name) == (8, "mine")
    assert load_config(["preset=local", f"swarm={path}"]).swarm.network is Network.native
    assert load_config(["preset=faithful", f"swarm={path}"]).rollout.num_generations == 6


@pytest.mark.parametrize("tasks", SwarmTasks)
@pytest.mark.parametrize("own", [[], ["swarm.num_local=2"], ["tasks.proposals.share=0"]])
def test_who_joins_draws_what_the_swarm_draws(tmp_path, tasks, own):
    path = tmp_path / "swarm.yaml"
    swarm_file.write(path, swarm(tasks=tasks))
    joined, chosen = (load_config([*own, choice]).tasks for choice in (f"swarm={path}", f"tasks={tasks.value}"))
    assert joined == chosen


@pytest.mark.parametrize(
    "own",
    [
        ["tasks=mbpp"],
        ["tasks.mbpp.path=rows.jsonl"],
        ["preset=local"],
        ["tasks.modules=[codezero.tasks.reasoning_gym]"],
    ],
)
def test_who_joins_may_choose_what_to_draw(tmp_path, own):
    path = tmp_path / "swarm.yaml"
    swarm_file.write(path, swarm(tasks=SwarmTasks.code_contests))
    assert load_config([*own, f"swarm={path}"]).tasks == load_config(own).tasks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["swarm=nowhere.yaml"], "swarm file nowhere.yaml: there is no such file; check the path"),
        (["swarm=nowhere.YML"], "swarm file nowhere.YML: there is no such file"),
        (["swarm=./invite"], "not one of the shipped choices: alone, genrl, native; a swarm file ends in .yaml"),
        (["swarm=a.yaml", "swarm=native"], "give one swarm"),
    ],
)
def test_a_swarm_that_is_not_there_is_one_line(settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(settings)
    assert "\n" not in str(caught.value)


INJECTIONS = [
    "home' state_dir=/etc 'x",
    "home', state_dir: '/etc",
    "${oc.env:HOME}",
    "\\${oc.env:HOME}",
    "\\\\${oc.env:HOME}",
    "${",
    "a${b",
    "$${a}",
    "'${state_dir}'",
    "a\\",
    "a\\'",
    "'",
    "''",
    "\\",
    "a,b",
    "[a,b]",
    "{a: b}",
    "~swarm.bootnodes",
    "choice(a,b)",
    "a=b",
    '"quoted"',
    "null",
    "????",
    "${oc.env:HOME,'x'}\\",
]


@pytest.mark.parametrize("name", INJECTIONS)
def test_a_hostile_name_is_a_name_and_sets_nothing_else(tmp_path, name):
    path = tmp_path / "swarm.yaml"
    swarm_file.write(path, swarm(name=name))
    honest, hostile = load_config(swarm_file.overrides(swarm())), load_config([f"swarm={path}"])
    assert hostile.swarm.name == name
    hostile.swarm.name = honest.swarm.name
    assert hostile == honest


def test_a_name_that_means_missing_is_refused():
    with pytest.raises(ConfigError, match=r"swarm\.name: .* missing mandatory value"):
        load_config(swarm_file.overrides(swarm(name="???")))


@settings(max_examples=150)
@given(st.text(st.sampled_from("\\'\"${}a:, []=\u00e9"), min_size=1, max_size=12))
def test_any_quoted_text_means_itself(name):
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    parsed = OverridesParser.create().parse_override(f"name={quoted(name)}")
    assert OmegaConf.create({"name": parsed.value()}).name == name


@pytest.mark.parametrize(
    "text",
    [
        ADDRESS,
        f"/ip6/2001:db8::1/udp/4001/quic-v1/p2p/{PEER}",
        "/dns/seed.example.org/tcp/443/wss",
        f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}/p2p-circuit/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA",
        "/ip4/0.0.0.0/tcp/0",
    ],
)
def test_an_address_is_read_and_written_alike(text):
    assert str(Multiaddr.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "203.0.113.7:4001",
        "/ip4/203.0.113.7",
        "/ip4/203.0.113/tcp/1",
        "/ip4/203.0.113.07/tcp/1",
        "/ip4/seed.example.org/tcp/1",
        "/ip6/fe80::1%eth0/tcp/1",
        "/ip4/203.0.113.7/tcp/65536",
        "/ip4/203.0.113.7/tcp/-1",
        "/ip4/203.0.113.7/tcp/\u0661",
        "/ip4/203.0.113.7/tcp/1\n",
        "/dns4/-x/tcp/1",
        "/dns4/${oc.env:HOME}/tcp/1",
        "/dns4/a'b/tcp/1",
        f"/dns4/{'a' * 254}/tcp/1",
        "/unix/tmp/x.sock",
        "/ip4/203.0.113.7/tcp/1/p2p/Qm",
        f"/ip4/203.0.113.7/tcp/1/p2p/{PEER}/p2p-circuit",
        f"/ip4/203.0.113.7/tcp/1/p2p/{PEER}/" + "x" * 400,
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match=r"^it"):
        Multiaddr.parse(text)


def test_an_address_moves_to_another_host():
    address = Multiaddr.parse(ADDRESS)
    assert str(address.at("2001:db8::1")) == f"/ip6/2001:db8::1/tcp/4001/p2p/{PEER}"
    assert str(address.at("example.org")) == f"/dns/example.org/tcp/4001/p2p/{PEER}"
    with pytest.raises(ValueError, match="not a valid dns address"):
        address.at("two words")
