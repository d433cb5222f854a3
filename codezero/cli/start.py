"""`codezero start`: starts a node or a swarm for run_rl_swarm.sh."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.cli.options import Commands, add_command, fixed_port, number
from codezero.cli.swarm import add_gpus_option, add_up_options, up_options
from codezero.config.checkout import START
from codezero.config.names import check_names
from codezero.errors import ConfigError

if TYPE_CHECKING:
    from codezero.launch.choices import Way

_EXAMPLES = f"""\
examples:
  {START}                                asks, where there is a terminal; else a swarm of your own
  {START} --local --rounds 3             train alone: no account, no hub, no chain
  {START} --nodes 3                      a swarm of your own: bootnode, proposer and three nodes
  {START} --join invite.yaml             join the swarm that you were invited to
  {START} --testnet --sign-in wallet     the Gensyn testnet, with a wallet of this machine
  {START} --join invite.yaml --gpus 0    a node on one of several GPUs, where each would get one
  {START} swarm.num_local=2              only settings, here shorter rounds; all else by configs/node.yaml

environment: CODEZERO_JOIN, CODEZERO_SIGN_IN, ORG_ID, HUGGINGFACE_ACCESS_TOKEN, MODEL_NAME, CODEZERO_MARKET, CPU_ONLY,
IDENTITY_PATH, CODEZERO_RESET_CONFIG, CODEZERO_CONFIG_DIR, CODEZERO_SIGN_IN_PORT, CODEZERO_WALLET_PASSPHRASE; of the
script: PYTHON, TORCH, CODEZERO_VENV. docs/launch-script.md has what each means.
"""


def add_commands(commands: Commands) -> None:
    about = "Starts a node or a swarm, asks for missing choices, and starts it again after a crash."
    text = "ask what to start, sign in, and keep it running (what run_rl_swarm.sh does)"
    start = add_command(commands, "start", _start, text, about=about, examples=_EXAMPLES)
    where = start.add_argument_group("where to train (one of them; asked, or own)")
    where.add_argument("--own", action="store_true", help="a swarm of your own on this machine")
    where.add_argument("--local", action="store_true", help="alone (of no effect with --nodes)")
    where.add_argument("--join", metavar="FILE", help="the swarm of a swarm file")
    where.add_argument("--testnet", action="store_true", help="the Gensyn testnet")
    account = start.add_argument_group("account, where the swarm has a chain")
    account.add_argument("--sign-in", choices=("app", "wallet"), help="in the browser (default), or a local wallet")
    account.add_argument("--org-id", default="", metavar="ID", help="which of several users who have signed in")
    account.add_argument("--port-sign-in", type=fixed_port, metavar="P", help="the sign-in app's port (default 3000)")
    text = "how long to wait for somebody to sign in (default 15)"
    minutes = number(float, lambda value: 0 < value <= 1440, "a number of minutes up to 1440")
    account.add_argument("--sign-in-minutes", type=minutes, default=15.0, metavar="M", help=text)
    rest = start.add_argument_group("the node")
    yes_no = argparse.BooleanOptionalAction
    rest.add_argument("--push", action=yes_no, help="push the model to Hugging Face (default no)")
    rest.add_argument("--model", default="", metavar="NAME", help="a name, hub id or folder (same as model.name=NAME)")
    rest.add_argument("--market", action=yes_no, help="the AI prediction market (default yes on the testnet)")
    add_gpus_option(rest)
    rest.add_argument("--yes", action="store_true", help="ask nothing, take the defaults")
    rest.add_argument("--show-config", action="store_true", help="print the resulting configuration and exit")
    own = start.add_argument_group("a swarm of your own")
    add_up_options(own, folder=None, rounds=None)
    start.add_argument("--check-names", action="store_true", help=argparse.SUPPRESS)  # for run_rl_swarm.sh
    start.add_argument("settings", nargs="*", metavar="key=value", help="settings, as for codezero run")


def _start(options: argparse.Namespace) -> int:
    if options.check_names:
        check_names(options.settings)
        return 0
    from codezero.launch.choices import Options, SignIn
    from codezero.launch.start import StartOptions, start

    asked = Options(
        way=_way(options),
        swarm_file=options.join or "",
        sign_in=options.sign_in and SignIn(options.sign_in),
        push=options.push,
        model=options.model,
        market=options.market,
        rounds=options.rounds,
        gpus=options.gpus,
        of_swarm=_of_swarm(options),
        settings=options.settings,
    )
    return start(
        StartOptions(
            asked=asked,
            own=up_options(options, options.folder or Path("swarms/home")),
            folder=options.folder,
            org_id=options.org_id,
            port_sign_in=options.port_sign_in,
            sign_in_limit_s=60 * options.sign_in_minutes,
            assume_defaults=options.yes,
            show_config=options.show_config,
        )
    )


def _of_swarm(options: argparse.Namespace) -> list[str]:
    """Returns the given options that only a swarm of one's own has."""
    given = {
        "--proposers": options.proposers != 1,
        "--with-verifier": options.with_verifier,
        "--port": options.port is not None,
        "--announce": bool(options.announce),
    }
    return [name for name, is_given in given.items() if is_given]


def _way(options: argparse.Namespace) -> Way | None:
    from codezero.launch.choices import Way

    own = options.own or options.nodes is not None
    given = [
        way
        for way, is_given in (
            (Way.OWN, own),
            (Way.LOCAL, options.local and options.nodes is None),
            (Way.JOIN, options.join is not None),
            (Way.TESTNET, options.testnet),
        )
        if is_given
    ]
    if len(given) > 1:
        raise ConfigError("--own, --nodes, --local, --join and --testnet exclude each other: give one of them")
    return given[0] if given else None
