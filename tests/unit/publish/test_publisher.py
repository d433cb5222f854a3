"""When a model is pushed, and what becomes of a push that does not go through."""

import json
import logging
import shutil
import threading
from collections import namedtuple
from contextlib import ExitStack
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM

from codezero.config import NodeConfig, PushConfig, PushedCheckpoint, TrainMethod
from codezero.errors import Stopping
from codezero.publish import build
from codezero.publish import publisher as module
from codezero.publish.card import facts
from codezero.publish.hub import Hub, UploadResult
from codezero.publish.pack import PublishError
from codezero.publish.publisher import ATTEMPTS, CARD_ROUNDS, MAX_ASKED_S, Publisher
from codezero.publish.tokens import HubTokens
from codezero.runtime.console import Console
from codezero.train.checkpoint import trainable_weights
from tests.fakes import files_of_at_most
from tests.processes import wait_until
from tests.unit.publish.builders import Trainee, report, write
from tests.unit.publish.push_hub import TOKEN, push_hub

HOUR = 3600.0
NOW = 1_700_000_000.0
DONE = UploadResult(repo="alice/tiny", url="https://hub/commit/1")
BUSY = UploadResult(repo="alice/tiny", status=429, wait_s=120.0)
AWAY = UploadResult(repo="alice/tiny", detail="Connection refused")


class Uploads:
    """A hub that answers as it is told, and then that all went well."""

    def __init__(self, *answers):
        self.answers, self.messages, self.cards, self.repos = list(answers), [], [], []
        self.holding, self.stopped = threading.Event(), threading.Event()
        self.holding.set()

    def push(self, folder, repo, card, message):
        self.messages.append(message)
        self.cards.append(card)
        self.repos.append(repo)
        while not self.holding.wait(0.02):
            if self.stopped.is_set():
                raise Stopping("stop")
        return self.answers.pop(0) if self.answers else DONE

    def stop(self):
        self.stopped.set()


class Packer:
    def __init__(self, facts, *troubles):
        self.facts, self.troubles, self.packed, self.cleared = facts, list(troubles), [], 0

    def pack(self, checkpoint):
        if self.troubles:
            raise self.troubles.pop(0)
        self.packed.append(checkpoint.name)
        return checkpoint

    def clear(self):
        self.cleared += 1

    def close(self):
        pass


class Rig:
    """A publisher on a clock of its own, in which every pause passes at once."""

    def __init__(self, tmp_path, *answers, troubles=(), **config):
        self.uploads, self.now, self.pauses, self.looked = Uploads(*answers), NOW, [], 0
        self.packer = Packer(facts("org/tiny", TrainMethod.full, "QmPeer"), *troubles)
        self.notes, self.folder = tmp_path / "pushed.json", tmp_path
        self.config = PushConfig(enabled=True, **config)
        self.told = []
        self.publisher = self.made()

    def made(self):
        about = (self.config, self.uploads, self.packer, self.notes, self.tell)
        made = Publisher(*about)
        made._worker.pause = self.pause
        made.start()
        return made

    def tell(self, last, trouble):
        self.told.append((last, trouble))

    @property
    def trouble(self):
        return self.told[-1][1]

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def play(self, number, policy_version=None):
        """A finished round, until its push, if any, has come to an end."""
        looked, ended = self.looked, self.packer.cleared
        offer(self.publisher, report(number, policy_version), self.folder / f"round-{number}")
        wait_until(lambda: self.looked > looked or self.publisher._is_refused)
        with self.publisher._lock:
            taken = self.publisher._offer is None
        if taken:
            wait_until(lambda: self.packer.cleared > ended)

    def clock(self):
        self.looked += 1
        return self.now

    def restart(self):
        self.publisher.stop()
        self.publisher = self.made()

    @property
    def pushed(self):
        return [int(message.split(",")[0].removeprefix("Round ")) for message in self.uploads.messages]


@pytest.fixture
def rig(tmp_path, monkeypatch):
    made = []

    def make(*answers, **config):
        made.append(Rig(tmp_path, *answers, **config))
        return made[-1]

    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: made[-1].clock()))

    yield make
    for one in made:
        one.uploads.holding.set()
        one.publisher.stop()


