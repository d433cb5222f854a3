"""A real Docker engine for the tests: the one that runs here, else on Debian one of our own, started by hand.

Its own engine touches nothing of the machine: it keeps its images and its socket in a temporary folder, makes no
default bridge and no firewall rules, and is gone with the tests. What it costs is three packages of Debian, which is
why only CI gets it unasked.
"""

import contextlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

PYTHON_IMAGE = "python:3.11-slim-bookworm"
STAND_IN = "codezero-tests/python:3.11-bookworm"
SKIP_ENV, START_ENV = "CODEZERO_SKIP_CONTAINERS", "CODEZERO_START_ENGINE"
PACKAGES = ("docker.io", "docker-compose", "mmdebstrap")
APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
WAYS_OUT = f"to test: start Docker, or as root on Debian set {START_ENV}=1; to leave these tests out: {SKIP_ENV}=1"


class EngineError(Exception):
    """There is no engine to test with; says what to do."""


@dataclass(frozen=True)
class Engine:
    docker: str
    environment: dict
    is_own: bool

    def run(self, *arguments, check=True, timeout_s=300, environment=None):
        """Output and errors of a docker command as one text in `stdout`."""
        return run([self.docker, *arguments], {**self.environment, **(environment or {})}, check, timeout_s)

    def python_image(self):
        """The base image: the official one where a registry is in reach, else a stand-in made of Debian's packages."""
        for image in (PYTHON_IMAGE, STAND_IN):
            if self.run("image", "inspect", image, check=False).returncode == 0:
                return image
        if not self.is_own and self.run("pull", PYTHON_IMAGE, check=False).returncode == 0:
            return PYTHON_IMAGE
        path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.run("import", "-c", f"ENV {path} LANG=C.UTF-8", str(base_system()), STAND_IN)
        return STAND_IN


def run(command, environment=None, check=True, timeout_s=300):
    ended = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )
    if check and ended.returncode:
        raise EngineError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-6000:]}")
    return ended


@contextlib.contextmanager
def engine():
    """Raises EngineError: there is none, and none can be started."""
    clients = [path for path in (shutil.which("docker"), "/usr/bin/docker") if path and Path(path).exists()]
    if clients and run([clients[0], "info"], check=False).returncode == 0:
        docker = next((path for path in clients if has_buildkit(path)), None)
        if docker is None:
            raise EngineError(f"{clients[0]} has no BuildKit: install Docker's buildx")
        yield Engine(docker=docker, environment={}, is_own=False)
        return
    if not (os.environ.get("CI") or os.environ.get(START_ENV)):
        raise EngineError("no Docker engine answers")
    if os.geteuid() or not shutil.which("apt-get"):
        raise EngineError("no Docker engine answers, and none can be started without root and apt-get")
    if not all(Path(program).exists() for program in ("/usr/sbin/dockerd", "/usr/bin/docker", "/usr/bin/mmdebstrap")):
        install()
    folder = Path(tempfile.mkdtemp(prefix="codezero-engine-", dir=fast_place()))
    try:
        with (folder / "dockerd.log").open("wb") as log, started(folder, log) as environment:
            # Debian's client and not another one in PATH: it has BuildKit built in.
            yield Engine(docker="/usr/bin/docker", environment=environment, is_own=True)
    finally:
        run(["umount", str(folder / "exec" / "netns" / "default")], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def fast_place():
    """Memory where there is plenty of it: images are 200,000 small files that are written and soon removed."""
    memory = Path("/dev/shm")
    plenty = memory.is_dir() and min(shutil.disk_usage(memory).free, psutil.virtual_memory().available) > 18 << 30
    return memory if plenty else None


def has_buildkit(docker):
    """As a plugin, or built in, which it was until version 22."""
    if run([docker, "buildx", "version"], check=False).returncode == 0:
        return True
    version = run([docker, "version", "--format", "{{.Client.Version}}"], check=False).stdout
    return version.partition(".")[0].isdecimal() and int(version.partition(".")[0]) < 23


def install():
    run([*APT, "update"], timeout_s=600)
    run([*APT, "install", "-y", "--no-install-recommends", *PACKAGES], timeout_s=900)


@contextlib.contextmanager
def started(folder, log):
    """A daemon of our own; gives the environment in which clients reach it."""
    socket = f"unix://{folder}/docker.sock"
    own = (
        "--data-root",
        folder / "data",
        "--exec-root",
        folder / "exec",
        "--pidfile",
        folder / "pid",
        "--host",
        socket,
    )
    harmless = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--ip-forward=false")
    daemon = subprocess.Popen(["/usr/sbin/dockerd", *map(str, own), *harmless], stdout=log, stderr=log)
    environment = {"DOCKER_HOST": socket}
    try:
        deadline = time.monotonic() + 60
        while run(["/usr/bin/docker", "version"], environment, check=False).returncode:
            if daemon.poll() is not None or time.monotonic() > deadline:
                said = (folder / "dockerd.log").read_text(errors="replace")[-2000:]
                raise EngineError(f"dockerd does not start here:\n{said}")
            time.sleep(0.2)
        yield environment
    finally:
        left = run(["/usr/bin/docker", "ps", "--all", "--quiet"], environment, check=False)
        if left.returncode == 0 and left.stdout.split():
            run(["/usr/bin/docker", "rm", "--force", "--volumes", *left.stdout.split()], environment, check=False)
        daemon.terminate()
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def base_system():
    """A tar of Debian with Python 3.11, kept between runs: making it takes most of a minute.

    Python is a virtual environment at /usr/local, where the official image has its own: the paths are the same, and pip
    may install there.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "codezero-tests"
    tar = cache / f"bookworm-python3.11-{platform.machine()}.tar"
    if tar.exists():
        return tar
    if not shutil.which("mmdebstrap"):
        raise EngineError(f"{PYTHON_IMAGE} is not to be had, and a stand-in takes mmdebstrap (Debian)")
    cache.mkdir(parents=True, exist_ok=True)
    temporary = tar.with_name(f".{os.getpid()}.{tar.name}")
    try:
        unneeded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale")]
        run(
            [
                *("mmdebstrap", "--variant=minbase", "--format=tar", "--dpkgopt=force-unsafe-io", *unneeded),
                *("--include=ca-certificates,netbase,tzdata,python3.11-venv",),
                '--customize-hook=chroot "$1" python3.11 -m venv /usr/local',
                "bookworm",
                str(temporary),
                *mirror(),
            ],
            timeout_s=600,
        )
        temporary.rename(tar)
    finally:
        temporary.unlink(missing_ok=True)
    return tar


def mirror():
    """The mirror that this machine takes bookworm from; none means Debian's own."""
    asked = run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Codename: bookworm", "Origin: Debian"], check=False
    )
    return sorted(set(asked.stdout.split()))[:1] if asked.returncode == 0 else []
