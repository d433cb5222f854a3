"""Sampling with several servers: work goes by speed, and none is lost with one that fails, lies or is slow."""

import threading
import time
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch

from codezero.config import TrainConfig, Transfer
from codezero.errors import RolloutError
from codezero.llm.draw import SamplingParams
from codezero.llm.sample import SampleRequest, sample_groups
from codezero.rollouts import engine as engines
from codezero.rollouts.client import ServerFailed
from codezero.rollouts.engine import RemoteEngine
from codezero.rollouts.snapshots import Snapshots
from codezero.train.method import apply_lora
from tests.builders import tiny_model
from tests.rollout_servers import TOKEN, make_app, rollout_server, sampler

PROMPTS = [[i, i + 1, i + 2] for i in range(1, 9)]


def request(prompts=PROMPTS, seed=1, on_step=None, **params):
    return SampleRequest(
        prompts=prompts,
        num_generations=2,
        params=SamplingParams(max_new_tokens=4, **params),
        end_ids=[256],
        pad_id=257,
        generator=torch.Generator().manual_seed(seed),
        on_step=on_step,
    )


class Fleet:
    """Servers of the tiny model, and an engine that uses them."""

    def __init__(self, stack, folder, *samples, model=None, others=(), local=None):
        self.counts = [0] * len(samples)
        self.local = 0
        apps = [make_app(sampler(sample=self._counting(i, one)), TOKEN) for i, one in enumerate(samples)]
        self.servers = [
            stack.enter_context(rollout_server(app, f"server-{i}.yaml")) for i, app in enumerate([*apps, *others])
        ]
        self.model = model or tiny_model()
        self.engine = RemoteEngine(
            self.servers, Snapshots(self.model, folder, Transfer.auto), local=local or self._local
        )
        stack.callback(self.engine.close)

    def _counting(self, number, sample):
        def counted(model, request):
            self.counts[number] += len(request.prompts)
            return sample(model, request)

        return counted

    def _local(self, model, request):
        self.local += len(request.prompts)
        return sample_groups(model, request)

    def draw(self, **params):
        return self.engine.sample_groups(self.model, request(**params))


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "LEAST_WAIT_S", 600.0)  # however slow this machine is, nobody is slower than others
    with ExitStack() as stack:
        yield lambda *samples, **options: Fleet(stack, tmp_path / "weights", *samples, **options)


def asks(groups):
    return [[one.prompt_ids for one in group] for group in groups]


def begun(fleet, on_step=None):
    """A job for which nobody waits yet."""
    fleet.engine.publish(fleet.model)
    return fleet.engine.begin(request(PROMPTS[:2], on_step=on_step))


EVERY = [[tuple(prompt)] * 2 for prompt in PROMPTS]


def paced(step_s):
    def sample(model, request):
        def slowly(done, total):
            time.sleep(step_s)
            request.on_step(done, total)

        return sample_groups(model, replace(request, on_step=slowly))

    return sample


def failing_at_first():
    calls = []

    def sample(model, request):
        calls.append(1)
        return (failing if len(calls) == 1 else sample_groups)(model, request)

    return sample


@pytest.fixture
def endless(monkeypatch):
    """A sampler that makes steps until nobody waits for them, which is soon once it has begun."""

    def sample(model, request):
        monkeypatch.setattr(engines, "LEAST_WAIT_S", 0.1)
        for step in range(10_000):
            request.on_step(step, 10_000)
            time.sleep(0.1)

    return sample


def test_prompts_are_shared_out_equally_and_then_by_speed(fleet):
    made = fleet(sample_groups, paced(0.1))
    assert asks(made.draw()) == EVERY
    assert made.counts == [4, 4]
    fast, slow = (made.engine._standings[server] for server in made.servers)
    assert fast.tokens_per_s > 0
    assert 0 < slow.tokens_per_s < 4 * 2 * 4 / 0.3  # tokens in three steps at least
    fast.tokens_per_s = 10 * slow.tokens_per_s  # as on a machine that does nothing else
    made.draw()
    assert made.counts == [12, 4]
    assert made.local == 0


def test_the_time_that_weights_take_to_a_server_counts_in_its_speed(fleet):
    made = fleet(sample_groups)
    bring = made.servers[0].bring

    def slowly(snapshots):
        time.sleep(1.0)
        return bring(snapshots)

    made.servers[0].bring = slowly
    made.draw()
    assert 0 < made.engine._standings[made.servers[0]].tokens_per_s < 8 * 2 * 4


def failing(model, request):
    raise RuntimeError("no kernel image")


def lying(model, request):
    """Samples from other weights than those that it was sent."""
    return sample_groups(tiny_model(seed=5), request)