def test_the_first_round_that_changed_the_model_is_pushed_at_once(rig):
    swarm = rig()
    for number, policy_version in ((1, 0), (2, 0), (3, 1), (4, 2)):
        swarm.play(number, policy_version)
    assert swarm.uploads.messages == ["Round 3, policy version 1"]
    assert swarm.publisher.last == "round 3: https://hub/commit/1"
    assert swarm.trouble == ""


def test_only_the_best_is_pushed_from_where_it_is_kept_where_that_is_asked_for(rig, tmp_path):
    swarm = rig(checkpoint=PushedCheckpoint.best, every_rounds=1, every_hours=0)
    for number, is_best in ((1, False), (2, True), (3, False)):
        swarm.publisher.note(report(number))
        swarm.publisher.offer(number, tmp_path / f"round-{number}", tmp_path / "best" if is_best else None)
    wait_until(lambda: swarm.packer.cleared)
    assert (swarm.pushed, swarm.packer.packed) == ([2], ["best"])


def test_a_best_that_is_not_due_yet_or_that_the_hub_did_not_take_is_pushed_later(rig, tmp_path):
    swarm = rig(DONE, UploadResult(repo="org/x", status=413), checkpoint=PushedCheckpoint.best, every_hours=2)
    publisher = swarm.publisher

    def play(number, is_best, cleared):
        publisher.note(report(number))
        publisher.offer(number, tmp_path / f"round-{number}", tmp_path / "best" if is_best else None)
        wait_until(lambda: swarm.packer.cleared == cleared)

    play(1, is_best=True, cleared=1)
    play(2, is_best=True, cleared=1)  # not due
    swarm.now += 3 * 3600
    play(3, is_best=False, cleared=2)  # the hub does not take it
    wait_until(lambda: publisher._offer is not None)
    swarm.now += 2 * 3600
    play(4, is_best=False, cleared=3)
    assert swarm.pushed == [1, 2, 2]


def test_a_best_checkpoint_that_a_stop_kept_from_being_pushed_is_pushed_after_the_start(tmp_path, monkeypatch):
    trainee, uploads = Trainee(tmp_path), Uploads()
    weights = {"weights": trainable_weights(trainee.policy.model), "learner": {}}
    trainee.store.save(7, 7, weights, {"report": asdict(report(7))})
    trainee.store.keep_best()
    monkeypatch.setattr(build, "Hub", lambda *_, **__: uploads)
    push = PushConfig(enabled=True, checkpoint=PushedCheckpoint.best)
    tokens = HubTokens(push="hf_x", download=None)
    about = (trainee.policy, trainee.method, "QmPeer", trainee.folder, Console(), lambda *_: None)
    with ExitStack() as stack:
        build.start_publisher(NodeConfig(push=push), tokens, *about, stack)
        wait_until(lambda: uploads.messages)
    assert uploads.messages == ["Round 7, policy version 7"]


def test_a_checkpoint_whose_saving_took_many_rounds_is_left_out_and_later_ones_are_pushed(rig, tmp_path):
    swarm = rig()
    for number in range(1, CARD_ROUNDS + 2):
        swarm.publisher.note(report(number, 1))
    swarm.publisher.offer(1, tmp_path / "round-1")
    wait_until(lambda: not swarm.publisher._worker._woken.is_set())
    swarm.play(CARD_ROUNDS + 2, 2)
    assert swarm.pushed == [CARD_ROUNDS + 2]


@pytest.mark.parametrize(
    ("every", "hours", "pushed"),
    [
        ({"every_rounds": 3, "every_hours": 0}, [0.0] * 8, [1, 4, 7]),
        ({"every_hours": 2}, [0.8] * 7, [1, 4, 7]),
        ({"every_hours": 2, "every_rounds": 3}, [0.1, 3.0, *[0.1] * 5], [1, 3, 6]),
    ],
    ids=["rounds", "hours", "whichever comes first"],
)
def test_it_is_pushed_every_so_many(rig, every, hours, pushed):
    """`hours` are those that pass after each round."""
    swarm = rig(**every)
    for number, passed in enumerate(hours, 1):
        swarm.play(number)
        swarm.now += passed * HOUR
    assert swarm.pushed == pushed


