import itertools
import json
import logging
import time
from collections import Counter

import pytest

from codezero.errors import StateError, TaskError
from codezero.tasks import mixture as mixture_module
from codezero.tasks.candidates import Informative
from codezero.tasks.hub import HubUnreachable
from codezero.tasks.mbpp import to_task
from codezero.tasks.mixture import Mixture
from codezero.tasks.sources import StreamSource
from codezero.tasks.withheld import Withheld
from tests.unit.tasks.builders import mbpp_row, mbpp_rows, mixture_of, numbered_source, questions


def stream_source(rows, fail_at: int | None = None, skipped: Counter | None = None) -> StreamSource:
    """Streams `rows`, rotated by the epoch; breaks off before row number `fail_at` of the first pass."""
    passes = itertools.count()

    def rows_of_epoch(epoch):
        first_pass = next(passes) == 0
        for i in range(len(rows)):
            if first_pass and i == fail_at:
                raise HubUnreachable("reading the hub failed")
            yield rows[(i + epoch) % len(rows)]

    return StreamSource("mbpp", "fake split train", rows_of_epoch, to_task, Counter() if skipped is None else skipped)


def three_sources(seed: int = 0, weights=(1.0, 2.0, 1.0)) -> Mixture:
    """Lists of 3 and 5 tasks and a stream of 4 rows, the second of which is bad."""
    rows = mbpp_rows(4)
    rows[1]["text"] = ""
    skipped = Counter()
    sources = (numbered_source("a", 3, seed), numbered_source("b", 5, seed), stream_source(rows, skipped=skipped))
    return mixture_of(list(zip(sources, weights, strict=True)), seed, skipped=skipped)


def test_no_task_comes_twice_before_all_have_come():
    mixture = mixture_of([(numbered_source("a", 20), 1.0)], seed=0)
    first, second = mixture.draw(20), mixture.draw(20)
    assert len(set(questions(first))) == 20
    assert set(first) == set(second)
    assert first != second


