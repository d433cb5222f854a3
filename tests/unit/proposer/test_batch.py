"""One batch with scripted parts: what is written, checked, published, heard and learned, in which order."""

import dataclasses
import time

from codezero.config import ProposerConfig
from codezero.prompts.proposer import ParsedProblem
from codezero.proposals import ProposalFeedback, WriterReport
from codezero.proposer.batch import ProposerStages, run_batch
from codezero.proposer.checker import Checker
from codezero.proposer.difficulty import TargetPolicy
from codezero.proposer.duplicates import Seen
from codezero.proposer.feedback import FeedbackBook
from codezero.proposer.jobs import UNCHECKED
from codezero.proposer.learn import Lesson
from codezero.proposer.write import Draft
from codezero.reports import SkipReason, UpdateReport
from codezero.types import SampledTokens
from tests.strangers import Reader


def draft(name="add_one", level=2, tests=None, readable=True):
    answer = ParsedProblem(
        question=f"Write a function {name}(x) that returns one more than the number x it is given.",
        tests=f"assert {name}(1) == 2\nassert {name}(5) == 6" if tests is None else tests,
    )
    tokens = SampledTokens(prompt_ids=(1,), completion_ids=(2, 3), logprobs=(-1.0, -1.0))
    return Draft(level=level, raw=f"raw {name}", answer=answer if readable else None, tokens=tokens)


class Writer:
    def __init__(self, *drafts):
        self.drafts = drafts

    def write(self, level, count):
        self.asked = (level, count)
        return self.drafts


class Solvers:
    """Answers what was published after so many looks."""

    def __init__(self, p_correct=(), after=0):
        self.p_correct, self.looks_left, self.published = p_correct, after, []
        self.publications = []

    def publish(self, proposals):
        self.published += proposals
        self.publications.append(list(proposals))

    def collect(self):
        self.looks_left -= 1
        if self.looks_left >= 0 or not self.p_correct:
            return ()
        return tuple(
            ProposalFeedback(
                proposal_id=one.proposal_id, peer_id="s", p_correct=self.p_correct, rewards=self.p_correct, address="a"
            )
            for one in self.published
        )

    def take_rejected(self):
        return {"malformed": 2}

    def status(self):
        return "1 solver in sight"


class Learner:
    def __init__(self):
        self.kept, self.judged = [], []

    def keep(self, level, tokens, proposal_id):
        self.kept.append(proposal_id)

    def learn(self, judged):
        self.judged += judged
        update = UpdateReport(policy_version=0, skipped=SkipReason.NO_GROUPS)
        return Lesson(update=update, reward_mean=None)


class WrittenTests:
    """Gives every problem this test."""

    REPORT = WriterReport(num_problems=1, num_cases=2, num_valid=2, num_with_one=1, num_with_three=0)

    def give(self, problems, clock):
        self.solutions = [solution for _, solution in problems]
        return [dataclasses.replace(one, tests="assert add_one(7) == 8") for one, _ in problems], self.REPORT


def stages(writer, solvers, learner=None, tests=None):
    seen = Seen(remembered=10, similarity=0.6)
    return ProposerStages(
        difficulty=TargetPolicy(ProposerConfig(explore=0.0)),
        writer=writer,
        checker=Checker(peer_id="me", model_id="tiny", seen=seen, reference=None, workers=Reader()),
        solvers=solvers,
        feedback=FeedbackBook(wait=0),
        learner=learner,
        tests=tests,
        on_stage=lambda name: None,
    )


def test_what_is_valid_is_published_and_what_is_not_is_counted_by_reason():
    solvers = Solvers()
    writer = Writer(draft("add_one"), draft(readable=False), draft("add_one"), draft("sub", tests="print(1)"))
    report, valid = run_batch(7, stages(writer, solvers), 4, patience_s=0.0)
    assert writer.asked == (2, 4)
    assert [(one.peer_id, one.model_id, one.difficulty, one.raw) for one in valid] == [("me", "tiny", 2, "raw add_one")]
    assert solvers.published == valid
    assert (report.batch, report.level, report.num_written, report.num_valid) == (7, 2, 4, 1)
    assert report.rejected["unreadable"] == 1
    assert report.rejected["duplicate"] == 1
    assert sum(report.rejected.values()) == 3
    assert set(report.seconds) == {"write", "check", "publish", "listen", "learn"}


