"""Everything that a program can call, called with what has cost time, memory or stack before.

A sample of it: `python -m tests.unit.evaluate.dryrun.generate 6000` makes so many programs, which takes some minutes.
"""

import random

from tests.unit.evaluate.dryrun.confined import Program, Ran, run_all
from tests.unit.evaluate.dryrun.generate import BUDGET, complaints, programs, signature, targets


def test_every_callable_takes_some_of_the_generators_values():
    rng = random.Random(0)
    assert [name for name, target in targets().items() if signature(target, rng) is None] == []


def test_some_programs_end_within_their_budget(tmp_path):
    made = programs(150, seed=0)
    assert complaints(made, run_all(list(made.values()), tmp_path, **BUDGET)) == {}


def test_a_program_that_takes_too_much_is_found(tmp_path):
    endless = "def f():\n    while True: pass"
    good, bad = run_all([Program("def f(): return 1"), Program(endless)], tmp_path, steps=10**9, total_seconds=0.5)
    assert (good.outcomes, good.complaint(0.5, 100)) == (["pass"], "")
    assert bad.outcomes == ["unknown"]
    assert bad.complaint(0.4, 100).startswith("took ")
    assert Ran(mib=200).complaint(0.5, 100) == "took 200 MiB"
    assert Ran(returncode=-11).complaint(0.5, 100) == "ended the process with -11 []"