def test_a_model_that_did_not_change_is_not_pushed_again(rig):
    swarm = rig(every_rounds=1)
    for number, policy_version in ((1, 1), (2, 1), (3, 1), (4, 2)):
        swarm.play(number, policy_version)
    assert swarm.pushed == [1, 4]


def test_a_restart_goes_on_counting_and_a_damaged_note_costs_one_push(rig):
    swarm = rig(every_rounds=10, repo="tiny")
    swarm.play(5)
    swarm.restart()
    assert swarm.publisher.last == "round 5: https://hub/commit/1"
    swarm.play(6)
    assert swarm.pushed == [5]
    swarm.notes.write_text('{"round": []}')
    swarm.restart()
    swarm.play(7)
    assert swarm.pushed == [5, 7]


@pytest.mark.parametrize(
    ("changes", "is_another"),
    [
        ({"repo": "alice/tiny"}, False),
        ({"repo": "lice/tiny"}, True),
        ({"repo": "bob/other"}, True),
        ({"endpoint": "https://hub.example"}, True),
    ],
    ids=str,
)
def test_another_repository_or_hub_gets_its_first_push_at_once(rig, changes, is_another):
    swarm = rig(every_rounds=10, repo="tiny")
    swarm.play(5)
    swarm.config = replace(swarm.config, **changes)
    swarm.restart()
    swarm.play(6)
    assert swarm.pushed == ([5, 6] if is_another else [5])


def test_a_note_of_0_1_0_counts_for_the_hub_that_is_set(rig):
    swarm = rig(every_rounds=10, repo="tiny")
    swarm.play(5)
    note = json.loads(swarm.notes.read_text())
    assert note.pop("endpoint") == "https://huggingface.co"
    swarm.notes.write_text(json.dumps(note))
    swarm.restart()
    swarm.play(6)
    assert swarm.pushed == [5]


def test_a_state_begun_anew_or_a_clock_set_back_does_not_silence_it(rig):
    swarm = rig(every_rounds=10)
    swarm.play(50)
    swarm.play(1)
    assert swarm.pushed == [50, 1]
    swarm.now -= 100 * HOUR
    swarm.play(2)
    assert swarm.pushed == [50, 1, 2]


def test_a_clock_set_back_does_not_prolong_the_pause_after_a_failed_push(rig):
    swarm = rig(UploadResult(repo="alice/tiny", status=400), every_rounds=1)
    swarm.play(1)
    swarm.play(2)
    assert swarm.pushed == [1]  # the one that was refused
    swarm.now -= 24 * HOUR
    swarm.play(3)
    assert swarm.pushed == [1, 3]


def test_a_card_tells_of_rounds_that_were_saved_with_a_later_one_and_of_no_later_ones(rig):
    swarm = rig()
    for number in range(1, 5):
        swarm.publisher.note(report(number))
    swarm.publisher.offer(3, swarm.folder / "round-3")
    wait_until(lambda: swarm.uploads.cards)
    assert swarm.pushed == [3]
    assert "| predicted pass@k of the last 3 rounds |" in swarm.uploads.cards[0]


def test_the_newest_round_is_pushed_where_several_finished_meanwhile(rig):
    swarm = rig(every_rounds=1)
    swarm.uploads.holding.clear()
    for number in range(1, 6):
        offer(swarm.publisher, report(number), swarm.folder / f"round-{number}")
        wait_until(lambda: swarm.uploads.messages)
    swarm.uploads.holding.set()
    wait_until(lambda: len(swarm.pushed) == 2)
    assert swarm.pushed == [1, 5]


def test_a_hub_that_limits_us_is_asked_again_when_it_says(rig, caplog):
    swarm = rig(BUSY)
    with caplog.at_level(logging.WARNING):
        swarm.play(1)
    (pause,) = swarm.pauses
    assert 120 <= pause <= 125
    assert swarm.packer.packed == ["round-1"]  # the same files, whose large ones are on the hub already
    assert swarm.pushed == [1, 1]
    assert swarm.trouble == ""
    assert "the hub is busy or limits us, HTTP 429; tried again in 2 minutes" in caplog.text