def test_seed_decides_the_order():
    first, again, other = (mixture_of([(numbered_source("a", 20, seed), 1.0)], seed).draw(20) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_literal_order_never_changes_between_versions():
    """A node that is upgraded must resume where it was."""
    mixture = mixture_of([(numbered_source("a", 3), 1.0), (numbered_source("b", 3), 1.0)], seed=0)
    assert questions(mixture.draw(8)) == ["a 0", "b 2", "b 0", "b 1", "b 2", "a 1", "a 2", "b 1"]


def test_batching_of_draws_does_not_change_what_comes():
    apart, together = three_sources(), three_sources()
    assert apart.draw(2) + apart.draw(3) + apart.draw(0) + apart.draw(25) == together.draw(30)


@pytest.mark.parametrize("position", range(26))
def test_resumed_mixture_draws_what_an_unkilled_one_would(position):
    whole, killed, resumed = three_sources(), three_sources(), three_sources()
    expected = whole.draw(50)
    killed.draw(position)
    resumed.load_state_dict(json.loads(json.dumps(killed.state_dict())))
    assert resumed.state_dict() == killed.state_dict()
    assert resumed.draw(50 - position) == expected[position:]
    assert resumed.state_dict() == whole.state_dict()


def test_loading_a_state_turns_a_used_mixture_back():
    mixture = three_sources()
    state = mixture.state_dict()
    first = mixture.draw(17)
    mixture.load_state_dict(state)
    assert mixture.draw(17) == first


def test_weights_are_respected():
    drawn = three_sources(seed=7).draw(2000)
    shares = Counter(task.question[0] for task in drawn)
    assert shares["a"] / 2000 == pytest.approx(0.25, abs=0.03)
    assert shares["b"] / 2000 == pytest.approx(0.50, abs=0.03)
    assert shares["W"] / 2000 == pytest.approx(0.25, abs=0.03)


def test_weight_zero_is_never_drawn():
    assert {task.question[0] for task in three_sources(weights=(0.0, 1.0, 0.0)).draw(200)} == {"b"}


def test_changed_weights_keep_every_position():
    before = three_sources()
    before.draw(12)
    after = three_sources(weights=(1.0, 0.0, 0.0))
    after.load_state_dict(before.state_dict())
    assert after.state_dict() == before.state_dict()


def test_source_that_is_away_keeps_its_place_until_it_is_back():
    both = [(numbered_source(name, 9), 1.0) for name in "ab"]
    mixture = mixture_of(both, seed=0)
    mixture.draw(10)
    position_of_b = mixture.state_dict()["sources"]["b"]

    without_b = mixture_of([(numbered_source("a", 9), 1.0)], seed=0)
    without_b.load_state_dict(mixture.state_dict())
    without_b.draw(5)
    assert without_b.state_dict()["sources"]["b"] == position_of_b

    back = mixture_of([(numbered_source(name, 9), 1.0) for name in "ab"], seed=0)
    back.load_state_dict(json.loads(json.dumps(without_b.state_dict())))
    assert back.state_dict() == without_b.state_dict()


def test_source_with_other_rows_starts_over_with_a_warning(caplog):
    old = mixture_of([(numbered_source("a", 9), 1.0)], seed=0)
    old.draw(7)
    new = mixture_of([(numbered_source("a", 4), 1.0)], seed=0)
    with caplog.at_level(logging.WARNING):
        new.load_state_dict(old.state_dict())
    assert [record.message.split(" are")[0] for record in caplog.records] == ["tasks of a"]
    assert len(set(new.draw(4))) == 4


def test_other_seed_is_refused():
    old, new = three_sources(seed=0), three_sources(seed=1)
    with pytest.raises(StateError, match=r"state_dir was made with seed=0 but seed=1 is set: set seed=0"):
        new.load_state_dict(old.state_dict())


def test_a_stream_that_version_0_1_0_left_at_the_end_of_a_pass_begins_the_next():
    rows = [mbpp_row(text="first"), mbpp_row(text="second")]
    old, new = stream_source(rows), stream_source(rows)
    drawn = {old.next_task(), old.next_task()}
    new.load_state_dict({key: value for key, value in old.state_dict().items() if key != "usable"})
    assert {new.next_task(), new.next_task()} == drawn


def test_stream_without_a_usable_row_is_an_error_and_not_an_endless_loop():
    skipped = Counter()
    mixture = mixture_of([(stream_source([mbpp_row(text="")] * 5, skipped=skipped), 1.0)], 0, skipped)
    with pytest.raises(TaskError, match="no usable row among its 5"):
        mixture.draw(1)
    assert mixture.take_skipped() == {"mbpp: text is empty": 5}


def test_empty_stream_is_an_error():
    with pytest.raises(TaskError, match="no usable row among its 0"):
        mixture_of([(stream_source([]), 1.0)], seed=0).draw(1)


def test_stream_that_breaks_off_is_replaced_with_one_warning_and_tried_again_later(caplog, monkeypatch):
    builtin = numbered_source("builtin", 6)
    shares = [(stream_source(mbpp_rows(4), fail_at=2), 1.0), (builtin, 0.0)]
    mixture = mixture_of(shares, seed=0, fallback=builtin)
    with caplog.at_level(logging.WARNING):
        drawn = questions(mixture.draw(8))
    assert [question.split()[0] for question in drawn] == ["Write"] * 2 + ["builtin"] * 6
    assert len(caplog.records) == 1
    assert mixture.state_dict()["sources"]["mbpp"]["cursor"] == 2
    later = time.monotonic() + 1801.0
    monkeypatch.setattr(mixture_module.time, "monotonic", lambda: later)
    assert {question.split()[0] for question in questions(mixture.draw(2))} == {"Write"}
    assert [record.levelno for record in caplog.records if record.levelno != logging.INFO] == [logging.WARNING]


def test_a_hub_that_is_lost_while_candidates_are_collected_is_replaced(caplog):
    sources = (stream_source(mbpp_rows(60), fail_at=2), numbered_source("builtin", 60))
    stream, builtin = (Informative(source, 0, Withheld()) for source in sources)
    mixture = mixture_of([(stream, 1.0), (builtin, 0.0)], 0, fallback=builtin)
    with caplog.at_level(logging.WARNING):
        drawn = questions([*mixture.draw(4), *mixture.draw(4)])
    assert {question.split()[0] for question in drawn} == {"builtin"}
    assert len(caplog.records) == 1


def test_stream_that_breaks_off_without_fallback_is_an_error_and_can_be_taken_up_again():
    mixture = mixture_of([(stream_source(mbpp_rows(4), fail_at=2), 1.0)], seed=0)
    first = mixture.draw(2)
    with pytest.raises(TaskError, match="reading the hub failed"):
        mixture.draw(1)
    assert len(set(first + mixture.draw(2))) == 4
