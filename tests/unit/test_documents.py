"""The documents hold: links lead somewhere, what is shown and quoted exists, and what is made from code is fresh."""

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import yaml

from codezero import cli
from codezero.config import LedgerKind, Network, swarm_file
from codezero.config.load import load_config
from codezero.errors import CodezeroError
from scripts import configuration
from tests.test_imports import PACKAGE, imported_packages

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "modal-login" / "README.md", ROOT / "contracts" / "README.md"]
)
DOCUMENTS = [path for path in DOCUMENTS if path.exists()]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "0x" + "11" * 20
PLACEHOLDERS = {
    "0x...": ADDRESS,
    "0x…": ADDRESS,
    "https://...": "https://rpc.invalid",
    "Qm...": "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N",
}
PEER = PLACEHOLDERS["Qm..."]
INVITATION = swarm_file.SwarmFile(
    name="home",
    network=Network.native,
    bootnodes=(f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}",),
    ledger=LedgerKind.local,
    num_generations=4,
)


def name(path):
    return str(path.relative_to(ROOT))


def prose(path):
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """The names that GitHub gives the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(next(name for number in range(99) if (name := f"{words}-{number}" if number else words) not in found))
    return found


def links(path):
    """What a page links to within the repository."""
    text = prose(path)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href|srcset)="([^"]+)"', text)
    return [target for target in targets if not re.match(r"https?://|mailto:", target)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_leads_to_a_file_or_a_heading_that_is_there(path):
    for target in links(path):
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{name(path)} links to {target}, which is not there"
        assert found.is_relative_to(ROOT), f"{name(path)} links to {target}, outside of the repository"
        if anchor:
            assert anchor in anchors(found), f"{name(path)} links to {target}: {name(found)} has no such heading"


def test_readme_is_read_in_one_go_and_leads_to_every_page():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200
    reached, ahead = set(), [README]
    while ahead:
        page = ahead.pop()
        if page.suffix == ".md" and page not in reached:
            reached.add(page)
            ahead += [(page.parent / target.partition("#")[0]).resolve() for target in links(page)]
    assert set(ROOT.glob("docs/*.md")) <= reached


OTHERS_SAY = {"Killed", "CUDA out of memory", "MPS backend out of memory", "local time must be within"}
"""Messages of the system and of libraries."""


def said():
    """Every text of the programs; what is put into one stands as `…`."""
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("scripts/*.sh")]
    texts += [path.read_text(encoding="utf-8") for path in ROOT.glob("modal-login/lib/*.ts")]
    for path in [*PACKAGE.rglob("*.py"), ROOT / "tests" / "containers" / "engine.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return texts


def test_messages_of_the_troubleshooting_page_are_those_of_the_programs():
    rows = re.findall(r"^\| (.+?) \| .+ \|$", prose(ROOT / "docs" / "troubleshooting.md"), re.MULTILINE)
    messages = [message for row in rows for message in re.findall(r"`([^`]+)`", row)]
    parts = {part.strip(" ():,;=.") for message in messages for part in re.split(r"…|\d+", message)}
    assert len(parts) > 100
    texts = said()
    assert [part for part in parts - OTHERS_SAY if not any(part in text for text in texts)] == []


PROMISES = re.findall(r"^\|.*\| `([^`|]+)::([^`|]+)` \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("file", "test"), PROMISES, ids=[test for _, test in PROMISES])
def test_every_promise_names_a_test_that_is_there(file, test):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf'^(def|class) {re.escape(test)}\b|^test\("{re.escape(test)}"', text, re.MULTILINE)


def shell_lines(path):
    for language, block in FENCE.findall(path.read_text(encoding="utf-8")):
        if language == "sh":
            yield from block.replace("\\\n", " ").splitlines()


COMMANDS = [(name(path), line) for path in DOCUMENTS for line in shell_lines(path) if line.strip()]


def test_commands_are_found_at_all():
    kinds = {line.split()[0] for _, line in COMMANDS}
    assert {".venv/bin/codezero", "./run_rl_swarm.sh", "docker-compose"} <= kinds


@pytest.mark.parametrize("line", [line for _, line in COMMANDS], ids=[where for where, _ in COMMANDS])
def test_a_command_that_is_shown_can_be_given(line, tmp_path, monkeypatch):
    for placeholder, value in PLACEHOLDERS.items():
        line = line.replace(placeholder, value)
    for words in split_commands(line):
        if (arguments := arguments_of(words)) is not None:
            monkeypatch.chdir(tmp_path)
            can_be_given(arguments)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_commands_can_be_pasted_into_zsh(path):
    """By default it takes a comment for arguments, in which an apostrophe opens a quote, and brackets for a pattern."""
    for line in shell_lines(path):
        command, _, comment = line.partition("#")
        assert "'" not in comment, f"{name(path)} has an apostrophe in a comment: {line}"
        unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
        assert "[" not in unquoted, f"{name(path)} has brackets without quotes: {line}"


def split_commands(line):
    """The words of each command of a line; `NAME=value` before it is left out."""
    words = [word for word in shlex.split(line, comments=True) if word != "…"]
    while words:
        end = words.index("&&") if "&&" in words else len(words)
        command, words = words[:end], words[end + 1 :]
        while command and re.fullmatch(r"[A-Z_]+=.*", command[0]):
            command = command[1:]
        if command:
            yield command


def arguments_of(words):
    """What codezero's command line is given; None for other programs."""
    if Path(words[0]).name == "codezero":
        return words[1:]
    if words[0] == "./run_rl_swarm.sh":
        return ["start", *words[1:]]
    if words[0] == "docker-compose" and "exec" in words:
        return arguments_of(words[words.index("exec") + 2 :])
    if words[0] == "docker-compose" and "run" in words:
        services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
        service = next(number for number, word in enumerate(words) if word in services)
        return None if "--entrypoint" in words else ["start", *words[service + 1 :]]
    return None


