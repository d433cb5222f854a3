"""Starts a node from a fresh checkout: run_rl_swarm.sh calls this once codezero is installed."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codezero.config import PASSPHRASE_ENV, LedgerKind, NodeConfig
from codezero.config.load import explain, load_config
from codezero.config.names import check_names
from codezero.config.swarm_file import quoted
from codezero.errors import ConfigError
from codezero.identity import keyfile
from codezero.launch import cards, configs, hosting
from codezero.launch.app import SignInApp
from codezero.launch.app_build import AppPlace
from codezero.launch.child import ChildProgram
from codezero.launch.choices import Choices, Options, Way, choose
from codezero.launch.gpus import by_default, run_on_gpus
from codezero.launch.launcher_log import LoggedConsole
from codezero.launch.session import LIMIT_S, signed_in
from codezero.launch.shared_machine import run_command
from codezero.launch.supervisor import Supervisor
from codezero.launch.swarm_settings import UpOptions, node_settings
from codezero.launch.terminal import NotAnswered, Terminal
from codezero.launch.up import up
from codezero.ledger import keystore
from codezero.ledger.faults import WalletError
from codezero.observe.trackers import wandb
from codezero.publish.tokens import DOWNLOAD_ENVS, OF_SOLVERS, PUSH_ENV
from codezero.runtime.console import Console
from codezero.views.terminal.screen import in_foreground

LEFT = 130
"""The exit code of a start that the user left with Ctrl-C before anything ran, by the shells' convention."""
ORG_ENV, PORT_ENV = "ORG_ID", "CODEZERO_SIGN_IN_PORT"
_APP = Path("modal-login")
_SECRETS = (*OF_SOLVERS, *DOWNLOAD_ENVS, wandb.KEY_ENV)
"""The environment variables with secrets that nodes alone need."""
_KEYS = ("ALCHEMY_API_KEY", "ALCHEMY_BASE_URL", "SIGN_IN_ENV_FILE")
"""Environment variables of which the sign-in app needs one: the key, a service without one, or a file that has it."""
_TRIES = 3
"""The number of attempts at the wallet's passphrase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """The options of a start. `own` is for a swarm hosted here; its settings come from `asked`."""

    asked: Options
    own: UpOptions
    folder: Path | None = None
    """The folder of nodes on several GPUs; None is `gpus`."""
    org_id: str = ""
    port_sign_in: int | None = None
    sign_in_limit_s: float = LIMIT_S
    assume_defaults: bool = False
    """Ask nothing, on a terminal too."""
    show_config: bool = False


def start(options: StartOptions, environment: Mapping[str, str] = os.environ) -> int:
    """Asks for what options leave open, signs in where needed, and keeps the node or swarm running; returns the exit
    code.

    Raises CodezeroError: something is impossible or missing.
    """
    console = LoggedConsole()
    terminal = Terminal(console, interactive=False if options.assume_defaults else None)
    try:
        with _signals_interrupt():
            if not options.show_config:
                configs.report_or_restore_edits(environment, console)
            check_names(options.asked.settings)  # before any question
            chosen = choose(options.asked, environment, terminal)
            if chosen.took:
                console.line(f"nothing was asked; defaults taken: {', '.join(chosen.took)}")
            if options.show_config:
                is_own = chosen.way is Way.OWN
                settings = _of_own_swarm(options, chosen)[0] if is_own else chosen.settings
                print(explain(load_config(settings)), end="")
                return 0
            return _start(options, chosen, environment, terminal, console)
    except (NotAnswered, KeyboardInterrupt):
        console.line("stopped before a node was started; keys, sign-ins and settings are unchanged")
        return LEFT


def _forget(names: Iterable[str]) -> None:
    """Removes variables from this process's environment, which npm, pip and a browser inherit."""
    for name in names:
        os.environ.pop(name, None)


def _of_own_swarm(options: StartOptions, chosen: Choices) -> tuple[Sequence[str], NodeConfig]:
    """Returns the settings of every node of a swarm of one's own, and their configuration."""
    own = replace(options.own, settings=chosen.settings)
    return node_settings(own, hosting.read_swarm(own.folder))


