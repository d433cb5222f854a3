"""The house keeps its levels: a module imports only from lower levels or its own room, and light modules stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "codezero"
LEVELS = {
    "__init__": 0,
    "types": 0,
    "proposals": 0,
    "errors": 0,
    "config": 1,
    "compose": 1,
    "multiaddr": 1,
    "swarmfile": 1,
    "ports": 1,
    "prompts": 1,
    "testcases": 1,
    "llm": 2,
    "identity": 2,
    "dht": 2,
    "sandbox": 2,
    "dryrun": 2,
    "tasks": 3,
    "rollout": 3,
    "evaluate": 3,
    "train": 3,
    "network": 3,
    "ledger": 3,
    "proposer": 3,
    "observe": 3,
    "judge": 3,
    "publish": 3,
    "market": 4,
    "loop": 4,
    "batch": 4,
    "harness": 4,
    "charts": 4,
    "state": 5,
    "health": 5,
    "accounts": 5,
    "runs": 5,
    "watch": 5,
    "summary": 5,
    "stop": 5,
    "dashboard": 6,
    "judging": 5,
    "proposing": 5,
    "ledgers": 5,
    "propose": 5,
    "models": 5,
    "scoring": 5,
    "services": 5,
    "publishing": 5,
    "node": 5,
    "peer": 5,
    "doctor": 6,
    "launch": 6,
    "chain": 6,
    "report": 6,
    "cli": 7,
    "__main__": 7,
}
SAME_LEVEL = {
    ("types", "proposals"),
    ("compose", "config"),
    ("node", "peer"),
    ("compose", "swarmfile"),
    ("swarmfile", "config"),
    ("swarmfile", "multiaddr"),
    ("node", "state"),
    ("node", "ledgers"),
    ("node", "stop"),
    ("node", "models"),
    ("node", "services"),
    ("node", "publishing"),
    ("models", "state"),
    ("health", "state"),
    ("runs", "state"),
    ("watch", "runs"),
    ("summary", "runs"),
    ("summary", "accounts"),
    ("summary", "watch"),
    ("node", "runs"),
    ("node", "watch"),
    ("propose", "runs"),
    ("propose", "watch"),
    ("models", "judging"),
    ("models", "proposing"),
    ("batch", "loop"),
    ("propose", "proposing"),
    ("propose", "ledgers"),
    ("propose", "peer"),
    ("propose", "state"),
    ("propose", "stop"),
    ("node", "judging"),
    ("doctor", "launch"),
    ("scoring", "judging"),
    ("__main__", "cli"),
}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


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


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_only_from_lower_levels_or_its_own_room(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for imported in imports_of(path):
        other = room(imported) if room(imported) in LEVELS else "__init__"
        allowed = other == own or LEVELS[other] < LEVELS[own] or (own, other) in SAME_LEVEL
        assert allowed, f"{own} (level {LEVELS[own]}) imports {imported} (level {LEVELS[other]})"


def test_nothing_a_round_needs_can_run_code():
    """The sandbox is reached from the bench and from the execution judge, and these only by those who ask for them."""
    runs_code = ("codezero.sandbox", "codezero.harness", "codezero.evaluate.execution")
    may = {PACKAGE / "evaluate" / "execution.py"}
    may |= {path for name in ("sandbox", "harness") for path in (PACKAGE / name).rglob("*.py")}
    for path in set(PACKAGE.rglob("*.py")) - may:
        imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        found = imported_names(ast.Module(body=imports, type_ignores=[]))
        assert not [name for name in found if name.startswith(runs_code)], path


def test_importing_a_whole_node_imports_no_sandbox():
    modules = ("codezero.sandbox", "codezero.harness", "codezero.evaluate.execution")
    assert heavy_modules_after("import codezero.node, codezero.cli", *modules) == ""


@pytest.mark.parametrize("module", ["codezero.types", "codezero.errors", "codezero.ports"])
def test_records_and_ports_need_the_standard_library_only(module):
    assert heavy_modules_after(f"import {module}", "torch", "transformers", "numpy", "omegaconf") == ""


@pytest.mark.parametrize(
    "module", ["codezero.config", "codezero.cli", "codezero.llm.store", "codezero.launch.up", "codezero.launch.start"]
)
def test_light_modules_do_not_import_torch(module):
    assert heavy_modules_after(f"import {module}", "torch", "transformers", "datasets") == ""


@pytest.mark.parametrize(
    "module", ["codezero.cli", "codezero.config", "codezero.ledger.abi", "codezero.launch.up", "codezero.launch.start"]
)
def test_who_needs_no_chain_does_not_import_one(module):
    assert heavy_modules_after(f"import {module}", "web3", "eth", "eth_account") == ""


@pytest.mark.parametrize(
    "module", ["identity.key", "identity.keyfile", "identity.backup", "identity.names", "network.wire"]
)
def test_who_a_node_is_and_what_peers_send_need_no_model_and_no_network(module):
    assert heavy_modules_after(f"import codezero.{module}", "torch", "hivemind", "omegaconf", "numpy") == ""


@pytest.mark.parametrize(
    "module",
    ["codezero.node", "codezero.cli", "codezero.services", "codezero.ledger.submitter", "codezero.market.player"],
)
def test_a_node_with_a_ledger_of_its_own_imports_nothing_of_a_chain(module):
    chain = ("web3", "eth_account", "eth_abi", "eth_utils", "eth_keyfile")
    assert heavy_modules_after(f"import {module}", *chain) == ""


def test_using_a_chain_leaves_the_recursion_limit_as_it_was():
    """Else a deeply nested message of a peer ends the process, where it should raise RecursionError."""
    code = (
        "import sys; before = sys.getrecursionlimit(); from codezero.ledger import ethereum, keystore, wallet; "
        "ethereum.keyfile(); keystore.parse_key('11' * 32); from codezero.ledger.coordinator import coordinator_abi; "
        "from codezero.ledger.contract import Contract; import eth_account; "
        "Contract('0x' + '11' * 20, coordinator_abi()).call('currentRound()').decode('0x' + '00' * 32); "
        "print(sys.getrecursionlimit() - before, end='')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "0"


def heavy_modules_after(statement: str, *heavy: str) -> str:
    code = f"import sys; {statement}; print(*sorted(set({heavy!r}) & set(sys.modules)), end='')"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
