"""Servers that a node asks, as real ones on loopback: away, silent, of another kind, with another clock."""

import datetime
import email.utils
import json
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from codezero.doctor import chain, machine, reach, services, swarm
from codezero.identity.key import Identity
from codezero.rollouts import rollout_file
from codezero.rollouts.rollout_file import RolloutFile
from tests import local_http
from tests.commands import executable
from tests.unit.doctor.cases import case_of, told

PEER = Identity.generate().peer_id


def answering(body=b"{}", status=200, ahead_s=0.0, **headers):
    """An HTTP server with one answer to everything, whose clock is ahead of ours."""

    class Handler(local_http.Handler):
        def do_GET(self):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def date_time_string(self, timestamp=None):
            return email.utils.formatdate(time.time() + ahead_s, usegmt=True)

    return local_http.serving(Handler)


@contextmanager
def listening(says=b""):
    """A port that takes connections and says only this."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        kept = []

        def take():
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    kept[-1].sendall(says)

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        for connection in kept:
            connection.close()


KEPT = []


def closed_port():
    """A port at which nobody listens, and nobody else can begin to."""
    KEPT.append(socket.socket())
    KEPT[-1].bind(("127.0.0.1", 0))
    return KEPT[-1].getsockname()[1]


def test_why_nobody_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)
    case = case_of(tmp_path)
    assert reach.why_unreachable(case, "x", f"http://127.0.0.1:{closed_port()}/") == (
        "127.0.0.1 refuses the connection: nothing listens there"
    )
    with listening(b"SSH-2.0-OpenSSH\r\n\r\n") as port:
        assert reach.why_unreachable(case, "x", f"http://127.0.0.1:{port}/").startswith("127.0.0.1: ")
        assert "certificate" in reach.why_unreachable(case, "x", f"https://127.0.0.1:{port}/")
    assert "is not found (DNS)" in reach.why_unreachable(case, "x", "http://no-such-host.invalid/")
    assert reach.why_unreachable(case, "x", "nonsense") == "its URL has no host"
    monkeypatch.setattr(reach, "TIMEOUT_S", 1.0)
    with listening() as port:
        assert reach.why_unreachable(case, "x", f"http://127.0.0.1:{port}/") == "127.0.0.1 does not answer within 1 s"
    assert case.skews == []


def test_any_answer_will_do_and_tells_the_time(tmp_path):
    case = case_of(tmp_path)
    for status in (200, 302, 401, 405, 500):
        with answering(status=status, ahead_s=7200.0) as url:
            assert reach.why_unreachable(case, "RPC", url + "/v2/secretkey1234567890") is None
    assert {who for who, _ in case.skews} == {"RPC at 127.0.0.1"}
    assert all(7100 < skew < 7202 for _, skew in case.skews)


@pytest.mark.parametrize(
    "told_time", ["", "yesterday", "Sat, 31 Nov 2026 00:00:00 GMT", "x" * 5000, "Mon, 1 Jan 99999 00:00:00 GMT"]
)
def test_a_time_that_is_none(told_time):
    assert reach.skew_of(told_time, "0", 0.0) is None


def test_a_cached_answer_was_right_when_it_was_made():
    now = datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc).timestamp()
    told_time = email.utils.formatdate(now - 500, usegmt=True)
    assert reach.skew_of(told_time, "500", now) == pytest.approx(0.5)
    assert reach.skew_of(told_time, "nonsense", now) == pytest.approx(-499.5)


@pytest.mark.parametrize(
    ("skew", "network", "severity", "text"),
    [
        (0.4, "native", "ok", "within 3 s of"),
        (-20.0, "native", "info", "20 s ahead of RPC at x"),
        (20.0, "genrl", "warning", "20 s behind RPC at x"),
        (100.0, "native", "error", "others drop what this node publishes"),
        (-100.0, "alone", "warning", "100 s ahead of"),
    ],
)
def test_a_clock_that_is_wrong(tmp_path, skew, network, severity, text):
    case = case_of(tmp_path, f"swarm={network}", PATH="")
    case.skews.append(("RPC at x", skew))
    (found,) = told(machine.check_clock(case), severity)
    assert text in found


def test_one_server_with_a_wrong_clock_is_not_believed_against_two(tmp_path):
    case = case_of(tmp_path, "swarm=native", PATH="")
    case.skews.extend([("a", 0.1), ("b", 9000.0), ("c", -0.3)])
    assert told(machine.check_clock(case), "ok")


@pytest.mark.parametrize(("said", "expected"), [("yes", True), ("no", False), ("", None), ("exit", None)])
def test_whether_the_system_keeps_its_clock(tmp_path, said, expected):
    executable(tmp_path / "timedatectl", f"#!/bin/sh\n{'exit 1' if said == 'exit' else f'echo {said}'}\n")
    case = case_of(tmp_path, PATH=str(tmp_path))
    assert machine.ntp(case) is expected
    assert any("(NTP)" in text for text in told(machine.check_clock(case), "info")) is (expected is False)


def hub(tmp_path, *settings, **environment):
    return list(services.check_hub(case_of(tmp_path, *settings, **environment)))


def test_a_hub_that_is_away_and_what_that_means(tmp_path):
    away = {"HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}"}
    folder = tmp_path / "model"
    folder.mkdir()
    assert "it is not needed" in told(hub(tmp_path, "tasks=builtin", f"model.name={folder}", **away), "info")[0]
    (data,) = told(hub(tmp_path, "tasks=mbpp", f"model.name={folder}", **away), "warning")
    assert "not available from it: the dataset mbpp" in data
    (weights,) = told(hub(tmp_path, "tasks=builtin", **away), "warning")
    assert "the weights of Qwen2.5-Coder-0.5B-Instruct; weights are tried from the package index" in weights
    assert "so no node can start" in told(hub(tmp_path, "tasks=builtin", "model.name=org/model", **away), "error")[0]
    off = hub(tmp_path, "tasks=mbpp", HF_HUB_OFFLINE="1")
    assert "switched off by HF_HUB_OFFLINE" in told(off, "info")[0]


@pytest.mark.parametrize("endpoint", ["hf-mirror.com", "127.0.0.1:8080"])
def test_a_hub_s_address_without_a_scheme_is_told_as_such(tmp_path, endpoint):
    (fault,) = told(hub(tmp_path, "tasks=mbpp", f"model.name={tmp_path}", HF_ENDPOINT=endpoint), "warning")
    assert fault.startswith("hub: HF_ENDPOINT has no https:// or http:// in front | ")
    assert fault.endswith(" | write it as https://HOST, or unset it")


def test_a_hub_that_answers_and_an_index_that_does_not(tmp_path):
    with answering() as url:
        assert told(hub(tmp_path, "tasks=mbpp", HF_ENDPOINT=url), "ok") == ["hub: 127.0.0.1 answers |  | "]
    index = f"http://user:hunter2@127.0.0.1:{closed_port()}/simple"
    (fault,) = told(services.check_index(case_of(tmp_path, PIP_INDEX_URL=index)), "warning")
    assert "cannot be downloaded from it" in fault
    assert "hunter2" not in fault
    assert list(services.check_index(case_of(tmp_path, f"model.name={tmp_path}"))) == []


def test_each_bootnode_is_told_with_its_own_reason(monkeypatch):
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)
    with listening(swarm.HELLO) as good, listening(b"HTTP/1.1 400 Bad Request\r\n") as other, listening() as silent:
        at = {name: f"/ip4/127.0.0.1/tcp/{port}/p2p/{PEER}" for name, port in
              (("good", good), ("other", other), ("silent", silent), ("closed", closed_port()))}  # fmt: skip
        at["name"] = f"/dns4/no-such-host.invalid/tcp/4001/p2p/{PEER}"
        at["quic"] = f"/ip4/127.0.0.1/udp/4001/quic-v1/p2p/{PEER}"
        at["none"] = "/onion/x/p2p/y"
        found = {name: swarm.why_not(address) for name, address in at.items() if name != "silent"}
        assert found["good"] is None
        assert found["other"] == "something other than libp2p answers there"
        assert found["closed"].endswith("the address is of this machine itself, so it is right only there")
        assert "(DNS)" in found["name"]
        assert "over UDP" in found["quic"]
        assert found["none"].startswith("it cannot be dialled")
        findings = list(swarm.dialled([at["good"], at["closed"]], "swarm.bootnodes"))
        monkeypatch.setattr(reach, "TIMEOUT_S", 0.5)
        assert "down, or a firewall" in swarm.why_not(at["silent"])
    assert told(findings, "ok") == [f"bootnode: {at['good']} answers |  | "]
    assert "the node joins through the others" in told(findings, "warning")[0]


def test_a_bootnode_that_is_not_tried_is_not_told_as_one_that_does_not_answer():
    quic, closed = f"/ip4/127.0.0.1/udp/4001/quic-v1/p2p/{PEER}", f"/ip4/127.0.0.1/tcp/{closed_port()}/p2p/{PEER}"
    findings = list(swarm.dialled([quic, closed], "swarm.bootnodes"))
    assert told(findings, "info") == [f"bootnode: {quic}: it is dialled over UDP, which is not tried here |  | "]
    assert len(told(findings, "warning")) == 1


def test_none_of_them_answers(tmp_path):
    address = f"/ip4/127.0.0.1/tcp/{closed_port()}/p2p/{PEER}"
    case = case_of(tmp_path, "swarm=native", f"swarm.bootnodes=[{address}]")
    findings = list(swarm.check_bootnodes(case))
    assert "none of 1 bootnode answers | the node trains alone" in told(findings, "warning")[1]


def test_a_swarm_that_is_none_or_ones_own(tmp_path):
    assert "trains alone" in told(swarm.check_bootnodes(case_of(tmp_path, "swarm=alone")), "info")[0]
    assert "hosts a new swarm" in told(swarm.check_bootnodes(case_of(tmp_path, "swarm=native")), "info")[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ["swarm=native", "tasks=mbpp"],
            "with their tests: built-in problems, mbpp",
        ),
        (["swarm=genrl"], "wrong answers (swarm.tasks=any; known is safe from these) | one peer of eight"),
    ],
)
def test_which_tasks_of_peers_are_trained_on(tmp_path, settings, words):
    (found,) = [one for one in told(swarm.check_bootnodes(case_of(tmp_path, *settings)), "info") if "tasks of" in one]
    assert words in found


def test_a_real_daemon_answers_as_one(tmp_path):
    from tests.network.nodes import live_swarm

    with live_swarm(tmp_path) as nodes:
        node = nodes.node("a")
        assert swarm.why_not(node.address) is None


def proxied(tmp_path, *settings, **environment):
    return list(swarm.check_proxies(case_of(tmp_path, *settings, **environment)))


def test_proxies_that_take_over_this_network(tmp_path):
    judge = ("evaluator=ollama", "evaluator.model=m", "evaluator.url=http://ollama:11434")
    found = proxied(tmp_path, *judge, HTTP_PROXY="http://me:hunter2@proxy.example:3128")
    (fault,) = told(found, "warning")
    assert "HTTP_PROXY at proxy.example:3128; NO_PROXY does not name ollama" in fault
    assert "export NO_PROXY=localhost,127.0.0.1,ollama" in fault
    assert "hunter2" not in fault
    spared = proxied(tmp_path, *judge, http_proxy="proxy:3128", no_proxy="localhost, ollama")
    assert "hub, RPC and judge service are asked through it" in told(spared, "info")[0]
    private = proxied(tmp_path, *judge[:2], "evaluator.url=http://192.168.1.5:11434", ALL_PROXY="socks5://p:1")
    assert told(private, "warning")


def test_hosts_are_added_to_those_that_the_proxies_spare_already(tmp_path):
    judge = ("evaluator=ollama", "evaluator.model=m", "evaluator.url=http://ollama:1")
    two = (*judge, "proposer.model=m", "proposer.url=http://writer:1")
    (fault,) = told(proxied(tmp_path, *two, HTTP_PROXY="http://p:1", NO_PROXY="intranet.example"), "warning")
    assert "NO_PROXY does not name ollama, writer |" in fault
    assert fault.endswith("| export NO_PROXY=intranet.example,localhost,127.0.0.1,ollama,writer")
    (fault,) = told(proxied(tmp_path, *two, HTTP_PROXY="http://p:1", no_proxy="localhost"), "warning")
    assert fault.endswith("| export no_proxy=localhost,127.0.0.1,ollama,writer")


def test_a_rollout_server_of_this_network_is_one_that_a_proxy_takes_over(tmp_path):
    file = tmp_path / "pc.yaml"
    rollout_file.write(file, RolloutFile(url="http://192.168.1.5:7070", token="x"))
    settings = ("rollout.engine=remote", f"rollout.servers=[{tmp_path / 'none.yaml'},{file}]")
    (fault,) = told(proxied(tmp_path, *settings, HTTP_PROXY="http://p:1"), "warning")
    assert "NO_PROXY does not name 192.168.1.5" in fault


def test_proxies_that_spare_not_even_this_machine(tmp_path):
    assert "asks this machine directly anyway" in told(proxied(tmp_path, HTTPS_PROXY="http://p:1"), "info")[0]
    assert told(proxied(tmp_path), "ok")


def test_a_judge_service_that_is_away_or_none(tmp_path):
    url = f"http://127.0.0.1:{closed_port()}"
    (fault,) = told(services.check_judge(case_of(tmp_path, "judge.enabled=true", f"judge.url={url}")), "warning")
    assert "nothing listens there | rounds have no judge score" in fault
    with answering(b"<html>") as url:
        (fault,) = told(services.check_judge(case_of(tmp_path, "judge.enabled=true", f"judge.url={url}")), "warning")
        assert "a reply that its protocol does not have" in fault
    clue = b'{"game_id": -1, "clue_id": 0, "rounds_remaining": 0}'
    with answering(clue) as url:
        found = services.check_judge(case_of(tmp_path, "judge.enabled=true", f"judge.url={url}"))
        assert told(found, "ok") == ["judge service: it answers; no game is open |  | "]
    assert list(services.check_judge(case_of(tmp_path))) == []


OLLAMA = ("evaluator=ollama", "evaluator.model=qwen")
OPENAI = ("evaluator=openai", "evaluator.model=qwen")


@pytest.mark.parametrize(
    ("settings", "body", "status", "severity", "text"),
    [
        (OLLAMA, b'{"models": [{"name": "qwen:latest"}]}', 200, "ok", "serves qwen"),
        (OLLAMA, b'{"models": [{"name": "llama3"}]}', 200, "error", "does not serve qwen, but llama3"),
        (OLLAMA, b'{"models": []}', 200, "info", "lists no models"),
        (OLLAMA, b"<html>proxy</html>", 502, "error", "HTTP 502"),
        (OPENAI, b'{"data": [{"id": "qwen"}]}', 200, "ok", "serves qwen"),
        (OPENAI, b"{}", 401, "error", "check OPENAI_API_KEY"),
    ],
)
def test_a_judge_behind_a_server(tmp_path, settings, body, status, severity, text):
    with answering(body, status) as url:
        findings = list(services.check_evaluator(case_of(tmp_path, *settings, f"evaluator.url={url}")))
    assert text in told(findings, severity)[0]


def test_a_judge_behind_a_server_that_is_away(tmp_path):
    url = f"http://127.0.0.1:{closed_port()}"
    (fault,) = told(services.check_evaluator(case_of(tmp_path, *OLLAMA, f"evaluator.url={url}")), "error")
    assert "nothing listens there | no node can start: it asks its judge first" in fault
    (fault,) = told(services.check_evaluator(case_of(tmp_path, "proposer.model=m", f"proposer.url={url}")), "error")
    assert "no proposer can start" in fault


def test_judges_of_this_machine(tmp_path, monkeypatch):
    assert list(services.check_evaluator(case_of(tmp_path))) == []
    executing = case_of(tmp_path, "evaluator.backend=execution")
    assert "RUNS what models wrote" in told(services.check_evaluator(executing), "warning")[0]
    monkeypatch.setattr(services, "is_installed", lambda package: False)
    (fault,) = told(services.check_evaluator(case_of(tmp_path, "evaluator=llama_cpp")), "error")
    assert "xllamacpp is not installed" in fault
    (fault,) = told(services.check_evaluator(case_of(tmp_path, "rollout.engine=vllm")), "error")
    assert "vllm is not installed" in fault


def modal(tmp_path, url, *settings):
    given = ("ledger=modal", f"ledger.proxy_url={url}", *settings)
    return list(chain.check_sign_in(case_of(tmp_path, *given)))


def test_a_sign_in_app_that_is_away_cut_off_or_another_program(tmp_path):
    assert "rewards wait" in told(modal(tmp_path, f"http://localhost:{closed_port()}"), "warning")[0]
    with answering(b'{"alchemy": "unreachable: getaddrinfo ENOTFOUND"}') as url:
        (fault,) = told(modal(tmp_path, url.replace("127.0.0.1", "localhost")), "warning")
        assert "Alchemy is unreachable: getaddrinfo ENOTFOUND" in fault
    with answering(b'{"alchemy": "reachable"}') as url:
        assert "reaches Alchemy" in told(modal(tmp_path, url), "ok")[0]
    with answering(b"<html>grafana</html>") as url:
        assert "is another program's" in told(modal(tmp_path, url), "error")[0]


def session(tmp_path, deadline, activated=True):
    digest = "0x" + "00" * 58 + f"{int(deadline):012x}" + "ff" * 20
    (tmp_path / "login").mkdir(exist_ok=True)
    key = {"privateKey": "0x" + "5e" * 32, "activated": activated, "deferredActionDigest": digest}
    (tmp_path / "login" / "userApiKey.json").write_text(json.dumps({"org": [key, {"activated": False}]}))


@pytest.mark.parametrize(
    ("left_s", "severity", "text"),
    [
        (62 * 86400 + 60, "ok", "it holds for another 62 days"),
        (3 * 86400 + 60, "warning", "it expires in 3 days"),
        (-3630, "warning", "it expired 1 h 0 min ago"),
    ],
)
def test_a_session_key_and_its_end(tmp_path, left_s, severity, text):
    session(tmp_path, time.time() + left_s + 20)
    found = [one for one in told(modal(tmp_path, "http://127.0.0.1:9"), severity) if one.startswith("session key")]
    assert text in found[0]
    assert "5e5e" not in "".join(found)


def test_session_keys_without_an_end_or_of_no_form(tmp_path):
    session(tmp_path, 0)
    assert not any("session key" in text for text in told(modal(tmp_path, "http://127.0.0.1:9"), "warning"))
    (tmp_path / "login" / "userApiKey.json").write_text('{"org": 5}')
    assert any("is damaged" in text for text in told(modal(tmp_path, "http://127.0.0.1:9"), "error"))
    assert chain.deadline_s("0xzz") == 0.0
    assert chain.deadline_s("") == 0.0


def test_a_wallets_passphrase(tmp_path):
    wallet = ("ledger=wallet", "ledger.rpc_url=http://127.0.0.1:9", f"ledger.contract_address=0x{'11' * 20}")
    assert "neither" in told(chain.check_sign_in(case_of(tmp_path, *wallet)), "info")[0]
    assert told(chain.check_sign_in(case_of(tmp_path, *wallet, CODEZERO_WALLET_PASSPHRASE="x")), "ok")
    missing = case_of(tmp_path, *wallet, f"ledger.passphrase_file={tmp_path / 'nothing'}")
    assert "cannot be read" in told(chain.check_sign_in(missing), "error")[0]


def pushed(tmp_path, url, **environment):
    return list(services.check_push(case_of(tmp_path, "push.enabled=true", f"push.endpoint={url}", **environment)))


@pytest.mark.parametrize(
    ("status", "body", "severity", "text"),
    [
        (401, b"{}", "warning", "the hub refuses the token"),
        (200, b'{"name": "a", "auth": {"accessToken": {"role": "read"}}}', "warning", "the token may only read"),
        (200, b'{"name": "a", "auth": {"accessToken": {"role": "write"}}}', "ok", "which may write"),
        (200, b'{"auth": {"accessToken": {"role": "fineGrained"}}}', "ok", "takes the token"),
        (200, b"<html>", "warning", "could not be found out"),
        (503, b"{}", "warning", "could not be found out"),
    ],
)
def test_a_token_for_pushing(tmp_path, status, body, severity, text):
    with answering(body, status) as url:
        findings = pushed(tmp_path, url, HUGGINGFACE_ACCESS_TOKEN="hf_secret")
    assert text in told(findings, severity)[0]
    assert "hf_secret" not in str(findings)


def test_no_token_and_a_hub_that_is_away(tmp_path):
    assert "needs a token" in told(pushed(tmp_path, "http://127.0.0.1:9", HUGGINGFACE_ACCESS_TOKEN="None"), "error")[0]
    away = pushed(tmp_path, f"http://127.0.0.1:{closed_port()}", HF_TOKEN="hf_secret")
    assert "nothing listens there | nothing is pushed until it answers" in told(away, "warning")[0]
    assert list(services.check_push(case_of(tmp_path))) == []


def test_programs_that_are_started_see_no_token(tmp_path):
    case = case_of(tmp_path, HF_TOKEN="hf_secret", HUGGINGFACE_ACCESS_TOKEN="hf_secret", OTHER="x")
    assert "hf_secret" not in case.child_environment.values()
    assert case.child_environment["OTHER"] == "x"