def can_be_given(arguments):
    options, rest = cli._parser().parse_known_args(arguments)
    settings = [*getattr(options, "settings", []), *rest]
    assert not [word for word in rest if word.startswith("-")], f"unknown: {rest}"
    for setting in settings:
        if setting.startswith("swarm=") and setting.endswith(".yaml"):
            swarm_file.write(Path(setting.removeprefix("swarm=")), INVITATION)
    if {"ledger=modal", "ledger=wallet"} & set(settings):  # what such a node needs; what is shown wins
        settings = [f"ledger.contract_address={ADDRESS}", "ledger.rpc_url=https://rpc.invalid", *settings]
    if settings:
        load_config(settings)


@cache
def known_settings():
    settings = set()
    for line in configuration.page().splitlines():
        if match := re.match(r"\| `([a-z_.]+)(\.\*)?` \|", line):
            settings.add(match[1])
    return settings


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_settings_and_commands_named_in_the_text_exist(path):
    settings = known_settings()
    sections = {setting.split(".")[0] for setting in settings if "." in setting}
    for code in re.findall(r"`([^`\n]+)`", prose(path)):
        key = re.match(r"([a-z_]+)(\.[a-z_]+)+(?==|$)", code)
        if key and key[1] in sections and key[2] != ".pem":
            assert key[0] in settings, f"{name(path)} names the setting {key[0]}, which is not there"
        words = code.split()
        if words[0] == "codezero" and len(words) > 1 and re.fullmatch("[a-z]+", words[1]):
            with pytest.raises(SystemExit) as end:
                cli.main([words[1], "--help"])
            assert end.value.code == 0, f"{name(path)} names the command {code}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_benchmarks_named_exist(path):
    for module in re.findall(r"python -m ((?:benchmarks|scripts)\.\w+)", path.read_text(encoding="utf-8")):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), f"{name(path)} names {module}"


def test_every_benchmark_has_its_figures_in_a_document():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for path in (ROOT / "benchmarks").glob("*.py"):
        if "__main__" in path.read_text(encoding="utf-8"):
            assert re.search(rf"benchmarks[./]{path.stem}\b", text), f"no document names benchmarks.{path.stem}"


def test_the_section_that_a_benchmark_names_for_its_figures_exists():
    for path in (ROOT / "benchmarks").glob("*.py"):
        for page, anchor in re.findall(r"^Figures: (\S+)#(\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert anchor in anchors(ROOT / page), f"{path.name} names {page}#{anchor}"


def test_what_compose_takes_from_the_environment_is_explained():
    taken = set(re.findall(r"CODEZERO_\w+", (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")))
    explained = set(re.findall(r"CODEZERO_\w+", "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)))
    assert taken - explained == set()


def test_the_page_of_settings_is_what_the_code_says():
    assert configuration.PAGE.read_text(encoding="utf-8") == configuration.page(), (
        f"docs/configuration.md is not what the code says: refresh it with `{configuration.COMMAND}`"
    )


def test_every_setting_is_explained():
    rows = [line for line in configuration.page().splitlines() if re.match(r"\| `[^`=]+` \|", line)]
    assert len(rows) > 100
    assert [row for row in rows if row.endswith("|  |")] == [], "no docstring below the field"


def test_the_layout_has_every_package_above_those_it_imports():
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    tree = page.split("```text\ncodezero/\n")[1].split("```")[0]
    names = [name for line in tree.splitlines() for name in re.findall(r"(\w+)(?:/|\.py)", line.strip().split("  ")[0])]
    packages = imported_packages()
    assert sorted(names) == sorted(name for name in packages if not name.startswith("__"))
    for name in names:
        above = packages[name] & set(names[names.index(name) :])
        assert not above, f"docs/how-it-works.md has {name} below {above}, which it imports"


def test_the_drawing_names_rooms_that_are_there():
    (drawing,) = [
        block for kind, block in FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8")) if kind == "mermaid"
    ]
    rooms = re.findall(r"(\w+/|\w+\.py)", drawing)
    assert len(rooms) >= 10
    for room in rooms:
        assert (PACKAGE / room).exists(), f"the drawing in README.md has {room}"


def test_this_test_would_notice():
    with pytest.raises(SystemExit):
        can_be_given(["run", "--rounds", "many"])
    with pytest.raises(CodezeroError):
        can_be_given(["run", "train.learning_rat=1"])
    assert "start" in anchors(ROOT / "README.md")
    assert "finish" not in anchors(ROOT / "README.md")
