"""Packages import downwards only, few files know all settings, and light modules stay light."""

import ast
import gc
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "codezero"
TOP = {path.stem for path in PACKAGE.iterdir()}
READS_ALL_SETTINGS = ("build.py", "node.py", "config/*.py", "cli/*.py", "launch/*.py", "doctor/*.py")
"""The files that know the whole of the settings; all others are given the part they need."""
CHAIN = ("web3", "eth_account", "eth_abi", "eth_utils", "eth_keyfile")
RUNS_CODE = ("codezero.sandbox", "codezero.harness", "codezero.evaluate.execution")


@pytest.fixture(autouse=True)
def without_collections():
    """Before 3.11.8 CPython 3.11 could take its own syntax trees for broken if the garbage collector ran while it made
    them (gh-106905), and here it makes hundreds."""
    gc.disable()
    yield
    gc.enable()


def imports_of(path: Path) -> set[str]:
    return imported_names(ast.parse(path.read_text()))


def imported_names(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "codezero":
            found |= {
                f"{node.module}.{alias.name}" if node.module == "codezero" else node.module for alias in node.names
            }
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "codezero"}
    return found


def imported_packages() -> dict[str, set[str]]:
    """For each package and module at the top, those that it imports anywhere, in functions too."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        imported = {part for name in imports_of(path) for part in name.split(".")[1:2]}
        found.setdefault(own, set()).update(imported & TOP - {own})
    return found


def test_packages_import_downwards_only():
    graphlib.TopologicalSorter(imported_packages()).prepare()  # CycleError names the packages of a cycle


def test_no_two_public_classes_have_one_name():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_few_files_know_all_settings():
    knowing = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if "NodeConfig" in path.read_text()]
    assert [str(path) for path in knowing if not any(path.match(pattern) for pattern in READS_ALL_SETTINGS)] == []


def test_nothing_a_round_needs_can_run_code():
    """The sandbox is reached from the bench and from the execution judge, and these only by those who ask for them."""
    may = {PACKAGE / "evaluate" / "execution.py"}
    may |= {path for name in ("sandbox", "harness") for path in (PACKAGE / name).rglob("*.py")}
    for path in set(PACKAGE.rglob("*.py")) - may:
        imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        found = imported_names(ast.Module(body=imports, type_ignores=[]))
        assert not [name for name in found if name.startswith(RUNS_CODE)], path


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("types reports errors ports", ("torch", "transformers", "numpy", "omegaconf")),
        (
            "identity.key identity.keyfile identity.backup identity.names network.wire",
            ("torch", "hivemind", "omegaconf", "numpy"),
        ),
        ("config cli llm.store launch.up launch.start doctor.rollouts", ("torch", "transformers", "datasets", *CHAIN)),
        ("cli", ("fastapi", "uvicorn", "jinja2", "pydantic", "starlette")),
        ("views.web.serve", ("torch", "transformers", "hivemind", "numpy", "omegaconf")),
        ("ledger.abi", ("web3", "eth_account")),
        (
            "node cli services.build ledger.submitter services.market.player evaluate.score_file",
            (*CHAIN, *RUNS_CODE, "fastapi"),
        ),
    ],
)
def test_what_importing_these_does_not_import(modules, heavy):
    """`-X importtime` tells which of them does it."""
    statement = "import " + ", ".join(f"codezero.{module}" for module in modules.split())
    assert heavy_modules_after(statement, *heavy) == ""


def test_a_node_without_judge_service_and_market_imports_neither():
    statement = (
        "import codezero.node; from codezero.config.load import load_config; from codezero.services.build import "
        "Services; Services(load_config(), None, None, '', None).start(None, None, None)"
    )
    assert heavy_modules_after(statement, "codezero.services.judge", "codezero.services.market") == ""


def test_using_a_chain_leaves_the_recursion_limit_as_it_was():
    """Else a deeply nested message of a peer ends the process, where it should raise RecursionError."""
    code = (
        "import sys; before = sys.getrecursionlimit(); "
        "from codezero.ledger import abi, eth_imports, keystore, account; "
        "eth_imports.keyfile(); keystore.parse_key('11' * 32); "
        "from codezero.ledger.contract import Contract; import eth_account; "
        "Contract('0x' + '11' * 20, abi.load('SwarmCoordinator').abi).call('currentRound()').decode('0x' + '00' * 32); "
        "print(sys.getrecursionlimit() - before, end='')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "0"


def heavy_modules_after(statement: str, *heavy: str) -> str:
    code = f"import sys; {statement}; print(*sorted(set({heavy!r}) & set(sys.modules)), end='')"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
