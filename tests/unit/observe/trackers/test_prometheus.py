import logging
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from codezero.observe.trackers.metrics import batch_metrics, round_metrics
from codezero.observe.trackers.prometheus import Prometheus
from codezero.observe.trackers.threads import TrackerThreads
from tests.ports import free_port
from tests.unit.observe.test_batches import report as batch_report
from tests.unit.observe.test_monitor import report


@pytest.fixture
def served():
    port = free_port()
    tracker = Prometheus("127.0.0.1", port)
    tracker.open()
    yield tracker, f"http://127.0.0.1:{port}/metrics"
    tracker.close()


def scrape(url):
    """Samples by name and labels, and families by name."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    values = {(sample.name, *sorted(sample.labels.items())): sample.value for sample in samples}
    assert len(values) == len(samples), "a sample is there twice"
    return values, {family.name: family for family in families}


def test_a_round_by_http(served):
    tracker, url = served
    tracker.log(12, round_metrics(report(12)))
    values, families = scrape(url)
    assert values["codezero_round",] == 12
    assert values["codezero_reward_mean",] == 0.5
    assert values["codezero_reward_part_mean", ("part", "correct")] == 0.3
    assert values["codezero_stage_seconds", ("stage", "learn")] == 41
    assert values["codezero_generated_tokens_total",] == 512
    assert values["codezero_dropped_total", ("reason", "zero_advantage")] == 1
    assert values["codezero_trouble", ("of", "ledger")] == 0
    assert values["codezero_last_report_timestamp_seconds",] > 1.7e9
    assert all(name.startswith("codezero_") and family.documentation for name, family in families.items())
    assert families["codezero_generated_tokens"].type == "counter"
    assert families["codezero_round"].type == "gauge"


def test_counts_add_up_and_what_a_round_lacks_is_absent_and_not_old(served):
    tracker, url = served
    tracker.log(1, round_metrics(report(1)))
    tracker.log(2, round_metrics(report(2, loss=None, skipped="no scored groups", dropped={})))
    values, _ = scrape(url)
    assert values["codezero_rounds_total",] == 2
    assert values["codezero_generated_tokens_total",] == 1024
    assert values["codezero_dropped_total", ("reason", "zero_advantage")] == 1
    assert ("codezero_train_loss",) not in values
    assert values["codezero_train_updated",] == 0


def test_before_the_first_round_there_is_a_page(served):
    values, _ = scrape(served[1])
    assert values == {("codezero_last_report_timestamp_seconds",): 0}


def test_a_batch_by_http(served):
    tracker, url = served
    tracker.log(1, batch_metrics(batch_report()))
    values, _ = scrape(url)
    assert values["codezero_proposer_level",] == 2
    assert values["codezero_proposer_success_ratio", ("level", "1")] == 0.9
    assert values["codezero_proposer_written_total",] == 4


def test_peers_text_reaches_nobody(served):
    tracker, url = served
    hostile = 'Qm"} 1\nevil_metric 1\n'
    tracker.log(1, round_metrics(report(1, external_groups={hostile: 1}, network=hostile, market=hostile)))
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
        assert b"evil" not in answer.read()


def test_a_port_in_use_warns_once_and_the_rounds_go_on(caplog):
    caplog.set_level(logging.WARNING, "codezero")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with TrackerThreads([Prometheus("127.0.0.1", port)], close_s=60.0) as trackers:
            for number in (1, 2, 3):
                trackers.log(number, round_metrics(report(number)))
    (text,) = [record.message for record in caplog.records]
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use): give another port, or 0" in text


def test_the_port_is_free_again_after_the_end():
    port = free_port()
    for _ in range(2):
        tracker = Prometheus("127.0.0.1", port)
        tracker.open()
        tracker.close()
    with pytest.raises(urllib.error.URLError):
        scrape(f"http://127.0.0.1:{port}/metrics")
