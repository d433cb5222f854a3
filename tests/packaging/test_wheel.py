"""The wheel outside of any checkout: each command finds its files there."""

import json
import re
import tarfile
import urllib.request
import zipfile
from email import message_from_bytes
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codezero import __version__
from codezero.config.load import explain, load_config
from tests import tiny_node
from tests.builders import save_tiny
from tests.chains import NO_ANVIL
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_source_archive_has_what_is_tracked_and_nothing_of_who_made_it(release):
    with tarfile.open(release.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == release.tracked | {"PKG-INFO"}


def test_the_wheel_has_the_package_its_settings_and_its_licence(release):
    with zipfile.ZipFile(release.wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        told = message_from_bytes(archive.read(metadata))
    info = metadata.removesuffix("METADATA")
    assert {name for name in names if not name.startswith(info)} == {
        *(name for name in release.tracked if name.startswith("codezero/")),
        *(f"codezero/{name}" for name in release.tracked if name.startswith("configs/")),
        "codezero/scripts/constraints.txt",
    }
    assert f"{info}licenses/LICENSE" in names
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("codezero", __version__, "MIT")


@pytest.fixture(scope="module")
def played(installed, tmp_path_factory):
    """What a round of the wheel's node has printed."""
    model = save_tiny(tmp_path_factory.mktemp("model"))
    few = ("rollout.num_generations=2", "rollout.max_new_tokens=24", "rounds=1")
    return installed.codezero("run", "preset=local", *tiny_node.settings(model), *few)


def test_it_plays_a_round_from_its_own_code(installed, played):
    where = installed.python("-c", "import codezero; print(codezero.__file__)")
    assert Path(where).is_relative_to(installed.environment)
    assert re.search(r"^round 1 \| reward ", played, re.MULTILINE), played
    assert (installed.folder / "state" / "status.json").exists()


def test_what_a_node_has_left_is_shown_and_reported(installed, played):
    assert json.loads(installed.codezero("status", "--json", "state", codes=[3]))["runs"]
    installed.codezero("report", "--out", "report.html", "state")
    assert "<svg" in (installed.folder / "report.html").read_text()


def test_its_settings_are_those_of_the_checkout(installed):
    shown = installed.codezero("run", "--show-config", "preset=faithful")
    assert shown == explain(load_config(["preset=faithful"]))


@pytest.mark.skipif(bool(NO_ANVIL), reason=NO_ANVIL)
def test_a_chain_gets_the_contract(installed):
    with installed.running("chain", "up", "--port", str(free_port())) as line:
        assert " ready at http://" in line
        said = installed.codezero("chain", "deploy")
    assert re.search(r"ledger\.contract_address=0x[0-9a-fA-F]{40}", said), said


def test_the_dashboard_has_its_pages_and_their_files(installed, played):
    with installed.running("dashboard", "--port", "0") as line:
        url = re.search(r"http://\S+", line)[0].rstrip("/")
        page = urllib.request.urlopen(url).read().decode()
        files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
        for file in files:
            assert urllib.request.urlopen(url + file).read()
    names = {Path(urlsplit(file).path).name for file in files}
    assert names >= {"dashboard.css", "dashboard.js", "charts.css"}


def test_doctor_knows_the_packages_and_the_versions_that_were_tried(installed, played):
    shown = installed.codezero("doctor", "--json", codes=[0, 1])  # warnings: servers that are away
    found = {(each["name"], each["severity"]): each for each in json.loads(shown)["findings"]}
    assert ("packages", "ok") in found
    assert ("pins", "ok") in found or ("pins", "info") in found
    assert "run_rl_swarm.sh" not in shown
    assert not [name for name, severity in found if severity == "error"]


def test_models_are_listed(installed):
    assert "Qwen2.5-Coder-0.5B-Instruct" in installed.codezero("models", "list")


def test_it_says_that_it_has_no_sign_in_app_and_what_to_do(installed):
    said = installed.codezero("start", "--testnet", "--yes", "--port-sign-in", str(free_port()), codes=[1])
    assert "holds no sign-in app, which comes with the source, not with the wheel" in said


def test_its_version_has_no_commit(installed):
    assert installed.codezero("--version") == f"codezero {__version__}\n"
