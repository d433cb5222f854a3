"""Docker Compose in the versions that can be had: the old 1.29 in Python, and the current one in Go."""

import json
import shutil
import time
from dataclasses import dataclass, field

from tests.containers.engine import APT, Engine, mirror, run

LATER = "trixie"
"""The release of Debian that has version 2. Only the one file is taken, and nothing installed."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def find(engine, folder):
    """The command line of each version, oldest first."""
    found = []
    if shutil.which("docker-compose"):
        found.append(["docker-compose"])
    if engine.run("compose", "version", check=False).returncode == 0:
        found.append([engine.docker, "compose"])
    elif engine.is_own:
        found.append([str(fetch_v2(folder))])
    return found


def fetch_v2(folder):
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    where = (mirror() or ["http://deb.debian.org/debian"])[0]
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {where} {LATER} main\n")
    places = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = [*APT, *(part for name, value in places.items() for part in ("-o", f"{name}={value}"))]
    run([*apt, "update"])
    run([*apt, "install", "--download-only", "--no-install-recommends", "-y", f"docker-compose/{LATER}"])
    (package,) = (folder / "cache" / "archives").glob("docker-compose_*.deb")
    run(["dpkg-deb", "-x", str(package), str(folder / "unpacked")])
    return folder / "unpacked/usr/libexec/docker/cli-plugins/docker-compose"


@dataclass
class Project:
    """A compose project of its own."""

    engine: Engine
    files: list
    name: str
    command: list
    """Of one version of compose; another may take over at any time."""
    profile: str = "local"
    variables: dict = field(default_factory=dict)

    def compose(self, *arguments, check=True):
        files = [part for file in self.files for part in ("--file", str(file))]
        start = [*self.command, *files, "--project-name", self.name, "--profile", self.profile]
        environment = {**self.engine.environment, **self.variables}
        return run([*start, *arguments], environment, check)

    def container(self, service):
        """Its id, also of one that has ended."""
        labels = (f"label=com.docker.compose.project={self.name}", f"label=com.docker.compose.service={service}")
        filters = [part for label in labels for part in ("--filter", label)]
        (found,) = self.engine.run("ps", "--all", "--quiet", *filters).stdout.split()
        return found

    def inspect(self, service):
        (found,) = json.loads(self.engine.run("inspect", self.container(service)).stdout)
        return found

    def execute(self, service, *command, check=True):
        return self.engine.run("exec", self.container(service), *command, check=check)

    def logs(self, service):
        return self.engine.run("logs", self.container(service)).stdout

    def wait_until(self, holds, what, timeout_s=240):
        """Raises AssertionError with what all containers have printed."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > deadline:
                shown = self.compose("ps", check=False).stdout + self.compose("logs", "--tail=40", check=False).stdout
                raise AssertionError(f"{what} did not come about in {timeout_s} s:\n{shown[-12000:]}")
            time.sleep(2)
