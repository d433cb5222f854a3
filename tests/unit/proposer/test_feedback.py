import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.proposals import ProposalFeedback
from codezero.proposer.feedback import MAX_ADDRESSES, MAX_PEERS, MAX_PROPOSALS, FeedbackBook


def word(p_correct=(1.0, 0.0), peer="a", address="", of="problem"):
    """Feedback of one peer; each attempt's reward is 0.1 above its probability."""
    return ProposalFeedback(
        proposal_id=of,
        peer_id=peer,
        p_correct=p_correct,
        rewards=tuple(p + 0.1 for p in p_correct),
        address=address or f"address of {peer}",
    )


def book(*ids, level=2, wait=0):
    made = FeedbackBook(wait)
    for proposal_id in ids or ("problem",):
        made.expect(proposal_id, level)
    return made


def judged(*words):
    made = book()
    made.add(words)
    (found,) = made.end_batch()
    return found


def test_one_solver_is_enough():
    found = judged(word((1.0, 0.5, 0.0, 0.0)))
    assert (found.proposal_id, found.level) == ("problem", 2)
    assert found.success == 0.375
    assert found.reward == pytest.approx(0.475)
    assert found.differed


def test_success_is_the_median_over_addresses_whatever_the_number_of_attempts():
    found = judged(word((0.0,), "a"), word((1.0, 0.0), "b"), word((0.25,) * 8, "c"))
    assert found.success == 0.25
    assert not found.differed  # two of three saw attempts of one kind


def test_attempts_differ_where_half_of_the_addresses_saw_some_on_both_sides_of_one_half():
    assert judged(word((1.0, 0.0), "a"), word((1.0, 1.0), "b")).differed
    assert judged(word((0.4, 0.5))).differed
    assert not judged(word((0.5, 0.5))).differed


@pytest.mark.parametrize(("wait", "batches"), [(0, 1), (1, 2), (3, 4)])
def test_a_proposal_is_judged_so_many_batches_after_its_first_word(wait, batches):
    made = book(wait=wait)
    assert [made.end_batch() for _ in range(5)] == [()] * 5  # nobody has said anything
    made.add([word()])
    closes = [len(made.end_batch()) for _ in range(6)]
    assert closes == [0] * (batches - 1) + [1] + [0] * (6 - batches)


def test_words_of_the_waiting_time_count_too():
    made = book(wait=1)
    made.add([word((1.0,), "liar")])
    assert made.end_batch() == ()
    made.add([word((0.2,), "b"), word((0.3,), "c")])
    (found,) = made.end_batch()
    assert found.success == 0.3


def test_late_words_change_nothing_and_are_counted_once():
    made = book()
    made.add([word()])
    assert len(made.end_batch()) == 1
    for _ in range(3):  # the same record is found with every poll
        made.add([word(), word(peer="late")])
    assert made.end_batch() == ()
    assert made.take_dropped() == {"late": 1}
    assert made.take_dropped() == {}


def test_one_peer_repeating_itself_counts_once_with_its_first_word():
    words = [word((1.0,), "honest"), *[word((0.0,), "liar", address=f"{i}") for i in range(50)], word((1.0,), "second")]
    found = judged(*words)
    assert found.success == 1.0


def test_many_identities_behind_one_address_weigh_as_one():
    liars = [word((0.0,), f"liar {i}", address="10.0.0.1") for i in range(100)]
    found = judged(*liars, word((0.8,), "a"), word((0.7,), "b"))
    assert found.success == 0.7


def test_feedback_on_what_was_never_proposed_is_dropped():
    made = book()
    made.add([word(of="another")] * 2)
    assert made.take_dropped() == {"unknown": 2}


def test_memory_is_bounded_in_proposals_addresses_and_peers():
    made = book(*[f"{i}" for i in range(MAX_PROPOSALS + 5)])
    made.add([word(of="4"), word(of="5")])
    assert made.take_dropped() == {"unknown": 1}
    made.add([word(peer=f"{i} {j}", address=f"{i}", of="9") for i in range(MAX_ADDRESSES + 3) for j in range(20)])
    assert made.take_dropped() == {"too_many": MAX_ADDRESSES * (20 - MAX_PEERS) + 3 * 20}
    assert len(made.state_dict()["proposals"]) == MAX_PROPOSALS


@st.composite
def honest_and_liars(draw):
    """Words of honest addresses, one peer each, and of fewer lying ones with any number of peers, in any order."""
    rates = draw(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    honest = [word((rate,) * draw(st.integers(1, 4)), f"h{i}") for i, rate in enumerate(rates)]
    lies = [
        word((draw(st.floats(0, 1)),), f"l{i}.{j}", address=f"liar {i}")
        for i in range(draw(st.integers(0, len(rates) - 1)))
        for j in range(draw(st.integers(1, 5)))
    ]
    return honest, draw(st.permutations(honest + lies))


@given(honest_and_liars())
def test_a_minority_of_addresses_cannot_move_the_aggregate_out_of_the_honest_range(case):
    honest, words = case
    found = judged(*words)
    for name, values in (("success", [w.p_correct[0] for w in honest]), ("reward", [w.rewards[0] for w in honest])):
        assert min(values) - 1e-9 <= getattr(found, name) <= max(values) + 1e-9


def test_pending_and_judged_proposals_survive_a_restart():
    before = book("one", "two", "three", level=4, wait=1)
    before.add([word(of="one"), word((0.5,), of="two")])
    before.end_batch()
    before.add([word((0.5, 0.5), "b", of="two")])
    after = FeedbackBook(wait=1)
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert after.state_dict() == before.state_dict()
    after.add([word((0.0,), "b", of="two")])  # it has spoken before the restart
    assert after.end_batch() == before.end_batch()
    after.add([word(of="three"), word(peer="late", of="one")])
    assert after.take_dropped() == {"late": 1}
    (found,) = (after.end_batch(), after.end_batch())[1]
    assert (found.proposal_id, found.level) == ("three", 4)


def test_a_proposal_has_feedback_from_the_first_peers_on():
    made = book("known", "other")
    assert not made.has_feedback("known")
    made.add([word(of="known"), word(of="unknown")])
    assert [made.has_feedback(name) for name in ("known", "other", "unknown")] == [True, False, False]
