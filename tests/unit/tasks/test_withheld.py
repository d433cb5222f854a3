"""What is looked up to judge a task by, and that it leaves the node nowhere."""

import json
from dataclasses import replace

import pytest
import zstandard

from codezero.config import BuiltinConfig, DatasetConfig, TasksConfig
from codezero.config.load import load_config
from codezero.evaluate.build import make_evaluator
from codezero.network import wire
from codezero.prompts import evaluator as judge_prompt
from codezero.prompts import solver
from codezero.tasks import build
from codezero.tasks.build import make_task_source
from codezero.tasks.mbpp import to_task as mbpp_task
from codezero.tasks.problems import load_problems
from codezero.tasks.proposed import to_task as proposed_task
from codezero.tasks.withheld import MAX_DRAWN, Problem, Withheld
from codezero.types import RoundId, SwarmRound
from tests.builders import group as group_of
from tests.builders import proposal, rollout, task
from tests.strangers import Reader
from tests.unit.network.wire_builders import genrl, group, heard
from tests.unit.tasks.builders import contest_row, mbpp_row, write_jsonl, write_parquet

SECRET = "a_name_of_the_reference_alone"
HIDDEN = "271828182845904523536"
MBPP_ROW = mbpp_row(code=f"def double({SECRET}):\n    return 2 * {SECRET}")
CONTEST_ROW = contest_row(generated_tests={"input": [f"{HIDDEN} 1\n"], "output": ["271828182845904523537\n"]})


def config(folder, **settings) -> TasksConfig:
    return TasksConfig(
        mbpp=DatasetConfig(weight=1.0, path=write_jsonl(folder / "mbpp.jsonl", [MBPP_ROW])),
        code_contests=DatasetConfig(weight=1.0, path=write_parquet(folder / "contests.parquet", [CONTEST_ROW])),
        builtin=BuiltinConfig(weight=0.0),
        **settings,
    )


@pytest.fixture
def sources(tmp_path):
    return make_task_source(config(tmp_path), seed=0)


def drawn(sources):
    """The tasks of both files."""
    return set(sources.draw(16))


def test_references_of_mbpp_and_of_all_built_in_problems_are_at_hand(sources):
    withheld = sources.withheld
    references = {one.origin.value: withheld.problem(one).reference for one in drawn(sources)}
    assert references == {"mbpp": MBPP_ROW["code"], "code_contests": None}
    assert all(withheld.problem(one.task).reference == one.reference for one in load_problems())


def test_of_what_is_not_known_nothing_is_at_hand(sources):
    for unknown in (task("What is it?"), proposed_task(proposal("f")), replace(mbpp_task(MBPP_ROW), tests="assert 1")):
        assert sources.withheld.problem(unknown).reference is None
        assert sources.withheld.problem(unknown).more_tests == ""


@pytest.mark.parametrize("show_all", [True, False], ids=["all tests", "few tests"])
def test_the_task_of_a_peer_is_found_whatever_it_shows(sources, show_all):
    found = [sources.withheld.problem(one).reference for one in heard(mbpp_task(MBPP_ROW, show_all))]
    assert found == [MBPP_ROW["code"]] * 2


def test_neither_wire_and_no_prompt_has_a_reference_or_a_hidden_test(sources):
    tasks = drawn(sources)
    assert {one.origin.value for one in tasks} == {"mbpp", "code_contests"}
    for one in tasks:
        assert HIDDEN in sources.withheld.problem(one).more_tests or one.origin.value == "mbpp"
        sent = group(origin=one.origin, question=one.question, tests=one.tests)
        told = [
            zstandard.decompress(wire.pack_groups([sent])),
            genrl([sent]),
            json.dumps(solver.messages(one.question)).encode(),
            json.dumps(judge_prompt.review_messages(one.question, one.tests, "pass")).encode(),
            json.dumps(judge_prompt.json_messages(one.question, one.tests, "pass")).encode(),
            repr(one).encode(),
            json.dumps(sources.state_dict()).encode(),
        ]
        for secret in (SECRET, HIDDEN):
            assert not [text for text in told if secret.encode() in text]


