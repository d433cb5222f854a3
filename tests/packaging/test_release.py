"""What a release promises: one version everywhere, and a workflow that gives nothing away."""

import re
import subprocess

import pytest

from codezero import __version__
from codezero.cli import main
from codezero.config import checkout
from tests.commands import ROOT
from tests.containers.test_files import said, tool

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_changelog_tells_of_this_version_and_of_what_comes():
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", __version__]


def test_a_tag_of_this_commit_is_that_of_the_version():
    tags = (checkout.git(ROOT, "tag", "--points-at", "HEAD", "v*") or b"").decode().split()
    assert not tags or tags == [f"v{__version__}"]


def test_no_release_is_built_under_another_versions_tag():
    code, output = said("scripts/release.sh", "v9.9.9")
    assert code == 1
    assert output == f"error: the tag is v9.9.9, and __version__ in codezero/__init__.py is {__version__}\n"


def test_scripts_say_which_torch_they_install():
    lines = [line.strip() for path in ROOT.glob("scripts/*.sh") for line in path.read_text().splitlines()]
    calls = [line for line in lines if re.match(r"install_torch\b(?!\()", line)]
    assert len(calls) == 2
    assert all(call.startswith('install_torch "$') for call in calls), calls


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_valid_and_safe(workflow):
    code, output = said(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", str(workflow))
    assert code == 0, output
    code, output = said(tool("zizmor"), "--offline", "--no-progress", "--persona", "pedantic", str(workflow))
    assert code == 0, output


def make_repository(folder):
    """A git repository with one commit."""
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit = ["commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *commit], cwd=folder, check=True)


def test_the_version_shown_in_a_checkout_names_its_commit(tmp_path, monkeypatch, capsys):
    make_repository(tmp_path)
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert re.fullmatch(rf"codezero {re.escape(__version__)} \([0-9a-f]{{7,}}\)\n", capsys.readouterr().out)


def test_a_commit_of_something_around_it_is_not_taken_for_its_own(tmp_path, monkeypatch):
    (tmp_path / "unpacked").mkdir()
    make_repository(tmp_path)
    monkeypatch.setattr(checkout, "ROOT", tmp_path / "unpacked")
    assert checkout.version() == __version__
