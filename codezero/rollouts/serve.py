"""`codezero rollout serve`: loads a model and serves rollouts of it until it is stopped."""

from __future__ import annotations

import ipaddress
import re
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from codezero.config import RolloutEngine, checkout
from codezero.config.multiaddr import is_loopback
from codezero.config.swarm_file import quoted
from codezero.errors import RolloutError, told_as
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups
from codezero.rollouts import rollout_file
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.server import Sampler, make_app
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.runtime.serving import end_by_sigterm, in_url, listening, own_addresses, serve_app

CONNECTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    host: str
    port: int
    address: str | None
    """The host under which trainers reach this machine; None for the one that it listens on."""
    file: Path


def serve(
    policy: LoadedModel, sample: SampleGroups, engine: RolloutEngine, options: ServeOptions, console: Console
) -> None:
    """Serves until Ctrl-C or SIGTERM. Raises RolloutError: the address is not available; ConfigError: the file cannot
    be written; StateError: another server uses it."""
    end_by_sigterm()
    folder = options.file.with_name(f".{options.file.name}.uploads")
    with (
        state.locked(folder, what="folder", holder="server", setting="--file"),
        listening(options.host, options.port, RolloutError, "rollout server") as listener,
    ):
        port = listener.getsockname()[1]
        token = _token(options.file)
        url = f"http://{in_url(options.address or _reached(options.host))}:{port}"
        rollout_file.write(options.file, RolloutFile(url=url, token=token))
        app = make_app(Sampler(policy, sample, engine, console.line), token, _empty(folder / "new"))
        console.line(f"rollout server: {policy.name} by {engine.value} at {url}  (Ctrl-C ends it)")
        console.line(f"{options.file} has its address and token: copy it to the machine that learns, and run there")
        name = options.file.name
        listed = name if re.fullmatch(r"[\w.-]+", name, re.ASCII) else quoted(name)
        console.line(f"  {checkout.command('run', 'rollout.engine=remote', f'rollout.servers=[{listed}]')}")
        if not is_loopback(options.host):
            console.line(
                "warning: the token and all text go over the network unencrypted; across a network that is not yours "
                "use a tunnel (docs/rollout-service.md)"
            )
        elif options.address is None:
            console.line("only this machine can reach it; --host 0.0.0.0 lets others")
        serve_app(app, listener, CONNECTIONS)


def _token(file: Path) -> str:
    """Returns the token of an earlier start, or a new one."""
    if not file.exists():
        return secrets.token_urlsafe(32)
    return rollout_file.read(
        file, "delete it, so that a new one is made, and copy that to the machines that learn"
    ).token


def _empty(folder: Path) -> Path:
    """Makes and returns the folder, without what a killed server left there."""
    with told_as(RolloutError, f"cannot use {folder}", "give another place with --file"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    return folder


def _reached(host: str) -> str:
    """Returns the host as others see it: for all interfaces the first address of this machine that is not loopback."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    found = own_addresses(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    return found[0] if found else "localhost"
