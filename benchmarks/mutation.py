"""Measures how many small faults the tests of a package notice: mutants of its modules, each against its own tests.

    python -m benchmarks.mutation                 # hours on two cores; may be stopped and goes on
    python -m benchmarks.mutation --only wire

A mutant is one changed operator, comparison, connective or integer in one module. It is noticed if the tests of the
package fail with it, or one of them takes more than `LONGEST_S`. Some mutants do the same as the program, and nobody
tells which, so the share has no target: it compares tests with each other. Counts: the module, and 1 if noticed.

Figures: docs/measurements.md#what-the-tests-notice
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.harness import ROOT, Arm, Result
from benchmarks.mutants import mutants
from benchmarks.power import of_none
from benchmarks.tables import markdown, share

COUNT = 50
LONGEST_S = 180
"""The most seconds of a test."""

OK, NONE_COLLECTED = 0, 5
"""Exit statuses of pytest; a file may hold slow tests alone."""


@dataclass(frozen=True, slots=True)
class Package:
    modules: str
    """A pattern below codezero/."""
    tests: str
    """The folder below tests/unit/."""


LIBRARIES = multiprocessing.get_context("forkserver")
LIBRARIES.set_forkserver_preload(["hivemind", "hypothesis", "peft", "pytest", "torch", "transformers"])
"""Importing these takes longer than most mutants live, so it is done once."""

PACKAGES = {
    "dryrun": Package("evaluate/dryrun/*.py", "evaluate/dryrun"),
    "wire": Package("network/wire/*.py", "network"),
    "ledger": Package("ledger/*.py", "ledger"),
    "train": Package("train/*.py", "train"),
}


class Copy:
    """A copy of the commit that is checked out, in which modules are changed one at a time."""

    def __init__(self, folder: Path, package: Package) -> None:
        self._folder, self._package = folder, package
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)

    def draw(self, seed: int, name: str) -> tuple[str, str]:
        """A module and its text with one change; longer modules are drawn more often."""
        rng = random.Random(f"{seed} {name}")
        texts = {path: path.read_text() for path in sorted((self._folder / "codezero").glob(self._package.modules))}
        while True:
            (path,) = rng.choices(list(texts), weights=[len(text) for text in texts.values()])
            for text in mutants(texts[path], 1, rng):
                return str(path.relative_to(self._folder)), text

    def notices(self, seed: int, name: str) -> list[str | int]:
        """The module that was changed, and 1 if the tests notice."""
        tests = list(self._tests_s)  # before anything is changed
        module, text = self.draw(seed, name)
        path = self._folder / module
        before = path.read_text()
        path.write_text(text)
        try:
            return [module.removeprefix("codezero/"), int(self._fails(tests))]
        finally:
            path.write_text(before)

    @cached_property
    def _tests_s(self) -> Mapping[str, float]:
        """The seconds of each file of tests without any change, the shortest first, so that most mutants end soon."""
        times_s = {}
        for path in (self._folder / "tests/unit" / self._package.tests).rglob("test_*.py"):
            began_s, tests = time.monotonic(), str(path.relative_to(self._folder))
            if self._fails([tests]):
                raise SystemExit(f"{tests} fails without any change: mend it first")
            times_s[tests] = time.monotonic() - began_s
        return dict(sorted(times_s.items(), key=itemgetter(1)))

    def _fails(self, tests: Sequence[str]) -> bool:
        process = LIBRARIES.Process(target=_test, args=(self._folder, tests))
        process.start()
        process.join()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what its tests have left behind
        return process.exitcode not in (OK, NONE_COLLECTED)


def _test(folder: Path, tests: Sequence[str]) -> None:
    """Runs tests of a copy and ends the process with pytest's status; imports nothing of the checkout from here on."""
    os.setsid()
    os.chdir(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("codezero", "benchmarks", "tests")]:
        del sys.modules[name]
    sys.path[:] = [str(folder), *(path for path in sys.path if Path(path) not in (ROOT, Path()))]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "--timeout", f"{LONGEST_S}"]
    options += ["--timeout-method", "thread"]  # which ends the process, whatever it does
    os._exit(pytest.main([*options, *tests]))


def table(results: Mapping[str, Result]) -> str:
    rows = [
        [name, PACKAGES[name].modules, f"{len(result.counts)}", share(((one, 1) for _, one in result.counts.values()))]
        for name, result in results.items()
    ]
    return markdown(["tests of", "modules", "mutants", "noticed"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("mutation", __doc__)
    parser.add_argument("--only", choices=list(PACKAGES), help="one package")
    options = parser.parse_args(arguments)
    for name in [options.only] if options.only else PACKAGES:
        arm = Arm(
            benchmark="mutation",
            name=name,
            settings={"modules": PACKAGES[name].modules, "tests": PACKAGES[name].tests},
            seed=0,
            pieces=[f"{number}" for number in range(COUNT)],
            power=[of_none("mutants that are not noticed", COUNT, "mutants")],
        )
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(Path(folder), PACKAGES[name])
            harness.run(arm, lambda piece, copy=copy, arm=arm: copy.notices(arm.seed, piece), options)
    print(table(harness.results("mutation", options.results)))


if __name__ == "__main__":
    main()