def wrong_tokens(model, request):
    """Claims tokens that the model does not have."""
    groups = sample_groups(model, request)
    for group in groups:
        for tokens in group:
            ids = tuple(id_ if id_ == 256 else 9000 for id_ in tokens.completion_ids)
            object.__setattr__(tokens, "completion_ids", ids)
    return groups


def one_wrong_token(model, request):
    """Claims a token that the model does not have, in an attempt that is not the first of the longest."""
    groups = sample_groups(model, request)
    last = groups[-1][-1]
    object.__setattr__(last, "completion_ids", (9000, *last.completion_ids[1:]))
    return groups


@pytest.mark.parametrize("bad", [failing, lying, wrong_tokens, one_wrong_token])
def test_the_work_of_a_server_that_fails_or_lies_is_done_by_others_or_here(fleet, bad, caplog):
    made = fleet(sample_groups, bad)
    assert asks(made.draw()) == EVERY
    assert made.local == (0 if bad is failing else 4)
    assert caplog.text.count("is left out") == 1
    assert "server-1.yaml is left out for 60 s" in caplog.text
    before = list(made.counts)
    assert asks(made.draw()) == EVERY
    assert made.counts == [before[0] + 8, before[1]]


def test_a_server_that_lies_again_and_again_is_left_out_longer_each_time(fleet, caplog):
    made = fleet(lying)
    for _ in range(3):
        made.engine._standings[made.servers[0]].out_until_s = 0.0  # later
        made.draw()
    assert [f"is left out for {seconds} s" in caplog.text for seconds in (60, 120, 240)] == [True] * 3


def test_weights_that_this_node_cannot_write_are_not_the_fault_of_a_server(fleet, caplog):
    made = fleet(sample_groups, sample_groups)

    def full(snapshots):
        raise RolloutError("cannot write weights: free some space")

    made.servers[1].bring = full
    assert asks(made.draw()) == EVERY
    assert (made.counts, made.local) == ([4, 0], 4)
    assert "free some space. Training is not affected: this node samples by itself" in caplog.text
    assert "left out" not in caplog.text
    del made.servers[1].bring
    assert asks(made.draw()) == EVERY
    assert made.local == 4


@pytest.mark.parametrize(("bad", "helps"), [(failing, False), (None, True)])
def test_advice_on_the_connection_is_given_for_failures_of_the_connection(fleet, monkeypatch, caplog, bad, helps):
    made = fleet(bad or sample_groups)
    if bad is None:
        monkeypatch.setattr(made.servers[0], "_url", "http://127.0.0.1:9")
    made.draw()
    assert ("check that it runs" in caplog.text) is helps
    assert "is left out" in caplog.text


def test_a_server_that_is_left_out_comes_back(fleet):
    made = fleet(failing_at_first())
    assert asks(made.draw()) == EVERY
    assert made.local == 8
    made.engine._standings[made.servers[0]].out_until_s = 0.0  # a minute later
    assert asks(made.draw()) == EVERY
    assert made.local == 8


def test_work_ahead_that_nobody_waits_for_yet_waits_for_its_server(fleet, monkeypatch):
    monkeypatch.setattr(engines, "OUT_S", 1.0)
    made = fleet(failing_at_first())
    job = begun(made)
    assert all(job.found.result(60))
    assert made.local == 0


def test_a_node_that_ends_waits_for_no_server(fleet):
    made = fleet(failing)
    job = begun(made)
    made.engine.close()
    assert job.found.result(60) == [None, None]


def test_once_somebody_waits_the_node_samples_what_no_server_is_there_for(fleet):
    made = fleet(failing)
    job = begun(made)
    with pytest.raises(NotYet):
        job.found.result(2)
    assert len(made.engine.finish(job, made.model)) == 2
    assert made.local == 2


def test_without_any_server_the_node_samples_by_itself(fleet, caplog):
    async def gone(scope, receive, send):
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b"\x1b[2J"})

    made = fleet(others=[gone])
    seed = int(torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(1)))
    assert made.draw() == sample_groups(made.model, request(seed=seed))
    assert "HTTP 500" in caplog.text
    assert "\x1b" not in caplog.text


def test_what_the_node_samples_by_itself_is_halved_if_memory_is_full(fleet):
    tried = []

    def small(model, request):
        tried.append(len(request.prompts) * request.num_generations)
        if tried[-1] > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sample_groups(model, request)

    made = fleet(local=small)
    assert asks(made.draw()) == EVERY
    assert tried == [16, 8, 8]


def test_a_server_that_is_much_slower_than_others_is_not_waited_for(fleet, endless):
    made = fleet(sample_groups, endless)
    assert asks(made.draw()) == EVERY
    assert made.counts == [8, 4]
    assert made.local == 0


