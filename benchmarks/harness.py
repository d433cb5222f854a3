"""Runs a benchmark so that it can be stopped, repeated and believed.

A benchmark is a few arms, an arm a list of pieces, and a piece gives raw counts. `run` prints what an arm can show
before it starts, does its pieces one after another, and keeps each as soon as it is done in `benchmarks/state/`: killed
at any moment, the same command goes on from there. At the end the arm is one file, `benchmarks/results/NAME/ARM.json`,
which holds all that a table needs (`python -m benchmarks.tables`): settings, seed, targets and counts, and for each
sitting the machine, the commit, the time, and how much other work ran beside it. An arm whose file is there is not run
again unless its settings have changed or `--again` is given; of an arm's pieces it is given
those that it lacks, and loses none.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec
import psutil

from benchmarks.measure import Machine, machine, measure
from benchmarks.power import Power
from codezero.runtime.files import replace_file

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
STATE = ROOT / "benchmarks" / "state"
"""What a stopped run goes on from, evaluations included; git ignores it."""
MODEL, CACHE = "Qwen2.5-Coder-0.5B-Instruct", "~/.cache/codezero"
"""The model of benchmarks that need a real one, and the folder in which models are prepared."""

Counts = Any
"""Raw counts of a piece: numbers, texts, lists and mappings of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The bounds of a figure. They are part of the result, so that they cannot move after the figure is known."""

    figure: str
    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        high_enough = self.at_least is None or value >= self.at_least
        return high_enough and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    benchmark: str
    """The module below `benchmarks`."""
    name: str
    settings: Mapping[str, Any]
    """All that its counts depend on but the code, as JSON; data by its hash."""
    seed: int
    pieces: Sequence[str]
    power: Sequence[Power]
    targets: Sequence[Target] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """One stretch of work on an arm, without what a kill has cut off."""

    machine: Machine
    commit: str
    dirty: bool
    """The working tree differed from the commit."""
    began: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    others_cpu_s: float = 0.0
    """Processor time of other programs meanwhile."""
    load: float
    """The machine's load average over the minute before it began."""

    @property
    def others(self) -> float:
        """Share of the machine's processors that other programs took."""
        return min(self.others_cpu_s / max(self.wall_s * self.machine.cores, 1e-9), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The file of an arm."""

    benchmark: str
    arm: str
    settings: dict[str, Any]
    seed: int
    power: list[Power]
    targets: list[Target]
    sittings: list[Sitting]
    counts: dict[str, Counts]


def command_line(module: str, about: str | None) -> argparse.ArgumentParser:
    """Returns the command line of a module whose docstring is `about`, without options."""
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=(about or "").split("\n")[0])


def parser(module: str, about: str | None) -> argparse.ArgumentParser:
    """Returns the command line of a benchmark whose arms `run` does, with the options that all of these have."""
    made = command_line(module, about)
    made.add_argument("--again", action="store_true", help="also where the results are there already")
    made.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="where results are written")
    made.add_argument("--state", type=Path, default=STATE, metavar="DIR", help="where a stopped run is kept")
    return made


def run(arm: Arm, do: Callable[[str], Counts], options: argparse.Namespace) -> Result:
    """Does what is left of an arm, `do` a piece at a time, and writes its result."""
    path = options.results / arm.benchmark / f"{arm.name}.json"
    print(f"{arm.benchmark}, {arm.name}: {len(arm.pieces)} pieces, load {psutil.getloadavg()[0]:.1f} before it starts")
    for power in arm.power:
        print(f"  {power.sentence()}", flush=True)
    there = None if options.again else done(arm, options.results)
    if there is not None and set(arm.pieces) <= there.counts.keys():
        print(f"  done already: {described(there.sittings)}; --again does it again")
        return there
    with _kept(options.state / arm.benchmark / f"{arm.name}-{_digest(arm)}.jsonl") as kept:
        sittings, counts = kept.read()
        if there is not None:
            sittings, counts = there.sittings + sittings, there.counts | counts
        pieces = list(dict.fromkeys((*counts, *arm.pieces)))
        if counts:
            print(f"  goes on: {len(counts)} of {len(pieces)} pieces are done, in {kept.path}", flush=True)
        try:
            sittings += _sit(pieces, do, counts, kept)
        except KeyboardInterrupt:
            print(f"  stopped: {len(counts)} pieces are in {kept.path}; the same command goes on", file=sys.stderr)
            raise SystemExit(130) from None
        result = Result(
            benchmark=arm.benchmark,
            arm=arm.name,
            settings=dict(arm.settings),
            seed=arm.seed,
            power=list(arm.power),
            targets=list(arm.targets),
            sittings=sittings,
            counts={piece: counts[piece] for piece in pieces},
        )
        write(path, dumps(result))
        kept.path.unlink(missing_ok=True)
    print(f"  {described(result.sittings)}\n  {path}", flush=True)
    return result


def done(arm: Arm, folder: Path = RESULTS) -> Result | None:
    """The arm's result so far; None if there is none with its settings and seed."""
    path = folder / arm.benchmark / f"{arm.name}.json"
    there = read(path) if path.exists() else None
    return there if there and (there.settings, there.seed) == (_plain(arm.settings), arm.seed) else None


def _sit(pieces: list[str], do: Callable[[str], Counts], counts: dict[str, Counts], kept: _Kept) -> list[Sitting]:
    """Does the pieces that `counts` lacks and adds them; returns the sitting, if anything was left to do."""
    missing = [piece for piece in pieces if piece not in counts]
    sitting = _sitting()
    for piece in missing:
        found, cost = measure(partial(do, piece))
        sitting = replace(
            sitting,
            wall_s=sitting.wall_s + cost.wall_s,
            cpu_s=sitting.cpu_s + cost.cpu_s,
            others_cpu_s=sitting.others_cpu_s + cost.other_cpu_s,
        )
        kept.append(piece, found, sitting)
        counts[piece] = found
        print(f"  {len(counts)} of {len(pieces)}: {piece}", file=sys.stderr, flush=True)
    return [sitting] if missing else []


def read(path: Path) -> Result:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except msgspec.DecodeError as error:
        raise SystemExit(
            f"{path} is no result of a benchmark ({error}): take it away and run the benchmark again"
        ) from error


def results(benchmark: str, folder: Path = RESULTS) -> dict[str, Result]:
    """The results of a benchmark, by arm."""
    return {path.stem: read(path) for path in sorted((folder / benchmark).glob("*.json"))}


def described(sittings: Sequence[Sitting]) -> str:
    """`AMD EPYC (AVX512), 2 cores, ...; commit 1a2b3c4d; 2026-11-22; other work took 43 % of the machine`"""
    wall_s = sum(one.wall_s for one in sittings)
    others = sum(one.others * one.wall_s for one in sittings) / max(wall_s, 1e-9)
    commits = dict.fromkeys(f"{one.commit[:8]}{' with changes' if one.dirty else ''}" for one in sittings)
    return "; ".join(
        [
            *dict.fromkeys(str(one.machine) for one in sittings),
            f"commit {', '.join(commits)}",
            ", ".join(dict.fromkeys(one.began[:10] for one in sittings)),
            f"other work took {others:.0%} of the machine",
        ]
    )


def write(path: Path, content: str | bytes) -> None:
    """Writes a file in one step, with the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def require(path: Path) -> None:
    """Ends the benchmark where there is no such file of data."""
    if not path.is_file():
        raise SystemExit(
            f"{path} is no file: name one that is there. --mbpp FILE wants mbpp.jsonl of "
            "https://github.com/google-research/google-research/tree/master/mbpp"
        )


def digest_of(path: Path) -> str:
    """Returns the hash of a file, by which settings name data. Ends the benchmark where it is not there."""
    require(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def dumps(result: Result) -> str:
    """JSON with a line for each field, sitting and piece, so that a change of a result can be read."""
    lines = []
    for key, value in _plain(result).items():
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"  {json.dumps(one)}" for one in value) + "\n ]"
        elif key == "counts":
            text = (
                "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in value.items()) + "\n }"
            )
        else:
            text = json.dumps(value)
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


class _Kept:
    """The pieces that are done, a line of JSON each, in a file that this process holds."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self._file = path, file

    def read(self) -> tuple[list[Sitting], dict[str, Counts]]:
        """Sittings and counts so far; a last line that a kill has torn is cut off."""
        sittings: dict[str, Sitting] = {}
        counts: dict[str, Counts] = {}
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                self._file.truncate(self._file.tell() - len(line))
                break
            try:
                piece, found, sitting = msgspec.json.decode(line, type=tuple[str, Any, Sitting])
            except msgspec.DecodeError as error:
                raise SystemExit(f"{self.path} is damaged ({error}): take it away to begin this arm again") from error
            counts[piece] = found
            sittings[sitting.began] = sitting
        return list(sittings.values()), counts

    def append(self, piece: str, counts: Counts, sitting: Sitting) -> None:
        """Adds a piece for good, with the sitting as it is after it."""
        self._file.write(msgspec.json.encode((piece, counts, sitting)) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def _kept(path: Path) -> Iterator[_Kept]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"{path} is in use: another process runs this arm") from None
        yield _Kept(path, file)


def _sitting() -> Sitting:
    def git(*arguments: str) -> str:
        return subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "codezero", "configs", "benchmarks", ":!benchmarks/results")
    return Sitting(
        machine=machine(),
        commit=git("rev-parse", "HEAD") or "unknown",
        dirty=bool(changed),
        began=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"),
        load=round(psutil.getloadavg()[0], 2),
    )


def _digest(arm: Arm) -> str:
    known = json.dumps([_plain(arm.settings), arm.seed], sort_keys=True)  # a stopped call goes on with other pieces too
    return hashlib.sha256(known.encode()).hexdigest()[:8]


def _plain(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))
