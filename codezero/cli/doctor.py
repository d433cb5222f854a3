"""`codezero doctor`: finds what is wrong with a node, or would be, before or after it fails."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.cli.options import Commands, add_command, path
from codezero.config import checkout
from codezero.errors import ConfigError, StateError, told_as
from codezero.runtime.console import printable

if TYPE_CHECKING:
    from codezero.config import NodeConfig
    from codezero.doctor.case import ExaminedNode
    from codezero.doctor.finding import Finding

_EXAMPLES = """\
examples:
  codezero doctor                                  the node here as it was last started, or as `codezero run` starts it
  codezero doctor swarm=invite.yaml                with the settings that you give to codezero run
  codezero doctor --state-dir swarms/home/node-1/state    a node of a swarm of your own
  codezero doctor --bundle support.tar.gz          also write an archive for whoever helps you, without secrets

exit code: 0 nothing is wrong, 1 warnings (a node runs, but not as well as it could), 2 errors (a node does not start,
or stops). It takes up to 20 s, starts no node, downloads nothing and changes nothing.
"""


def add_commands(commands: Commands) -> None:
    text = "find out what is wrong, before or after a node fails"
    about = f"F{text[1:]}: this machine, the installation, and all that a node of these settings would meet."
    doctor = add_command(commands, "doctor", _doctor, text, about=about, examples=_EXAMPLES)
    text = "the state folder of a node: the settings that it was started with, its key and its logs are taken"
    doctor.add_argument("--state-dir", type=path, metavar="DIR", help=text)
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    text = "write an archive for whoever helps you (.tar.gz): findings, settings, logs; never replaces a file"
    doctor.add_argument("--bundle", type=path, metavar="FILE", help=text)
    doctor.add_argument("settings", nargs="*", metavar="key=value", help="settings, as for codezero run")


def _doctor(options: argparse.Namespace) -> int:
    from codezero.doctor.bundle import without_secrets
    from codezero.doctor.case import ExaminedNode
    from codezero.doctor.examine import examine
    from codezero.doctor.finding import as_json, exit_code, lines

    looks_here = options.state_dir is None and not options.settings
    with told_as(StateError, f"cannot read {options.state_dir}", "ask as the user who runs the node"):
        given = [*_noted(Path("state") if looks_here else options.state_dir), *options.settings]
        settings = [*given, *_beside(options.state_dir, given, options.settings)]
    config, refused = _loaded(settings)
    case = ExaminedNode(config=config, environment=os.environ, settings=[] if refused else settings)
    findings = without_secrets(case, [*refused, *examine(case)])  # people show this output to others
    written: list[str] = []
    if options.bundle:
        written = _bundled(options.bundle, case, findings)
    if options.json:
        print(as_json(findings, bundle=written))
    else:
        coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        print("\n".join([*lines(findings, coloured), *map(printable, written)]))
    return exit_code(findings)


def _bundled(path: Path, case: ExaminedNode, findings: list[Finding]) -> list[str]:
    """Writes the archive and returns lines about it; if that fails, adds a finding and returns none."""
    from codezero.doctor import bundle
    from codezero.doctor.finding import refusal

    try:
        return bundle.write(path, case, findings)
    except StateError as fault:
        findings.append(refusal("bundle", fault, "there is no archive"))
        return []


def _loaded(settings: list[str]) -> tuple[NodeConfig, list[Finding]]:
    """Returns the configuration and no finding; if it cannot be loaded, the shipped one, so that all else is still
    checked, and the finding that says why. Where that cannot be loaded either, the values are those of the code."""
    from codezero.config import NodeConfig
    from codezero.doctor.finding import error, refusal

    try:
        from codezero.config.load import load_config

        return load_config(settings), []
    except ConfigError as fault:
        means = "no node can start; the other findings are for the shipped settings"
        shipped = NodeConfig()
        with suppress(ConfigError):
            shipped = load_config()
        return shipped, [refusal("settings", fault, means)]
    except ImportError as fault:
        do = checkout.INSTALL_AGAIN
        return NodeConfig(), [error("settings", f"cannot be read: {fault}", "no node can start", do)]


def _noted(state_dir: Path | None) -> list[str]:
    """Returns the settings that the node of --state-dir was last started with."""
    if state_dir is None:
        return []
    from codezero.observe.roles import ROLES, folder_of
    from codezero.runtime.state import noted_start

    folders = (folder_of(state_dir, role) for role in ROLES)
    return next((found for folder in folders if (found := noted_start(folder))), [])


def _beside(state_dir: Path | None, given: list[str], asked: list[str]) -> list[str]:
    """Returns the settings for --state-dir: the folder itself; the logs that its node noted, or those beside it, unless
    others are `asked` for; and the key beside it, where `swarm up` and --gpus put it, unless one is `given`."""
    if state_dir is None:
        return []
    from codezero.config.swarm_file import quoted
    from codezero.observe.roles import SOLVER, folder_of
    from codezero.views.runs import Run, roles_in

    role = next(iter(roles_in(state_dir)), SOLVER)
    beside = (
        ("tracking.log_dir", Run("", role, folder_of(state_dir, role)).log_dir, asked),
        ("swarm.identity_path", state_dir.parent / "swarm.pem", given),
    )
    found = [
        f"{key}={quoted(str(there))}"
        for key, there, settings in beside
        if there.exists() and not any(setting.startswith(f"{key}=") for setting in settings)
    ]
    return [f"state_dir={quoted(str(state_dir))}", *found]
