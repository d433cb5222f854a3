"""Contest problems of our own with right and subtly wrong programs: data for the benchmark `contest`."""

from benchmarks.contests.arrays import ARRAYS
from benchmarks.contests.exact import EXACT
from benchmarks.contests.graphs import GRAPHS
from benchmarks.contests.grids import GRIDS
from benchmarks.contests.numbers import NUMBERS
from benchmarks.contests.problem import Problem
from benchmarks.contests.tables import TABLES
from benchmarks.contests.texts import TEXTS

PROBLEMS: tuple[Problem, ...] = (*ARRAYS, *TABLES, *GRAPHS, *GRIDS, *NUMBERS, *EXACT, *TEXTS)

__all__ = ["PROBLEMS", "Problem"]
