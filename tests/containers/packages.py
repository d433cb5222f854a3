"""pip's configuration of this machine, handed to a build as secrets.

A container sees no files and no certificates of the machine. Wheels that lie in a folder here are served to it on
loopback, and a certificate travels as a secret of its own.
"""

import contextlib
import functools
import os
import re
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests import local_http

MARK = "this-line-is-a-secret-of-the-build"
"""In every pip.conf that a build is given: must be in no image."""


class FilesHandler(local_http.Handler, SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""


def configured():
    """pip's settings here by name, from its files and PIP_ variables."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for name, value in re.findall(r"^(?:[\w:]+\.)([\w-]+)='(.*)'$", listed, re.M):
        found.setdefault(name, []).extend(value.replace("\\n", " ").split())
    return found


@contextlib.contextmanager
def secrets(folder):
    """The options that give a build pip's settings of this machine; the folder takes what they name."""
    settings = configured()
    served = folder / "served"
    served.mkdir()
    lines, options = [f"# {MARK}", "[global]"], []
    with local_http.serving(functools.partial(FilesHandler, directory=str(served))) as server:
        for name in ("index-url", "extra-index-url", "find-links"):
            urls = [url_of(text, served, server) for text in settings.get(name, ())]
            if urls:
                lines.append(f"{name} = {' '.join(dict.fromkeys(urls))}")
        if "trusted-host" in settings:
            lines.append(f"trusted-host = {' '.join(settings['trusted-host'])}")
        if "cert" in settings:
            lines.append("cert = /run/secrets/ca")
            options += ["--secret", f"id=ca,src={settings['cert'][-1]}"]
        (folder / "pip.conf").write_text("\n".join(lines) + "\n")
        yield [*options, "--secret", f"id=pip_conf,src={folder / 'pip.conf'}", "--network", "host"]


def url_of(text, served, server):
    """A place of packages as a build sees it. An index's links may lead to folders beside it: its parent is served."""
    split = urlsplit(text)
    if split.scheme not in ("", "file"):
        return text
    path = Path(unquote(split.path)).expanduser().resolve()
    root = path.parent if split.scheme == "file" else path
    link = served / str(len(list(served.iterdir())))
    os.symlink(root, link)
    return f"{server}/{link.name}/{'' if root == path else path.name + '/'}"


def torch_is_at_hand(requirement):
    """Whether pip finds it where this machine is told to look, without the index that the Dockerfile adds."""
    dry = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"]
    exact = ["--python-version", "3.11", "--only-binary=:all:", "--target", "/nonexistent"]
    return subprocess.run([*dry, *exact, requirement], capture_output=True, check=False).returncode == 0
