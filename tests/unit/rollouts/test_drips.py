"""Rollout servers that are never silent and never done: whoever waits for them is not held up."""

import threading
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack

import pytest
import torch

from codezero.config import Transfer
from codezero.llm.sample import sample_groups
from codezero.rollouts import client, engine
from codezero.rollouts.client import ServerFailed
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.protocol import RolloutRequest
from codezero.rollouts.snapshots import Snapshots
from tests.builders import tiny_model
from tests.rollout_servers import dripping_server, rollout_server
from tests.unit.rollouts.test_engine import EVERY, Fleet, asks, begun, request

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
DRIPS = {
    "a first line": b"HTTP/1.1 200 ",
    "a header": b"HTTP/1.1 200 OK\r\nx: ",
    "the announcement of other headers": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 ",
    "an extension of a chunk": CHUNKED + b"1;",
    "a header after the last chunk": CHUNKED + b"0\r\nx: ",
}


@pytest.fixture
def snapshots(tmp_path):
    return Snapshots(tiny_model(), tmp_path / "weights", Transfer.auto)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(client, "SILENCE_S", 1.0)
    monkeypatch.setattr(client, "STALLED_S", 2.0)


@pytest.mark.parametrize("begins", DRIPS.values(), ids=DRIPS)
def test_a_server_that_drips_what_is_no_answer_is_given_up(snapshots, begins):
    asked = RolloutRequest(
        weights="b",
        prompts=[[1, 2]],
        num_generations=1,
        max_new_tokens=1,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        end_ids=[256],
        pad_id=257,
        seed=1,
    )
    with dripping_server(begins) as connection:
        for ask in (lambda: connection.bring(snapshots), lambda: connection.sample(asked, lambda step: None)):
            with pytest.raises(ServerFailed, match="more than 1 s"):
                ask()


def test_a_server_that_was_given_up_is_asked_again_over_another_connection(snapshots):
    with dripping_server(DRIPS["a header"]) as connection, rollout_server() as good:
        with pytest.raises(ServerFailed, match="more than 1 s"):
            connection.status()
        connection._url = good._url
        assert connection.bring(snapshots) == snapshots.name


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_server_that_drips_headers_holds_up_no_round(snapshots, monkeypatch, caplog, is_alone):
    monkeypatch.setattr(engine, "LEAST_WAIT_S", 0.1)
    model, own = tiny_model(), []

    def local(model, asked):
        own.extend(asked.prompts)
        return sample_groups(model, asked)

    with dripping_server(DRIPS["a header"]) as drips, rollout_server() as good:
        remote = RemoteEngine([drips] if is_alone else [drips, good], snapshots, local=local)
        monkeypatch.setattr(drips, "bring", lambda snapshots: snapshots.name)  # so that what drips are the rollouts
        assert asks(remote.sample_groups(model, request())) == EVERY
    assert bool(own) is is_alone
    assert "drips.yaml is left out for 60 s" in caplog.text


@pytest.fixture
def uploading(tmp_path, monkeypatch):
    """A fleet of one server whose upload goes on only once the event is set."""
    monkeypatch.setattr(client, "SILENCE_S", 60.0)
    goes_on = threading.Event()
    with ExitStack() as stack:
        made = Fleet(stack, tmp_path / "weights", sample_groups)
        stack.callback(goes_on.set)
        with torch.no_grad():
            made.model.lm_head.weight.mul_(1.5)
        read = made.servers[0]._read

        def slowly(file):
            goes_on.wait()
            return read(file)

        monkeypatch.setattr(made.servers[0], "_read", slowly)
        yield made, goes_on


def test_the_upload_to_the_only_server_does_not_hold_up_a_round_and_is_not_begun_anew(uploading):
    made, goes_on = uploading
    for rounds in (1, 2):
        assert asks(made.draw()) == EVERY
        assert (made.local, made.counts) == (8 * rounds, [0])
    goes_on.set()
    made.engine._standings[made.servers[0]].upload.join()
    sent = made.servers[0].sent_bytes
    assert asks(made.draw()) == EVERY
    assert (made.local, made.counts) == (16, [8])
    assert made.servers[0].sent_bytes == sent > 0


def test_work_that_nobody_waits_for_yet_waits_for_the_upload_to_the_only_server(uploading):
    made, goes_on = uploading
    first = begun(made)
    with pytest.raises(NotYet):
        first.found.result(2 * client.STALLED_S)
    goes_on.set()
    assert all(first.found.result(60))
    assert (made.local, made.counts) == (0, [2])
