"""A rollout server over HTTP: who may use it, what it refuses, and what a trainer makes of one that lies."""

import asyncio
import io
import socket
import threading
import time

import httpx2
import msgspec
import pytest
import torch

from codezero.config import RolloutEngine, Transfer
from codezero.llm.draw import SamplingParams
from codezero.llm.sample import SampleRequest, sample_groups
from codezero.llm.within_memory import WithinMemory
from codezero.rollouts import client, protocol, server
from codezero.rollouts.client import Cancelled, RolloutServer, ServerFailed
from codezero.rollouts.protocol import RolloutRequest
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.server import make_app
from codezero.rollouts.snapshots import Snapshots
from tests.builders import tiny_model
from tests.processes import wait_until
from tests.rollout_servers import TOKEN, rollout_server, sampler, served


def request(base, **changes):
    fields = {
        "weights": base,
        "prompts": [[1, 2, 3], [4, 5]],
        "num_generations": 2,
        "max_new_tokens": 4,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "end_ids": [256],
        "pad_id": 257,
        "seed": 1,
    }
    return RolloutRequest(**{**fields, **changes})


@pytest.fixture(scope="module")
def url():
    with served(make_app(sampler(), TOKEN)) as found:
        yield found


def call(url, method, path, token=TOKEN, **options):
    headers = {"authorization": f"Bearer {token}", **options.pop("headers", {})}
    return httpx2.request(method, url + path, headers=headers, **options)


@pytest.mark.parametrize("path", [protocol.STATUS, protocol.ROLLOUTS, protocol.WEIGHTS, "/", "/docs", "/openapi.json"])
def test_without_the_token_there_is_nothing(url, path):
    for token in ("other", TOKEN + "x", TOKEN[:-1], TOKEN.upper()):
        assert call(url, "GET", path, token).status_code == 401
    assert httpx2.get(url + path).status_code == 401
    assert call(url, "PUT", path, "other", content=b"x" * 1000).status_code == 401


def test_the_status_names_model_and_weights(url):
    found = call(url, "GET", protocol.STATUS).json()
    assert (found["model"], found["engine"], found["version"]) == ("tiny", "transformers", 1)
    assert found["weights"] == found["base"]
    assert len(found["base"]) == 32


def rows(url, asked):
    lines = call(url, "POST", protocol.ROLLOUTS, content=msgspec.json.encode(asked)).text.splitlines()
    return msgspec.json.decode(lines[-1]), [msgspec.json.decode(line) for line in lines[:-1]]


def test_it_samples_as_the_engine_does_and_tells_of_each_step(url):
    base = call(url, "GET", protocol.STATUS).json()["base"]
    done, steps = rows(url, request(base))
    asked = SampleRequest(
        prompts=[[1, 2, 3], [4, 5]],
        num_generations=2,
        params=SamplingParams(max_new_tokens=4),
        end_ids=[256],
        pad_id=257,
        generator=torch.Generator().manual_seed(1),
    )
    flat = [one for group in sample_groups(tiny_model(), asked) for one in group]
    assert done["ids"] == [list(one.completion_ids) for one in flat]
    assert done["logprobs"] == [pytest.approx(one.logprobs, abs=1e-5) for one in flat]
    assert [step["done"] for step in steps] == [1, 2, 3]


REFUSED = {
    "no JSON": (b"\xff{", 400),
    "other fields": (b"{}", 400),
    "deep JSON": (b"[" * 100_000, 400),
    "no prompt": ({"prompts": []}, 400),
    "an empty prompt": ({"prompts": [[]]}, 400),
    "ids of no token": ({"prompts": [[259]]}, 400),
    "negative ids": ({"prompts": [[-1]]}, 400),
    "an end of no token": ({"end_ids": [70_000]}, 400),
    "a pad of no token": ({"pad_id": 70_000}, 400),
    "too many rows": ({"prompts": [[1]] * 600, "num_generations": 2}, 400),
    "longer than the context": ({"max_new_tokens": 2046}, 400),
    "a negative temperature": ({"temperature": -1.0}, 400),
    "no mass": ({"top_p": 0.0}, 400),
    "other weights": ({"weights": "0" * 32}, 409),
}


