"""Checks of this machine, as far as a node may use it: processor, memory, disks and clock."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from codezero.config import Network
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, refusal, warning
from codezero.errors import DISK_FULL, ModelError
from codezero.llm import catalogue, store
from codezero.llm.store import ModelState
from codezero.runtime import limits
from codezero.runtime.amounts import GIB, counted

LOW_BYTES = 2 * GIB
"""Free disk space in bytes below which logs, checkpoints and downloads are soon cut off."""
SWARM_S = 60.0
"""The largest difference of clocks that nodes of a native swarm accept, in seconds."""
GENRL_S = 3.0
"""The largest difference of clocks that hivemind's nodes accept, in seconds."""
_SET = "set the clock, and keep it so: `timedatectl set-ntp true`, or the settings for date and time"
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")
"""The instruction sets that make arithmetic on a CPU fast, by the kernel's names."""


def check_processor(case: ExaminedNode) -> Iterator[Finding]:
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    name, features = _cpu_info(Path("/proc/cpuinfo"))
    has = f" ({', '.join(features)})" if features else ""
    threads = os.cpu_count() or 1
    many = f"{counted(cores, 'core')}, {counted(threads, 'thread')}"
    found = f"{name or platform.machine()}, {many}{has}"
    yield info("processor", found)
    if platform.machine().lower() in ("x86_64", "amd64") and name and "avx2" not in features:
        means = "torch is several times slower on it, and some packages end with `illegal instruction`"
        do = "take another machine, or in a virtual one let the processor's features through (host-passthrough)"
        yield warning("processor", "it has no AVX2", means, do)
    yield from _threads(case, cores, limits.usable_cores(), os.getloadavg()[0])


def _threads(case: ExaminedNode, cores: int, usable: int, load: float) -> Iterator[Finding]:
    wanted = case.config.model.threads
    if usable < cores:
        found = f"this process may use {usable} of {cores} cores"
        yield info("threads", found, "a container, service or job limits it")
    if wanted > usable:
        means = "threads that share a core slow each other down"
        do = "set model.threads=0, which takes one per core"
        yield warning("threads", f"model.threads={wanted} on {counted(usable, 'core')}", means, do)
    elif 0 < wanted < usable:
        yield info("threads", f"model.threads={wanted} of {usable} cores", "the other cores are not used")
    if load > 2 * cores:
        found = f"{load:.1f} programs want to run on {cores} cores"
        do = "stop what else runs here (`top`), or give each node fewer threads (model.threads)"
        yield warning("load", found, "rounds take that many times longer", do)


def check_memory(case: ExaminedNode) -> Iterator[Finding]:
    """Reports free memory and swap. The memory plan (`torch_build`) tells whether they suffice for the node."""
    memory, swap, left = psutil.virtual_memory(), psutil.swap_memory(), limits.memory_left()
    line = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB free, swap {swap.free / GIB:.1f} GiB free"
    if left < memory.available:
        line += f"; a limit of a container, service or job leaves {left / GIB:.1f} GiB"
    yield info("memory", line)
    if swap.used > 0.25 * memory.total:
        means = "a node whose memory lies on disk is many times slower, or killed"
        do = "stop other programs; swarm.num_local=2 train.lora_learning_rate=5e-5 needs less"
        yield warning("swap", f"{swap.used / GIB:.1f} GiB are swapped out", means, do)
    # a running node has that memory already
    if not case.is_running and case.config.train.memory_limit_gib * GIB > memory.available:
        limit_gib = case.config.train.memory_limit_gib
        found = f"train.memory_limit_gib={limit_gib:g}, and {memory.available / GIB:.1f} GiB free"
        means = "the plan counts on memory that is not there, and the system may kill the node"
        yield warning("memory", found, means, "lower it, or set it to 0 to plan with what is free")


