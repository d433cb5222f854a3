"""Downloads a model from the hub: configuration, tokenizer and safetensors, but no pickled weights."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codezero.config import checkout
from codezero.errors import ModelError
from codezero.llm.manifest import MANIFEST, Manifest, describe_files
from codezero.llm.sources import HUB_TIMEOUT_S, Report, bytes_in, hub_errors

SUFFIXES = (".safetensors", ".json", ".jinja", ".model")
"""The files that transformers needs, beside `merges.txt` and `vocab.txt`; not pickles (.bin, .pt), which could run
code."""
ADAPTER = "adapter_"
"""The beginning of the names of an adapter's files. Where such lie beside a model's own, transformers loads them too
and freezes the model."""


def download(
    repo: str, folder: Path, need_space: Callable[[int], None], report: Report, token: str | None = None
) -> Manifest:
    """Downloads the current commit of a hub repository into `folder`, continuing interrupted downloads and removing
    files of earlier commits that this one lacks. Returns its manifest.

    Calls `need_space(bytes)` with what has not come yet before anything is written. Raises ModelError: the repository
    does not exist or has no safetensors, the hub cannot be reached, or a file differs from the hub's announcement.
    OSError: the disk fails.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError

    with hub_errors(repo, f"try again later, or use a name from `{checkout.COMMAND} models list` or a local folder"):
        try:
            info = HfApi(token=token).model_info(repo, files_metadata=True, timeout=HUB_TIMEOUT_S)
            wanted = {file.rfilename: file for file in info.siblings or () if _is_wanted(file.rfilename)}
            _require_safetensors(repo, set(wanted))
            for path in list(folder.iterdir()):
                if path.is_file() and path.name not in wanted:
                    path.unlink()  # of an earlier commit: transformers might load it in place of this one's
            need_space(sum(file.size or 0 for file in wanted.values()) - bytes_in(folder))
            report(f"{repo}: downloading {len(wanted)} files from the hub")
            snapshot_download(
                repo,
                revision=info.sha,
                local_dir=folder,
                allow_patterns=list(wanted),
                etag_timeout=HUB_TIMEOUT_S,
                token=token,
            )
        except OfflineModeIsEnabled as error:
            raise ModelError(f"{repo} is not in the cache and HF_HUB_OFFLINE is set: unset it to download") from error
        except RepositoryNotFoundError as error:  # also for a gated repository
            raise ModelError(
                f"the hub has no model {repo} for you: check the name, and for a gated model accept its terms on the "
                "hub and set HF_TOKEN"
            ) from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    files = describe_files(folder, repo)
    for name, file in wanted.items():
        _check_file(repo, folder / name, file, files[name].sha256 if name in files else None)
    return Manifest(name=repo, source=str(info.sha), source_sha256=None, converter=None, files=files)


def _is_wanted(name: str) -> bool:
    # A prepared folder, with its manifest, may have been uploaded.
    is_of_model = name.endswith(SUFFIXES) and name != MANIFEST and not name.startswith(ADAPTER)
    return "/" not in name and (is_of_model or name in ("merges.txt", "vocab.txt"))


def _require_safetensors(repo: str, names: set[str]) -> None:
    if not any(name.endswith(".safetensors") for name in names):
        raise ModelError(
            f"{repo} holds no safetensors of a whole model, and pickled or GGUF weights are not taken from unknown "
            "repositories: choose a repository with .safetensors files, or a name from "
            f"`{checkout.COMMAND} models list`"
        )
    if "config.json" not in names:
        raise ModelError(f"{repo} holds no config.json, so it is not a complete model: choose the base repository")


def _check_file(repo: str, path: Path, file: Any, sha256: str | None) -> None:
    """Compares a file with the size that the hub announces, and the SHA-256 that it announces for large files. Raises
    ModelError: they differ."""
    size = path.stat().st_size if sha256 is not None else None
    announced = file.lfs.sha256 if file.lfs is not None else sha256
    if size is None or (file.size is not None and size != file.size) or sha256 != announced:
        path.unlink(missing_ok=True)
        raise ModelError(f"{path.name} of {repo} arrived damaged ({size} bytes, SHA-256 {sha256}): try again")
