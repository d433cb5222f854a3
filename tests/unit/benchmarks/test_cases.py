"""The table of `benchmarks.cases`."""

from benchmarks.cases import table
from tests.unit.benchmarks.builders import result


def test_a_run_is_told_by_its_quarters():
    learning = [[32, 4 * number, 2 * number, 0.1 * number, 0.5, 60.0] for number in range(4)]
    counts = {"rounds 1-2": learning[:2], "rounds 3-4": learning[2:]}
    first, *_, last = table({"pair": result(counts)}).splitlines()[2:]
    assert first.startswith("| pair | 1 to 1 | 32 | 0 % [0, ")
    assert "| 37.5 % [3.2, 91.7], at least 30 %: met | 18.8 % [0.8, 86.2] | 0.30 | 0.50 | 1 |" in last
