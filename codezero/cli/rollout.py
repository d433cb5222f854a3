"""`codezero rollout`: generates rollouts for nodes on other machines."""

from __future__ import annotations

import argparse
import os

from codezero.cli.options import Commands, add_command, add_group, heavy_imports, path, port
from codezero.runtime.console import Console

PORT = 7070
_EXAMPLES = """\
examples:
  codezero rollout serve                                  for a node on this machine
  codezero rollout serve --host 0.0.0.0                   for one that reaches this machine by its network
  codezero rollout serve rollout.engine=llama_cpp         quantised, for train.method=lora on a CPU
  codezero rollout serve rollout.engine=vllm              by vLLM, on an NVIDIA GPU
"""


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "rollout", "generate rollouts for a node on another machine")
    text = "serve rollouts of a model, with the weights that the node sends"
    serve = add_command(group, "serve", _serve, text, about=f"S{text[1:]}. Ctrl-C ends it.", examples=_EXAMPLES)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: for this machine only)")
    serve.add_argument("--port", type=port, default=PORT, help=f"default {PORT}; 0 takes a free one")
    serve.add_argument("--address", metavar="HOST", help="how other machines call this one, if it is not the above")
    text = "where to write address and token, for the node (default rollout-server.yaml); an existing token is kept"
    serve.add_argument("--file", type=path, default="rollout-server.yaml", help=text)
    serve.add_argument("settings", nargs="*", metavar="key=value", help="model.*, and rollout.engine")


def _serve(options: argparse.Namespace) -> int:
    from codezero.config.load import load_config

    config = load_config(options.settings)
    Console().line("codezero rollout server starts")  # printed first, since the imports below take seconds
    with heavy_imports():
        from codezero.publish.tokens import forget_secrets
        from codezero.rollouts.build import run_server
        from codezero.rollouts.serve import ServeOptions

    chosen = ServeOptions(host=options.host, port=options.port, address=options.address, file=options.file)
    forget_secrets(os.environ)
    return run_server(config, chosen)