@pytest.mark.parametrize(("what", "code"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_it_cannot_answer_is_refused_in_words(url, what, code):
    base = call(url, "GET", protocol.STATUS).json()["base"]
    content = what if isinstance(what, bytes) else msgspec.json.encode(request(base, **what))
    answer = call(url, "POST", protocol.ROLLOUTS, content=content)
    assert answer.status_code == code
    assert answer.text.strip().isprintable()
    assert rows(url, request(base))[0]["ids"]


@pytest.mark.parametrize(("method", "path"), [("PUT", protocol.WEIGHTS), ("POST", protocol.ROLLOUTS)])
@pytest.mark.parametrize("size", ["1099511627776", "-1", "x", "9" * 30, "0"])
def test_sizes_are_checked_before_anything_is_read(url, method, path, size):
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10) as raw:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {size}\r\n\r\n"
        raw.sendall(head.encode())
        assert raw.recv(1000).split()[1] in (b"400", b"413")
    assert call(url, "GET", protocol.STATUS).status_code == 200


@pytest.mark.parametrize("path", [protocol.WEIGHTS, protocol.ROLLOUTS])
def test_a_body_that_does_not_say_its_length_is_refused(url, path):
    assert call(url, "PUT" if path == protocol.WEIGHTS else "POST", path, content=iter([b"x"])).status_code == 413


def test_one_upload_at_a_time(url, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    real_receive = server._receive

    async def receive(*arguments):
        begun.set()
        return await real_receive(*arguments)

    monkeypatch.setattr(server, "_receive", receive)

    def slowly():
        yield b"x"
        go_on.wait(60)
        yield b"y"

    options = {"content": slowly(), "headers": {"content-length": "2"}}
    first = threading.Thread(target=call, args=(url, "PUT", protocol.WEIGHTS), kwargs=options)
    first.start()
    assert begun.wait(60)
    second = call(url, "PUT", protocol.WEIGHTS, content=b"xy")
    go_on.set()
    first.join()
    assert (second.status_code, second.text) == (
        503,
        "another upload is under way: give each trainer servers of its own\n",
    )
    assert call(url, "PUT", protocol.WEIGHTS, content=b"xy").status_code == 400


def begun(url, method, path):
    """A connection on which the first of nine bytes of a request were sent."""
    raw = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10)
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\nx"
    raw.sendall(head.encode())
    return raw


@pytest.mark.parametrize(("method", "path"), [("PUT", protocol.WEIGHTS), ("POST", protocol.ROLLOUTS)])
def test_a_trainer_that_falls_silent_in_the_middle_is_not_waited_for(url, monkeypatch, method, path):
    monkeypatch.setattr(server, "SILENCE_S", 0.3)
    with begun(url, method, path) as raw:
        assert raw.recv(1000).split()[1] == b"400"
    assert call(url, method, path, content=b"xy").status_code == 400


@pytest.mark.parametrize(("method", "path"), [("PUT", protocol.WEIGHTS), ("POST", protocol.ROLLOUTS)])
def test_a_trainer_that_goes_away_in_the_middle_is_no_error_of_the_server(url, caplog, monkeypatch, method, path):
    has_begun, is_over = threading.Event(), threading.Event()
    length, refused = server._length, server._refused
    monkeypatch.setattr(server, "_length", lambda request: has_begun.set() or length(request))
    monkeypatch.setattr(server, "_refused", lambda *answer: is_over.set() or refused(*answer))
    with begun(url, method, path):
        assert has_begun.wait(60)
    assert is_over.wait(60)
    wait_until(lambda: call(url, method, path, content=b"xy").status_code == 400)  # another upload waits for its end
    assert caplog.text == ""


def test_a_full_disk_is_told_as_such(url, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server, "_receive", full)
    answer = call(url, "PUT", protocol.WEIGHTS, content=b"xy")
    assert (answer.status_code, answer.text) == (507, "the weights cannot be stored: No space left on device\n")


def test_a_trainer_that_goes_away_ends_its_rollouts():
    ended = threading.Event()

    def endless(model, request):
        try:
            for step in range(10_000):
                request.on_step(step, 10_000)
                time.sleep(0.01)
        finally:
            ended.set()

    what = sampler(sample=endless)
    with served(make_app(what, TOKEN)) as url:
        content = msgspec.json.encode(request(what.status().base))
        with httpx2.stream(
            "POST", url + protocol.ROLLOUTS, headers={"authorization": f"Bearer {TOKEN}"}, content=content
        ) as answer:
            next(answer.iter_lines())
        assert ended.wait(60)
        with what._turn:  # which it holds until its time is counted
            pass
        assert call(url, "GET", protocol.STATUS).json()["busy_s"] > 0


def test_rollouts_that_memory_does_not_hold_are_sampled_by_halves_then_and_later():
    tried = []

    def sample(model, request):
        tried.append(len(request.prompts) * request.num_generations)
        if tried[-1] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sample_groups(model, request)

    what = sampler(sample=WithinMemory(sample))
    with served(make_app(what, TOKEN)) as url:
        first, _ = rows(url, request(what.status().base))
        again, steps = rows(url, request(what.status().base))
    assert [len(found["ids"]) for found in (first, again)] == [4, 4]
    assert tried == [4, 2, *[1] * 4, *[1] * 4]
    told = [step["done"] for step in steps]
    assert told == sorted(told)
    assert 0 < told[-1] <= 4


def test_no_memory_for_any_rollout_is_told_and_the_server_goes_on(caplog):
    def failing(model, request):
        if request.params.top_k:
            raise torch.OutOfMemoryError("CUDA out of memory\x1b[2J")
        return sample_groups(model, request)

    what = sampler(sample=WithinMemory(failing))
    with served(make_app(what, TOKEN)) as url:
        error = rows(url, request(what.status().base, top_k=9))[0]["error"]
        assert error.startswith("the accelerator's memory does not hold the sampling of one attempt")
        assert rows(url, request(what.status().base))[0]["ids"]
    assert "\x1b" not in caplog.text


@pytest.mark.parametrize(
    ("engine", "changes", "says"),
    [
        (RolloutEngine.llama_cpp, {}, "adapters only"),
        (RolloutEngine.vllm, {"top_p": 0.9}, "rollout.top_p=1"),
        (RolloutEngine.vllm, {"top_k": 9}, "rollout.top_k=0"),
    ],
)
def test_what_its_engine_cannot_do_is_refused_in_words(engine, changes, says):
    with served(make_app(sampler(engine=engine), TOKEN)) as url:
        base = call(url, "GET", protocol.STATUS).json()["base"]
        answer = call(url, "POST", protocol.ROLLOUTS, content=msgspec.json.encode(request(base, **changes)))
    assert (answer.status_code, says in answer.text) == (400, True)


# what a trainer makes of a server


@pytest.fixture
def snapshots(tmp_path):
    return Snapshots(tiny_model(), tmp_path / "weights", Transfer.auto)


def test_a_connection_brings_weights_and_gets_rollouts(snapshots):
    with rollout_server() as connection:
        model = tiny_model(seed=0)
        with torch.no_grad():
            model.lm_head.weight[3] *= 3
        for _ in range(2):
            snapshots.take(model)
            assert connection.bring(snapshots) == snapshots.name
        sent = connection.sent_bytes
        assert 0 < sent < 4000
        steps = []
        done = connection.sample(request(snapshots.name), steps.append)
        assert len(done.ids) == 4
        assert steps == [0, 1, 2, 3] or steps == [1, 2, 3]


def test_llama_cpp_refuses_all_weights_in_words_after_an_upload_too(snapshots):
    with rollout_server(sampler(engine=RolloutEngine.llama_cpp)) as connection:
        snapshots.take(tiny_model(seed=1))
        assert connection.bring(snapshots) == snapshots.name
        with pytest.raises(ServerFailed, match="adapters only"):
            connection.sample(request(snapshots.name), lambda step: None)


def test_a_wrong_token_another_model_or_nobody_is_said(snapshots):
    with rollout_server(token="wrong") as connection, pytest.raises(ServerFailed, match=r"401.*not the token"):
        connection.bring(snapshots)
    with rollout_server(sampler(tiny_model(seed=1))) as connection, pytest.raises(ServerFailed, match=r"model\.name"):
        connection.bring(snapshots)
    with pytest.raises(ServerFailed):
        connection.bring(snapshots)  # it has ended


STATUS = {"version": 1, "model": "x", "base": "b", "weights": "b", "engine": "e", "busy_s": 0.0, "up_s": 1.0}


def stand_in(*pieces, status=200, pause_s=0.0):
    """An app that answers everything with these pieces."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": []})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(pause_s)
        await send({"type": "http.response.body", "body": b""})

    return app


def done(**changes):
    rows = {"ids": [[5, 256]] * 4, "logprobs": [[-1.0, -0.5]] * 4}
    return msgspec.json.encode({"type": "Done", **rows, **changes}) + b"\n"


LIES = {
    "no JSON": b"<html>\n",
    "nothing": b"",
    "half a line": done()[:40],
    "endless steps without an end": b'{"type":"Progressed","done":1,"total":4}\n',
    "more steps than there are": b'{"type":"Progressed","done":5,"total":4}\n' + done(),
    "steps before the first": b'{"type":"Progressed","done":-1,"total":4}\n' + done(),
    "a line without an end": b"1" * (3 << 20),
    "an error to print": done(error="\x1b[2J"),
    "too few rows": done(ids=[[5, 256]], logprobs=[[-1.0, -0.5]]),
    "a log-prob too few": done(logprobs=[[-1.0]] * 4),
    "too long": done(ids=[[5] * 9] * 4, logprobs=[[-1.0] * 9] * 4),
    "no tokens": done(ids=[[-5, 256]] * 4),
    "huge numbers": done(ids=[[2**70, 256]] * 4),
    "goes on after its end": done(ids=[[256, 5]] * 4),
    "stops before its end": done(ids=[[5, 5]] * 4),
    "likelier than certain": done(logprobs=[[1.0, -0.5]] * 4),
    "less likely than any draw": done(logprobs=[[-1e300, -0.5]] * 4),
    "not a number": done().replace(b"-0.5", b"NaN"),
}


@pytest.mark.parametrize("reply", LIES.values(), ids=LIES)
def test_a_reply_that_is_none_is_a_failure_of_the_server(reply):
    with rollout_server(stand_in(reply)) as connection, pytest.raises(ServerFailed):
        connection.sample(request("b"), lambda step: None)


def test_the_same_without_a_lie_is_taken():
    with rollout_server(stand_in(done())) as connection:
        assert connection.sample(request("b"), lambda step: None).ids == [[5, 256]] * 4


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"version": 2}, "same codezero on both"),
        ({"base": "c"}, "other weights"),
        ({"busy_s": "x"}, "cannot be read"),
        ({"model": "x" * 5000}, "more than|cannot be read"),
    ],
)
def test_a_server_of_another_kind_is_not_used(snapshots, status, says):
    snapshots.base = "b"
    answer = msgspec.json.encode({**STATUS, **status})
    with rollout_server(stand_in(answer)) as connection, pytest.raises(ServerFailed, match=says):
        connection.bring(snapshots)


def test_a_server_that_claims_other_weights_than_it_was_sent_is_not_used(snapshots):
    snapshots.base, model = "b", tiny_model()
    with torch.no_grad():
        model.lm_head.weight.mul_(1.5)
    snapshots.take(model)
    lying = stand_in(msgspec.json.encode(STATUS))
    with rollout_server(lying) as connection, pytest.raises(ServerFailed, match="other weights than it was sent"):
        connection.bring(snapshots)


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch, status):
    with (
        rollout_server(stand_in(*[b"x\n"] * 100_000, status=status)) as connection,
        pytest.raises(ServerFailed, match="more than 4096 bytes"),
    ):
        connection.status()
    with rollout_server(stand_in(*[b"x"] * 100, status=status, pause_s=0.1)) as connection:
        monkeypatch.setattr(client, "SILENCE_S", 0.3)  # now: the connection still waits for each piece as long as ever
        with pytest.raises(ServerFailed, match=r"for more than 0\.3 s"):
            connection.status()


def test_a_redirect_is_not_followed(snapshots):
    with rollout_server(stand_in(b"", status=307)) as connection, pytest.raises(ServerFailed, match="HTTP 307"):
        connection.bring(snapshots)


def steps(total):
    """The lines of a server that has made 0, 1, ... steps; `total` is given each number and says of how many."""
    return [b'{"type":"Progressed","done":%d,"total":%d}\n' % (done, total(done)) for done in range(600)]


STALLS = {
    "no progress": (steps(lambda done: 4)[:1] * 600, 4, client.TOKEN_S, "no step"),
    "a line byte by byte": ([b" "] * 600, 4, client.TOKEN_S, "no step"),
    "never nearer to its end": (steps(lambda done: done + 1), 4, client.TOKEN_S, "no step"),
    "a step now and then": (steps(lambda done: 600), 600, 0.0, "too slow"),
}


@pytest.mark.parametrize(("lines", "tokens", "token_s", "says"), STALLS.values(), ids=STALLS)
def test_a_server_that_does_not_get_on_is_given_up(monkeypatch, lines, tokens, token_s, says):
    monkeypatch.setattr(client, "STALLED_S", 0.3)
    monkeypatch.setattr(client, "TOKEN_S", token_s)
    with rollout_server(stand_in(*lines, pause_s=0.1)) as connection, pytest.raises(ServerFailed, match=says):
        connection.sample(request("b", max_new_tokens=tokens), lambda step: None)


def test_a_silent_server_is_given_up(monkeypatch):
    monkeypatch.setattr(client, "SILENCE_S", 0.3)
    connected = rollout_server(stand_in(*steps(lambda done: 4)[:2], pause_s=30.0))
    with connected as connection, pytest.raises(ServerFailed, match="timed out"):
        connection.sample(request("b"), lambda step: None)


def test_a_server_that_hardly_reads_an_upload_is_given_up(snapshots, monkeypatch):
    async def slow(scope, receive, send):
        if scope["method"] == "GET":
            await stand_in(msgspec.json.encode(STATUS))(scope, receive, send)
        while (await receive())["type"] != "http.disconnect":
            await asyncio.sleep(0.2)

    snapshots.base = "b"
    monkeypatch.setattr(snapshots, "open_for", lambda has: ("c", io.BytesIO(bytes(32 << 20))))
    with rollout_server(slow) as connection:
        monkeypatch.setattr(client, "SILENCE_S", 0.1)  # now: the connection still waits for each write as long as ever
        with pytest.raises(ServerFailed, match=r"more than 0\.1 s for 262144 bytes of an upload"):
            connection.bring(snapshots)


def test_weights_wait_for_a_server_that_is_at_work_but_not_for_ever(snapshots, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def slow(model, request):
        begun.set()
        go_on.wait(60)
        return sample_groups(model, request)

    monkeypatch.setattr(client, "LOOK_S", 0.05)
    with rollout_server(sampler(sample=slow)) as connection:
        base = connection.status().base
        asks = threading.Thread(target=connection.sample, args=(request(base), lambda step: None))
        asks.start()
        assert begun.wait(60)
        other = RolloutServer(RolloutFile(url=connection._url, token=TOKEN), "other")
        with monkeypatch.context() as patched:
            patched.setattr(client, "STALLED_S", 0.2)
            with pytest.raises(ServerFailed, match="give each trainer servers of its own"):
                other.bring(snapshots)
        threading.Timer(0.3, go_on.set).start()
        snapshots.take(tiny_model(seed=1))
        assert other.bring(snapshots) == snapshots.name
        asks.join()


def test_two_trainers_of_one_server_are_told_once(tmp_path, caplog):
    with served(make_app(sampler(), TOKEN)) as url:
        trainers = []
        for seed in (1, 2):
            connection = RolloutServer(RolloutFile(url=url, token=TOKEN), "shared.yaml")
            trainers.append((connection, Snapshots(tiny_model(), tmp_path / str(seed), Transfer.auto)))
        for seed in range(1, 4):
            for number, (connection, snapshots) in enumerate(trainers):
                snapshots.take(tiny_model(seed=10 * seed + number))
                assert connection.bring(snapshots) == snapshots.name
    assert [text.count("shared.yaml has weights of another trainer") for text in caplog.messages] == [1, 1]


def test_an_upload_goes_on_to_its_end_when_its_job_is_cancelled_which_then_ends_at_once(snapshots, monkeypatch):
    whole = snapshots.open_for("")

    class File(io.BytesIO):
        def read(self, size=-1):
            connection.cancel()
            return super().read(size)

    with rollout_server() as connection, whole[1] as file:
        told = iter([(whole[0], File(file.read()))])
        monkeypatch.setattr(snapshots, "open_for", lambda has: next(told, None))
        assert connection.bring(snapshots) == whole[0]
        assert connection.status().weights == whole[0]
        with pytest.raises(Cancelled):
            connection.sample(request(whole[0]), lambda step: None)


@pytest.mark.parametrize("lines", [steps(lambda done: 600), [b" "] * 600], ids=["whole lines", "byte by byte"])
def test_a_cancelled_request_ends_at_the_next_piece(lines):
    with rollout_server(stand_in(*lines, pause_s=0.05)) as connection, pytest.raises(Cancelled):
        connection.sample(request("b"), lambda step: connection.cancel())
