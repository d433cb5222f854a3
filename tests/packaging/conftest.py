"""Source archive and wheel, built of what is tracked, and the wheel in a virtual environment outside of the checkout.

The environment borrows the packages of the one that runs the tests, all but codezero: it shows what the wheel lacks,
not whether its dependencies can be had together. `scripts/release.sh` installs those.
"""

import os
import subprocess
import sys
import tarfile
import venv
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.checkout import fresh_clone

DECOYS = (
    *("swarm.pem", "wallet.json", ".env", ".venv/decoy", "chains/home/accounts.json"),
    *("state/decoy", "other-state/decoy", "logs/decoy", "codezero/__pycache__/decoy.pyc", "codezero/key.pem"),
    *("modal-login/temp-data/userApiKey.json", "modal-login/sign-in.env", "modal-login/.next/decoy"),
    "modal-login/node_modules/decoy",
)
"""What lies in a folder in which somebody has run nodes."""


class Release:
    def __init__(self, folder):
        self.clone, self.dist = folder / "clone", folder / "dist"
        self.tracked = {str(name) for name in fresh_clone(self.clone)}
        for name in DECOYS:
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            (self.clone / name).write_text("decoy")
        self._build(self.clone, "sdist")
        (self.sdist,) = self.dist.glob("*.tar.gz")
        with tarfile.open(self.sdist) as archive:
            archive.extractall(folder, filter="data")
        self.unpacked = folder / self.sdist.name.removesuffix(".tar.gz")
        self._build(self.unpacked, "wheel")
        (self.wheel,) = self.dist.glob("*.whl")

    def _build(self, source, target):
        command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(self.dist)]
        subprocess.run(command, cwd=source, check=True, capture_output=True)


class Installed:
    """The commands of an installed wheel, run in an empty folder."""

    def __init__(self, wheel, folder):
        self.environment, self.folder = folder / "venv", folder / "empty"
        self.folder.mkdir()
        venv.create(self.environment, symlinks=True)
        (own,) = self.environment.glob("lib/python*/site-packages")
        borrowed = [path for path in sys.path if Path(path).name == "site-packages"]
        (own / "borrowed.pth").write_text("\n".join(borrowed))  # a .pth there, of an editable codezero, is not followed
        self.python("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", str(wheel))

    def python(self, *arguments):
        return self._run(self.environment / "bin" / "python", *arguments)

    def codezero(self, *arguments, codes=(0,)):
        return self._run(self.environment / "bin" / "codezero", *arguments, codes=codes)

    @contextmanager
    def running(self, *arguments):
        """A command that runs until it is stopped; gives the first line that it prints."""
        command = [self.environment / "bin" / "codezero", *arguments]
        with subprocess.Popen(command, **self._place, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process.stdout.readline()
            finally:
                process.terminate()

    @property
    def _place(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CODEZERO", "HF_"))}
        return {"cwd": self.folder, "env": {**kept, "HOME": str(self.folder)}, "stdin": subprocess.DEVNULL}

    def _run(self, *command, codes=(0,)):
        ended = subprocess.run(command, **self._place, capture_output=True, text=True, timeout=240, check=False)
        assert ended.returncode in codes, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    return Release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def installed(release, tmp_path_factory):
    return Installed(release.wheel, tmp_path_factory.mktemp("installed"))