def test_what_solvers_say_reaches_the_level_and_the_report():
    parts = stages(Writer(draft()), Solvers(p_correct=(1.0, 0.0, 0.0, 0.0)))
    report, _ = run_batch(1, parts, 1, patience_s=60.0)
    assert (report.num_judged, report.signal_share) == (1, 1.0)
    assert report.success == {"2": parts.difficulty.success()[2]}
    assert report.dropped == {"malformed": 2}
    assert report.network == "1 solver in sight"


def test_it_listens_until_half_of_what_was_published_is_answered(monkeypatch):
    naps = []
    monkeypatch.setattr("codezero.proposer.batch.time.sleep", naps.append)
    solvers = Solvers(p_correct=(1.0,), after=3)
    run_batch(1, stages(Writer(draft()), solvers), 1, patience_s=600.0)
    assert len(naps) == 3


def test_its_patience_ends_where_nobody_answers():
    started = time.monotonic()
    report, _ = run_batch(1, stages(Writer(draft()), Solvers()), 1, patience_s=0.3)
    assert 0.3 <= time.monotonic() - started < 30
    assert (report.num_judged, report.signal_share) == (0, None)


def test_earlier_problems_are_kept_alive_by_batches_without_a_valid_one():
    solvers = Solvers()
    for writer in (Writer(draft()), Writer(draft(readable=False))):
        run_batch(1, stages(writer, solvers), 1, patience_s=0.0)
    assert [len(one) for one in solvers.publications] == [1, 0]


def test_a_batch_without_a_valid_problem_waits_for_nobody():
    solvers = Solvers()
    report, valid = run_batch(1, stages(Writer(draft(readable=False)), solvers), 1, patience_s=600.0)
    assert (report.num_valid, valid, solvers.published) == (0, [], [])


def test_the_learner_gets_valid_and_rejected_drafts_and_the_judgements():
    learner = Learner()
    parts = stages(Writer(draft(), draft(readable=False)), Solvers(p_correct=(1.0, 0.0)), learner=learner)
    report, (proposal,) = run_batch(1, parts, 2, patience_s=60.0)
    assert learner.kept == [proposal.proposal_id, None]
    assert [(one.proposal_id, one.success) for one in learner.judged] == [(proposal.proposal_id, 0.5)]
    assert (report.skipped, report.loss) == ("no scored groups", None)


def test_a_draft_whose_check_failed_by_no_fault_of_its_own_earns_nothing(monkeypatch):
    learner = Learner()
    parts = stages(Writer(draft(), draft(readable=False)), Solvers(), learner=learner)
    check = parts.checker.check
    monkeypatch.setattr(parts.checker, "check", lambda one: UNCHECKED if one.answer else check(one))
    report, _ = run_batch(1, parts, 2, patience_s=0.0)
    assert report.rejected[UNCHECKED] == 1
    assert learner.kept == [None]


def test_what_a_test_writer_gives_is_published_and_learnt_from():
    learner, solvers, tests = Learner(), Solvers(), WrittenTests()
    writer = Writer(draft(readable=False), draft())
    report, valid = run_batch(1, stages(writer, solvers, learner=learner, tests=tests), 2, patience_s=0.0)
    (published,) = solvers.published
    assert tests.solutions == [""]
    assert (published.tests, valid) == ("assert add_one(7) == 8", [published])
    assert learner.kept == [None, published.proposal_id]
    assert (report.num_valid, report.writer) == (1, WrittenTests.REPORT)


def test_a_model_behind_a_server_has_nothing_to_learn_from():
    served = Draft(level=2, raw="x", answer=None, tokens=None)
    learner = Learner()
    run_batch(1, stages(Writer(served), Solvers(), learner=learner), 1, patience_s=0.0)
    assert learner.kept == []
