"""A proxy that no HTTP client can use is told in one line wherever a client would be made."""

import sys

import httpx2
import pytest

from codezero.doctor import reach
from codezero.errors import EvaluatorError, LedgerError, ModelError
from codezero.evaluate.backends.served import JUDGING
from codezero.ledger.http import Server
from codezero.llm.client import JsonClient
from codezero.llm.sources import hub_errors
from codezero.publish.upload import upload
from codezero.rollouts.client import RolloutServer, ServerFailed
from codezero.rollouts.rollout_file import RolloutFile
from codezero.runtime import proxies
from codezero.tasks.hub import HubUnreachable, within

SOCKS = "a proxy of ALL_PROXY or HTTPS_PROXY is a SOCKS one: name an http:// proxy, unset it, or `.* install socksio`"


@pytest.fixture
def socks(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setitem(sys.modules, "socksio", None)  # as if it were not installed


def test_a_proxy_is_usable_or_it_is_said_what_to_do(socks, monkeypatch):
    assert "SOCKS" in proxies.why_unusable()
    monkeypatch.setenv("ALL_PROXY", "socks9://me:hunter2@127.0.0.1:1")
    assert "correct it" in proxies.why_unusable()
    assert "hunter2" not in proxies.why_unusable()
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:3128")
    assert proxies.why_unusable() == ""


def test_servers_elsewhere_are_refused_with_the_proxy(socks):
    with pytest.raises(LedgerError, match=SOCKS):
        Server("https://rpc.example", what="RPC", setting="ledger.rpc_url", timeout_s=1)
    with pytest.raises(EvaluatorError, match=SOCKS):
        JsonClient("https://judge.example", JUDGING, timeout_s=1, retries=0, at_once=1)
    with pytest.raises(ServerFailed, match=SOCKS):
        RolloutServer(RolloutFile(url="https://sampler.example", token="t" * 32), "sampler.yaml")


def test_servers_of_this_machine_need_no_proxy(socks):
    Server("http://127.0.0.1:8545", what="RPC", setting="ledger.rpc_url", timeout_s=1)
    JsonClient("http://127.0.0.1:11434", JUDGING, timeout_s=1, retries=0, at_once=1)


def test_a_download_or_push_tells_the_proxy(socks):
    with pytest.raises(ModelError, match=SOCKS), hub_errors("the file"):
        pytest.fail("nothing is asked")
    answer = upload({"repo": "me/model"})
    assert answer.status is None
    assert "SOCKS" in answer.detail


def test_reading_a_dataset_tells_the_proxy(socks):
    with pytest.raises(HubUnreachable, match=f"asking the hub failed \\({SOCKS}"):
        within(5.0, "asking the hub", lambda: httpx2.get("https://huggingface.co"))


def test_doctor_tells_the_proxy(socks):
    assert "SOCKS" in (reach.why_unreachable(None, "hub", "https://huggingface.co") or "")