def _cpu_info(path: Path) -> tuple[str, list[str]]:
    """Returns the processor's name and which of `_FEATURES` it has; both empty where the system has no such file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "", []
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    return fields.get("model name", ""), [feature for feature in _FEATURES if feature in flags]


def check_disk(case: ExaminedNode) -> Iterator[Finding]:
    folders = (
        ("state_dir", case.state_dir, "nothing that is learnt can be saved"),
        ("tracking.log_dir", case.log_dir, "no node can start"),
        ("model.cache_dir", case.cache_dir, "no weights can be prepared"),
        ("TMPDIR", Path(tempfile.gettempdir()), "no lock can be held, and downloads fail"),
    )
    for setting, folder, means in folders:
        yield _folder(setting, folder, means)
    yield from _space_for_weights(case)


def _folder(setting: str, folder: Path, means: str) -> Finding:
    there = _nearest(folder)
    name = f"disk of {setting}"
    fault = _why_unwritable(there)
    if fault is not None:
        why, do = fault
        return error(name, f"{folder}: cannot write in {there}: {why}", means, f"{do}, or give another {setting}")
    free, files = shutil.disk_usage(there).free, os.statvfs(there)
    found = f"{free / GIB:.1f} GiB free in {folder}"
    if files.f_files and files.f_favail == 0:
        return error(name, f"{folder}: no file can be added (no free inodes)", means, "delete files, or give another")
    if free < LOW_BYTES:
        return warning(name, found, "it is soon full, and then the node stops", f"free some, or give another {setting}")
    return ok(name, found)


def _nearest(folder: Path) -> Path:
    """Returns the folder, or, where it does not exist yet, the nearest parent that does: the node makes it there."""
    while not os.path.lexists(folder):
        folder = folder.parent
    return folder


def _why_unwritable(folder: Path) -> tuple[str, str] | None:
    """Returns why nothing can be written in the folder and the remedy, or None if something can."""
    if not folder.is_dir():
        return "it is not a folder" if folder.exists() else "it is a link that leads nowhere", "move it away"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as fault:
        return str(fault.strerror), "free space" if fault.errno in DISK_FULL else "correct its rights"
    return None


def _space_for_weights(case: ExaminedNode) -> Iterator[Finding]:
    known = catalogue.find(case.config.model.name)
    states = {model.name: model.state for model in store.list_models(case.cache_dir)}
    if known is None or states.get(known.name) is ModelState.PREPARED:
        return
    if states.get(known.name) is ModelState.DAMAGED:
        found = f"{known.name} in {case.cache_dir} is damaged"
        do = store.pull_command(known.name, case.cache_dir)
        yield warning("weights", found, "the next start makes it again", do)
    try:
        store.require_space(known, case.cache_dir / "downloads", _nearest(case.cache_dir))
    except ModelError as fault:
        yield refusal("weights", fault)


def check_clock(case: ExaminedNode) -> Iterator[Finding]:
    synchronised = ntp(case)
    if synchronised is False:
        yield info("clock", "this machine does not keep its clock by a time server (NTP)", "it drifts", _SET)
    if not case.skews:
        yield info("clock", "no server was reached that told the time", "whether the clock is right is not known")
        return
    skew = statistics.median(skew for _, skew in case.skews)
    who = ", ".join(name for name, _ in case.skews[:3])
    network = case.config.swarm.network
    found = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} {who}"
    if abs(skew) > SWARM_S and network is not Network.none:
        yield error("clock", found, "others drop what this node publishes, and it drops theirs", _SET)
    elif abs(skew) > SWARM_S:
        yield warning("clock", found, "certificates and dates in logs are wrong; in a swarm it would be alone", _SET)
    elif abs(skew) > GENRL_S:
        make = warning if network is Network.genrl else info
        yield make("clock", found, "nodes of GenRL want it within 3 seconds; others within a minute", _SET)
    else:
        yield ok("clock", f"within {GENRL_S:.0f} s of {who}")


def ntp(case: ExaminedNode) -> bool | None:
    """Returns whether the system reports its clock as synchronised, or None where it reports nothing."""
    said = case.said_by("timedatectl", "show", "--property=NTPSynchronized", "--value", limit_s=1.5) or ""
    return {"yes": True, "no": False}.get(said.strip())