class NoJudge:
    """A backend that keeps what it is asked, and believes everything."""

    name = "none"

    def __init__(self):
        self.asked = ""

    def choose(self, chats):
        self.asked += json.dumps(chats)
        return [(0.99, 0.01)] * len(chats)


RIGHT = "print(sum(map(int, input().split())))"
FORGED = "a, b = map(int, input().split())\nprint(a + b if a < 100 else 0)"
UNDECIDED = "import numpy\nprint(numpy.sum(input().split()))"


def test_a_program_that_only_passes_what_it_is_shown_has_failed_and_the_judge_sees_no_hidden_test(sources):
    (contest,) = (one for one in drawn(sources) if one.origin.value == "code_contests")
    backend = NoJudge()
    judging = make_evaluator(
        load_config(["evaluator.verdict=logit", "evaluator.mask=false", "swarm=native"]),
        backend,
        lambda *_: None,
        Reader(),
        problem_of=sources.withheld.problem,
    )
    texts = [f"```python\n{code}\n```" for code in (RIGHT, FORGED, UNDECIDED)]
    one = group_of([rollout(text=text) for text in texts], of=contest)
    (own, theirs) = judging.score(SwarmRound(round_id=RoundId(number=1), local=(one,), external=(one,)))
    for found in (own, theirs):
        assert [verdict.p_correct > 0.5 for verdict in found.verdicts[:2]] == [True, False]
        assert len(found.verdicts[0].cases) == 3
    assert "numpy" in backend.asked
    assert HIDDEN not in backend.asked


def test_faithful_keeps_nothing_of_contests_and_draws_what_it_drew(tmp_path):
    faithful = replace(load_config(["preset=faithful"]).tasks, mbpp=DatasetConfig())
    several = contest_row(description="Print any of them.")
    path = write_jsonl(tmp_path / "contests.jsonl", [CONTEST_ROW, several])
    sources = make_task_source(replace(faithful, code_contests=DatasetConfig(weight=1.0, path=path)), seed=0)
    tasks = sources.draw(2)
    assert len({one.task_id for one in tasks}) == 2
    assert [sources.withheld.problem(one).more_tests for one in tasks] == ["", ""]


def test_of_a_stream_what_was_drawn_is_known(monkeypatch):
    columns = []

    def open_dataset(hub_id, split, wanted, seed):
        columns.append(wanted)
        return lambda epoch: iter([MBPP_ROW])

    monkeypatch.setattr(build, "check_reachable", lambda: None)
    monkeypatch.setattr(build, "open_dataset", open_dataset)
    streamed = TasksConfig(mbpp=DatasetConfig(weight=1.0), builtin=BuiltinConfig(weight=0.0))
    sources = make_task_source(streamed, seed=0)
    assert sources.withheld.problem(mbpp_task(MBPP_ROW)).reference is None
    (one,) = sources.draw(1)
    assert sources.withheld.problem(one).reference == MBPP_ROW["code"]
    contests = replace(streamed, mbpp=DatasetConfig(), code_contests=DatasetConfig(weight=1.0))
    for hidden in (True, False):
        make_task_source(replace(contests, hidden_tests=hidden), seed=0)
    public = ("description", "public_tests", "input_file")
    assert columns[1:] == [(*public, "private_tests", "generated_tests"), public]


def test_of_problems_drawn_from_streams_the_latest_are_kept():
    withheld = Withheld()
    many = [task(f"question {number}") for number in range(MAX_DRAWN + 1)]
    for one in many:
        withheld.keep_drawn(Problem(task=one, reference="pass"))
    assert withheld.problem(many[0]).reference is None
    assert withheld.problem(many[1]).reference == "pass"
    withheld.keep_drawn(Problem(task=many[1], reference="again"))
    withheld.keep_drawn(Problem(task=many[0], reference="pass"))
    assert withheld.problem(many[1]).reference == "again"
    assert withheld.problem(many[2]).reference is None
