"""The compiled contracts are those of the sources."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from codezero.ledger import abi

ROOT = Path(__file__).parent.parent.parent
CONTRACTS, ARTIFACTS = ROOT / "contracts", ROOT / "codezero" / "ledger" / "artifacts"


@pytest.mark.parametrize("contract", abi.ARTIFACTS)
def test_the_artifact_was_made_of_the_source(contract):
    source = (CONTRACTS / f"{contract}.sol").read_bytes()
    artifact = json.loads((ARTIFACTS / f"{contract}.json").read_text())
    assert artifact["sourceSha256"] == hashlib.sha256(source).hexdigest()


def test_every_source_has_an_artifact():
    assert {path.stem for path in CONTRACTS.glob("*.sol")} == set(abi.ARTIFACTS)
    assert {path.stem for path in ARTIFACTS.glob("*.json")} == set(abi.ARTIFACTS)


@pytest.mark.slow
def test_compiling_again_gives_the_same_artifacts(tmp_path):
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed")
    for path in CONTRACTS.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    install = ["npm", "ci", "--no-audit", "--no-fund"]
    installed = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if installed.returncode != 0:
        pytest.skip(f"npm cannot install the compiler: {installed.stderr.strip().splitlines()[-1:]}")
    out = tmp_path / "out"
    subprocess.run(["node", "compile.mjs", str(out)], cwd=tmp_path, check=True, timeout=300)
    for path in ARTIFACTS.glob("*.json"):
        assert (out / path.name).read_bytes() == path.read_bytes(), f"{path.name}: run npm run compile in contracts/"
