"""Judge service and market as a configuration wants them."""

import io
import threading
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from codezero.config.load import load_config
from codezero.errors import ConfigError, LedgerError
from codezero.ledger.build import load_key
from codezero.llm.load import LoadedModel
from codezero.runtime.console import Console
from codezero.services.build import Services
from codezero.services.judge.client import JudgeServiceError

ADDRESS = "0x" + "1" * 40
NOWHERE = "http://127.0.0.1:9"
DELIVERIES = []
"""What the ledger's thread was asked to call."""
ON_CHAIN = [f"ledger.rpc_url={NOWHERE}", f"ledger.contract_address={ADDRESS}", "ledger.chain_id=31337"]
MARKET = ["market.enabled=true", f"market.contract_address={ADDRESS}", f"judge.url={NOWHERE}"]


def started(tmp_path, stack, *settings):
    """The services, and what they said."""
    shown = io.StringIO()
    config = load_config([*settings, f"tracking.log_dir={tmp_path}"])
    account = SimpleNamespace(address=ADDRESS)
    submitter = SimpleNamespace(sender=account, also=DELIVERIES.append, wake=lambda: None)
    services = Services(config, SimpleNamespace(submitter=submitter), tmp_path, "QmPeer", Console(shown))
    policy = LoadedModel(name="tiny", model=None, tokenizer=None, end_ids=(0,), context_length=64)
    services.start(policy, threading.Lock(), stack)
    return services, shown.getvalue()


def threads():
    return {thread.name for thread in threading.enumerate()} & {"examination", "market"}


def test_nothing_runs_unless_it_is_asked_for(tmp_path):
    with ExitStack() as stack:
        services, shown = started(tmp_path, stack)
        services.begin(1)
        assert services.report("unchanged") == "unchanged"
        assert (shown, threads(), list(tmp_path.iterdir())) == ("", set(), [])


def test_both_run_until_the_node_ends(tmp_path):
    with ExitStack() as stack:
        _, shown = started(
            *(tmp_path, stack, "ledger=wallet", *ON_CHAIN, *MARKET, "judge.enabled=true"),
            *("market.max_bet=2.5", "market.fraction=0.004"),
        )
        assert threads() == {"examination", "market"}
        assert not DELIVERIES.pop()()  # nothing is to be sent
    assert shown.splitlines() == [
        f"judge service: a question a round from {NOWHERE}",
        f"market: {ADDRESS} on chain 31337, bets 0.4% of the tokens held over a game's rounds, 2.50 tokens a bet at "
        "most",
    ]
    assert threads() == set()


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ("market.max_bet=lots", ConfigError, "market.max_bet='lots' is not an amount"),
        ("market.max_bet=-1", ConfigError, "market.max_bet='-1' is not an amount"),
        (f"market.contract_address=0x{'z' * 40}", LedgerError, r"market\.contract_address: '0xz+' is not an address"),
        ("judge.url=ftp://x", JudgeServiceError, "judge.url is not a plain server address: .* or query$"),
    ],
)
def test_what_cannot_be_is_told_at_the_start(tmp_path, setting, error, message):
    with ExitStack() as stack, pytest.raises(error, match=message):
        started(tmp_path, stack, "ledger=wallet", *ON_CHAIN, *MARKET, setting)


def test_a_ledger_without_a_key_asks_for_none():
    assert load_key(load_config([]).ledger) is None
    assert load_key(load_config(["ledger=modal"]).ledger) is None
