"""The environment of reasoning-gym's tasks (https://github.com/open-thought/reasoning-gym), which are made by a seed.

The package makes questions and answers only. Its own scorers are not used: some call `eval` on an attempt.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from codezero.errors import TaskError

SYSTEM = "You solve short problems. Think briefly, then give the answer alone between <answer> and </answer>."

DATASETS: Mapping[str, Mapping[str, Any]] = {
    "arc_1d": {},
    "base_conversion": {},
    "basic_arithmetic": {},
    "binary_matrix": {},
    "calendar_arithmetic": {
        "year": 2023,
        "tasks": ["count_days", "weekday_of_date", "is_leap_year", "recurring_event_day"],
    },
    "fraction_simplification": {"max_value": 100, "min_factor": 2, "styles": ["plain"]},
    "chain_sum": {},
    "gcd": {},
    "lcm": {},
    "leg_counting": {},
    "letter_counting": {},
    "products": {"max_digits": 3},
    "spell_backward": {},
}
"""The datasets by name, with their settings. Each was read: it draws by its seed only, and has one right answer. The
first six have the settings of Gensyn's RL Swarm 0.6.4 (SAPO, arXiv 2509.08721). Of the nine there,
`propositional_logic` has many right answers; `decimal_arithmetic` has rounded ones, and sets the precision of decimals
in all of the thread; `bf` prints to standard output."""

TASKS_OF_EACH = 500
"""The number of tasks of each dataset in a pass."""

_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?")


def tasks(seed: int) -> Iterator[tuple[str, str]]:
    """Yields the tasks of all datasets in turns. Raises TaskError: the package is not installed."""
    try:
        import reasoning_gym
    except ImportError as error:
        raise TaskError(
            f"tasks=reasoning_gym needs its package ({error}): install the extra reasoning-gym (docs/environments.md)"
        ) from error
    rng = random.Random(seed)
    made = [
        reasoning_gym.create_dataset(name, seed=rng.getrandbits(30), size=TASKS_OF_EACH, **settings)
        for name, settings in DATASETS.items()
    ]
    for number in range(TASKS_OF_EACH):
        for dataset in made:
            entry = dataset[number]
            yield entry["question"], entry["answer"]


def score(question: str, answer: str, text: str) -> float:
    """Returns 1 for the right answer between the first tags, else 0. Space between words and case do not count; of
    numbers the value does, with or without commas."""
    found = _ANSWER.search(text)
    return float(found is not None and _plain(found[1]) == _plain(answer))


def _plain(answer: str) -> object:
    text = " ".join(answer.split()).casefold()
    digits = text.replace(",", "")
    return Fraction(digits) if _NUMBER.fullmatch(digits) else text