def test_a_server_that_gets_weights_too_slowly_goes_on_with_them_and_then_has_a_share(fleet, monkeypatch):
    made = fleet(sample_groups, sample_groups)
    with torch.no_grad():
        made.model.lm_head.weight.mul_(1.5)
    slow, standing = made.servers[1], made.engine._standings[made.servers[1]]
    read, goes_on = slow._read, threading.Event()

    def slowly(file):
        monkeypatch.setattr(engines, "LEAST_WAIT_S", 0.1)
        goes_on.wait()
        return read(file)

    monkeypatch.setattr(slow, "_read", slowly)
    for _ in range(2):  # in the second job nobody asks it
        assert asks(made.draw()) == EVERY
        assert made.counts[1] == 0
    goes_on.set()
    standing.upload.join()
    size = slow.sent_bytes
    assert slow.status().weights == made.engine._snapshots.name
    monkeypatch.setattr(engines, "LEAST_WAIT_S", 600.0)
    assert asks(made.draw()) == EVERY
    assert made.counts[1] > 0
    assert slow.sent_bytes == size > 0
    assert made.local == 0


def test_an_upload_that_nobody_waits_for_and_that_fails_leaves_its_server_out(fleet, monkeypatch, caplog):
    made = fleet(sample_groups, sample_groups)
    with torch.no_grad():
        made.model.lm_head.weight.mul_(1.5)
    fails = threading.Event()

    def bring(snapshots):
        made.servers[1].is_uploading = True
        monkeypatch.setattr(engines, "LEAST_WAIT_S", 0.1)
        fails.wait()
        raise ServerFailed("the link is gone")

    monkeypatch.setattr(made.servers[1], "bring", bring)
    made.draw()
    fails.set()
    standing = made.engine._standings[made.servers[1]]
    standing.upload.join()
    assert standing.out_s == engines.OUT_S
    assert "server-1.yaml is left out for 60 s: the link is gone" in caplog.text


def test_a_server_that_has_never_ended_in_time_gets_less_and_less(fleet, endless, monkeypatch):
    made = fleet(sample_groups, endless)
    monkeypatch.setattr(engines, "NEWEST", 0.0)  # the first one is as fast as it was at first
    before, given = 0, []
    for _ in range(3):
        monkeypatch.setattr(engines, "LEAST_WAIT_S", 600.0)  # until it has begun
        assert asks(made.draw()) == EVERY
        given.append(made.counts[1] - before)
        before = made.counts[1]
    assert given == [4, 2, 1]


def test_a_server_without_a_share_gets_one_again(fleet, monkeypatch):
    monkeypatch.setattr(engines, "RECOVERY", 10.0)
    made = fleet(sample_groups, sample_groups)
    made.draw()
    made.engine._standings[made.servers[1]].tokens_per_s = 0.1
    for counts in ([12, 4], [20, 4]):
        made.draw()
        assert made.counts == counts
    for _ in range(6):
        made.draw()
    assert made.counts[1] > 4


def test_more_attempts_than_a_request_may_have_are_asked_for_in_turn(fleet, monkeypatch):
    monkeypatch.setattr(engines.protocol, "MAX_ROWS", 5)
    made = fleet(sample_groups, sample_groups)
    assert asks(made.draw()) == EVERY
    assert sum(made.counts) == 8
    assert made.local == 0


def test_weights_that_change_reach_the_servers(fleet):
    made = fleet(sample_groups, sample_groups)
    first = made.draw(temperature=0.0)
    for seed in (2, 3):
        with torch.no_grad():
            made.model.lm_head.weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(seed))
            made.model.lm_head.weight.copy_(made.model.lm_head.weight.bfloat16())
        wanted = sample_groups(made.model, request(temperature=0.0))
        found = made.draw(temperature=0.0)
        assert [[one.completion_ids for one in group] for group in found] == [
            [one.completion_ids for one in group] for group in wanted
        ]
        assert found != first
    assert made.local == 0


def test_adapters_reach_the_servers(fleet):
    model = apply_lora(tiny_model(), TrainConfig(lora_r=4, lora_alpha=12), 0)
    made = fleet(sample_groups, model=model)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(0, 0.3)
    assert asks(made.draw()) == EVERY
    assert made.local == 0
    assert made.servers[0].sent_bytes < 20_000


def test_an_error_that_nobody_expects_is_raised_and_not_waited_for(fleet):
    made = fleet(sample_groups, sample_groups)

    def broken(snapshots):
        raise ZeroDivisionError

    made.servers[1].bring = broken
    with pytest.raises(ZeroDivisionError):
        made.draw()


def test_jobs_run_while_their_caller_does_something_else(fleet):
    go_on = threading.Event()

    def held(model, request):
        assert go_on.wait(60)
        return paced(0.3)(model, request)

    made = fleet(held)
    steps = []
    jobs = [begun(made, lambda *step: steps.append(step)) for _ in range(2)]
    go_on.set()
    for job in jobs:
        found = made.engine.finish(job, made.model)
        assert [len(attempts) for attempts, _ in found] == [2, 2]
    assert steps