def test_who_watches_is_told_at_once_and_of_every_change(rig):
    swarm = rig(BUSY)
    swarm.play(1)
    told = [(last, trouble[:40]) for last, trouble in swarm.told]
    assert told[0] == ("", "")
    assert told[1] == ("", "push: the hub is busy or limits us, HTTP")
    assert told[2][0].startswith("round 1: ")
    assert told[2][1] == ""
    assert len(told) == 3


def test_a_hub_cannot_have_us_wait_for_ever(rig):
    swarm = rig(UploadResult(repo="a/b", status=429, wait_s=1e9))
    swarm.play(1)
    assert MAX_ASKED_S <= swarm.pauses[0] <= MAX_ASKED_S + 5


def test_pauses_double_up_to_an_hour_and_then_a_newer_round_has_its_turn(rig, caplog):
    swarm = rig(*[AWAY] * ATTEMPTS)
    with caplog.at_level(logging.WARNING):
        swarm.play(1)
    assert [round(pause / 60, 1) for pause in swarm.pauses] == [
        pytest.approx(expected, rel=0.26) for expected in (1, 2, 4, 8, 16)
    ]
    assert "the hub cannot be reached or used now, no answer (Connection refused)" in swarm.trouble
    assert len(caplog.records) == 1
    swarm.play(2)
    assert swarm.pushed == [1] * ATTEMPTS
    swarm.now += 1.3 * HOUR
    swarm.play(3)
    assert swarm.pushed[ATTEMPTS:] == [3]
    assert swarm.trouble == ""


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_is_told_once_and_used_no_more(rig, caplog, status):
    swarm = rig(UploadResult(repo="alice/tiny", status=status, detail="no rights"), every_rounds=1)
    with caplog.at_level(logging.INFO):
        for number in range(1, 5):
            swarm.play(number)
            swarm.now += 100 * HOUR
    assert swarm.pushed == [1]
    (record,) = caplog.records
    assert f"refuses the token for alice/tiny, HTTP {status} (no rights)" in record.getMessage()
    assert "https://huggingface.co/settings/tokens" in swarm.trouble


@pytest.mark.parametrize(
    ("status", "detail"), [(400, "bad name"), (403, "Private repository storage limit reached, please upgrade")]
)
def test_what_the_hub_does_not_take_is_tried_an_hour_later(rig, status, detail):
    swarm = rig(UploadResult(repo="alice/tiny", status=status, detail=detail), every_rounds=1)
    swarm.play(1)
    assert swarm.trouble == f"push: the hub does not take it, HTTP {status} ({detail}); tried again in 1 hour"
    swarm.play(2)
    swarm.now += 1.1 * HOUR
    swarm.play(3)
    assert (swarm.pushed, swarm.pauses) == ([1, 3], [])


def test_files_that_cannot_be_written_and_bugs_end_no_training(rig):
    swarm = rig(troubles=[PublishError("push: no room"), ZeroDivisionError("bug")])
    swarm.play(1)
    assert swarm.trouble == "push: no room"
    swarm.now += 1.1 * HOUR
    swarm.play(2)
    assert "internal error" in swarm.trouble
    swarm.now += 1.1 * HOUR
    swarm.play(3)
    assert swarm.pushed == [3]


def test_the_repositorys_owner_is_asked_for_once(rig):
    swarm = rig(every_rounds=1)
    swarm.play(1)
    swarm.play(2)
    assert swarm.uploads.repos == [
        "tiny-Gensyn-Swarm-" + swarm.packer.facts.repository.rpartition("-")[2],
        "alice/tiny",
    ]


def test_the_card_has_the_means_of_the_last_rounds(rig):
    swarm = rig(every_rounds=2)
    for number in (1, 2, 3):
        swarm.play(number)
    assert "| mean reward of this round | 0.50 |" in swarm.uploads.cards[0]
    assert "| predicted pass@k of the last 3 rounds | 0.25 |" in swarm.uploads.cards[1]


def test_a_stop_waits_for_no_upload_and_the_next_start_pushes(rig):
    swarm = rig()
    swarm.uploads.holding.clear()
    offer(swarm.publisher, report(1), swarm.folder)
    wait_until(lambda: swarm.uploads.messages)
    swarm.publisher.stop()
    assert not swarm.publisher._worker.is_alive
    assert not swarm.notes.exists()
    swarm.uploads.holding.set()
    swarm.restart()
    swarm.play(2)
    assert swarm.pushed == [1, 2]