def _start(
    options: StartOptions,
    chosen: Choices,
    environment: Mapping[str, str],
    terminal: Terminal,
    console: LoggedConsole,
) -> int:
    # Only nodes get secrets: not the app, npm, pip, or a browser that is opened from here.
    others = {name: value for name, value in environment.items() if name not in OF_SOLVERS}
    secrets = {PUSH_ENV: chosen.token} if chosen.token else {}
    if PASSPHRASE_ENV in environment:
        secrets[PASSPHRASE_ENV] = environment[PASSPHRASE_ENV]
    environment = dict(environment)  # which may be that of this process
    _forget(_SECRETS)
    if chosen.way is Way.OWN:
        config = _of_own_swarm(options, chosen)[1]
        console.log_to(options.own.folder)
        if config.ledger.kind is LedgerKind.wallet:
            secrets |= _unlocked(config, environment, terminal)
        return up(replace(options.own, settings=chosen.settings, environment=others, node_environment=secrets))
    with ExitStack() as stack:
        settings = list(chosen.settings)
        config = load_config(settings)
        console.log_to(Path(config.tracking.log_dir).expanduser())
        gpus = options.asked.gpus or by_default(config, settings, environment, console)
        if options.folder is not None and not gpus:
            raise ConfigError(
                f"--folder {options.folder} is for a swarm of your own and for nodes on several GPUs: one node has "
                "state_dir=DIR and tracking.log_dir=DIR"
            )
        gpu_folder = options.folder or Path("gpus")
        folders = sorted(gpu_folder.glob("gpu-*/state")) if gpus else [Path(config.state_dir).expanduser()]
        if (found := cards.model_for(config, settings, folders, environment)) is not None:
            setting, why = found
            console.line(f"{setting}, {why}")
            settings.append(setting)
        if _needs_app(chosen, config):
            hidden = {*_SECRETS, config.evaluator.api_key_env, config.proposer.api_key_env}
            _forget(hidden)
            for_app = {name: value for name, value in others.items() if name not in hidden}
            keys = [keyfile.identity_path(config.swarm.identity_path).absolute()]
            if gpus:
                keys = [
                    gpu_folder.absolute() / f"gpu-{gpu.number}" / "swarm.pem"
                    for gpu in cards.chosen(gpus, config, environment)
                ]
            settings += _sign_in(options, config, {**for_app, "NODE_KEYS": ",".join(map(str, keys))}, console, stack)
        for_node = {**others, **secrets}
        if config.ledger.kind is LedgerKind.wallet:
            for_node |= _unlocked(config, environment, terminal)
        if gpus:
            its = [setting for setting in settings if not setting.startswith("rounds=")]
            return run_on_gpus(gpus, gpu_folder, for_node, console, rounds=config.rounds, settings=its)

        if sys.stdout.isatty() and not in_foreground(sys.stdout.fileno()):
            settings.append("tracking.view=off")  # the node has its own session, so it could not tell by itself
        node = ChildProgram(
            name="node",
            command=partial(run_command, settings),
            reports=Path(config.tracking.log_dir).expanduser() / "rounds.jsonl",
            rounds=config.rounds,
        )
        with Supervisor(console, environment=for_node) as supervisor:
            supervisor.add(node)
            return supervisor.run()


def _needs_app(chosen: Choices, config: NodeConfig) -> bool:
    """Returns whether the launcher runs the app: not if the user names another one, or configures everything."""
    named = any(setting.startswith("ledger.proxy_url=") for setting in chosen.settings)
    return config.ledger.kind is LedgerKind.modal and chosen.way in (Way.TESTNET, Way.JOIN) and not named


def _sign_in(
    options: StartOptions, config: NodeConfig, environment: Mapping[str, str], console: Console, stack: ExitStack
) -> list[str]:
    """Runs the app for as long as `stack` is open, and signs the user in; returns the node's settings for the app."""
    place = AppPlace(
        folder=_APP.absolute(),
        port=options.port_sign_in or _port(environment),
        log=Path(config.tracking.log_dir).expanduser().absolute() / "yarn.log",
    )
    if not any(environment.get(name) for name in _KEYS) and not (place.folder / "sign-in.env").exists():
        console.line(  # the app's first build takes minutes, and an app that runs already may have one
            f"sign-in: {_KEYS[0]} is not set here or in {_APP}/sign-in.env, and nobody can sign in without the key of "
            "an Alchemy app; --sign-in wallet needs none"
        )
    app = stack.enter_context(SignInApp(place, {**environment, **_for_app(config)}, console))
    wanted = options.org_id or environment.get(ORG_ENV, "") or config.ledger.org_id
    org_id = signed_in(app, environment, console, wanted, options.sign_in_limit_s)
    found = {"proxy_url": place.api_url, "org_id": org_id, "login_dir": str(place.login_dir)}
    return [f"ledger.{key}={quoted(value)}" for key, value in found.items()]


def _for_app(config: NodeConfig) -> dict[str, str]:
    """Returns the app's environment variables that must agree with the node: its chain and contracts."""
    market = config.market.contract_address
    named = {"PRG_CONTRACT_ADDRESS": market} if market else {}
    return {
        "SMART_CONTRACT_ADDRESS": config.ledger.contract_address,
        "CHAIN_ID": str(config.ledger.chain_id),
        **named,
    }


def _port(environment: Mapping[str, str]) -> int:
    text = environment.get(PORT_ENV, "") or "3000"
    if not re.fullmatch("[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise ConfigError(f"{PORT_ENV}={text} is not a port: use 1 to 65535, such as 3000")
    return int(text)


def _unlocked(config: NodeConfig, environment: Mapping[str, str], terminal: Terminal) -> dict[str, str]:
    """Returns the environment variable with the wallet's passphrase, which the node itself cannot ask for; empty if
    nobody can be asked or it is configured already. Makes a wallet if there is none. Raises WalletError."""
    path, file = Path(config.ledger.keystore).expanduser(), config.ledger.passphrase_file
    is_told = file is not None or PASSPHRASE_ENV in environment
    if not (is_told or terminal.interactive):
        return {}
    if not path.exists():
        terminal.console.line(f"there is no wallet in {path} yet; a new one is made, encrypted with a passphrase")
        told = None if file is not None else environment.get(PASSPHRASE_ENV)
        passphrase = keystore.passphrase(file, new=True) if told is None else told
        address = keystore.save(keystore.new_key(), path, passphrase)
        terminal.console.line(f"wallet: {address}: send it some test ETH; back up {path} and the passphrase")
        return {} if is_told else {PASSPHRASE_ENV: passphrase}
    if is_told:
        return {}
    terminal.console.line(f"wallet: {keystore.address(path)} in {path}")
    for left in reversed(range(_TRIES)):
        passphrase = terminal.secret("passphrase of the wallet: ")
        try:
            keystore.load(path, passphrase)
            break
        except WalletError as error:
            if not left:
                raise
            terminal.console.line(str(error))
    return {PASSPHRASE_ENV: passphrase}


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP interrupt as Ctrl-C does, so that started programs are ended too."""
    taken = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, signal.default_int_handler) for number in taken}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