def test_a_stop_ends_a_pause_too(tmp_path, rig):
    swarm = rig()
    uploads, told = Uploads(BUSY), []
    about = (swarm.config, uploads, swarm.packer, tmp_path / "other.json", lambda *found: told.append(found))
    waiting = Publisher(*about)
    waiting.start()
    offer(waiting, report(1), tmp_path)
    wait_until(lambda: len(told) > 1)
    waiting.stop()
    assert not waiting._worker.is_alive
    assert len(uploads.messages) == 1


def offer(publisher, found, checkpoint):
    """A round that is finished and saved."""
    publisher.note(found)
    publisher.offer(found.round, checkpoint)


def real(trainee, server, hub=None, **config):
    hub = hub or Hub(TOKEN, server.url, private=False, timeout_s=10.0)
    push, notes = PushConfig(enabled=True, **config), trainee.folder / "pushed.json"
    made = Publisher(push, hub, trainee.packer(), notes, lambda *_: None)
    made.start()
    return made


def test_while_training_goes_on_one_policy_version_is_pushed(tmp_path, caplog):
    trainee = Trainee(tmp_path)
    with push_hub() as server, caplog.at_level(logging.DEBUG):
        publisher = real(trainee, server, every_rounds=1)
        checkpoint = trainee.train()
        expected = trainee.logits()
        offer(publisher, report(1), checkpoint)
        wait_until(lambda: (trainee.folder / "push" / "model").exists())
        for _ in range(3):
            trainee.train()
        assert not checkpoint.exists()
        wait_until(lambda: publisher.last)
        publisher.stop()
        (files,) = server.repos.values()
    assert b"| round | 1 |" in files["README.md"]
    pulled = AutoModelForCausalLM.from_pretrained(write(tmp_path / "pulled", files))
    assert torch.equal(trainee.logits(pulled), expected)
    assert json.loads((trainee.folder / "pushed.json").read_text())["round"] == 1
    assert not (trainee.folder / "push").exists()
    assert TOKEN not in caplog.text
    for path in trainee.folder.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path


def test_what_a_killed_node_left_is_cleared_and_its_round_pushed_by_the_next(tmp_path):
    trainee = Trainee(tmp_path)
    trainee.packer().pack(trainee.train())
    (trainee.folder / "push" / "model" / "half.safetensors").write_bytes(b"x")
    with push_hub() as server:
        publisher = real(trainee, server)
        assert [path.name for path in (trainee.folder / "push").iterdir()] == ["tokenizer"]
        offer(publisher, report(2), trainee.train())
        wait_until(lambda: publisher.last)
        publisher.stop()
        assert server.commits == ["Round 2, policy version 2"]


def test_a_full_disk_is_found_before_it_is_full(tmp_path, monkeypatch):
    trainee = Trainee(tmp_path)
    checkpoint, packer = trainee.train(), trainee.packer()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 40, 0, 1 << 28))
    with pytest.raises(PublishError, match=r"push: 0\.2 GiB of disk are free in .*/state, 0\.5 GiB are needed"):
        packer.pack(checkpoint)
    assert not packer.target.exists()


@pytest.mark.parametrize("method", TrainMethod)
def test_a_disk_that_is_full_all_the_same_is_told_as_such(tmp_path, method):
    trainee = Trainee(tmp_path, method)
    checkpoint, packer = trainee.train(), trainee.packer()
    with files_of_at_most(8000), pytest.raises(PublishError, match="File too large"):
        packer.pack(checkpoint)
    assert not packer.target.exists()


@pytest.mark.parametrize("damage", ["gone", "torn", "other"])
def test_a_checkpoint_that_cannot_be_read_is_left_for_the_next(tmp_path, damage):
    trainee = Trainee(tmp_path)
    checkpoint, packer = trainee.train(), trainee.packer()
    if damage == "gone":
        shutil.rmtree(checkpoint)
    elif damage == "torn":
        learner = (checkpoint / "learner.pt").read_bytes()
        (checkpoint / "learner.pt").write_bytes(learner[: len(learner) // 2])
    else:
        (checkpoint / "learner.pt").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(PublishError, match="push: the files could not be written"):
        packer.pack(checkpoint)
    assert not packer.target.exists()
