import subprocess
from types import SimpleNamespace

import pytest

from benchmarks import rollout, transfer

SERVER = ("sh", "-c", "echo '(Ctrl-C ends it)'; exec sleep 600")


def test_a_node_that_fails_beside_a_rollout_server_ends_the_benchmark(tmp_path, monkeypatch):
    def failing(*settings):
        raise subprocess.CalledProcessError(1, "codezero run")

    started, popen = [], subprocess.Popen

    def start(command, **options):
        started.append(popen(SERVER, **options))
        return started[0]

    monkeypatch.setattr(rollout.subprocess, "Popen", start)
    monkeypatch.setattr(rollout, "played", failing)
    with pytest.raises(subprocess.CalledProcessError):
        rollout.rounds(SimpleNamespace(state=tmp_path), "remote")
    assert started[0].returncode == -15


def test_a_difference_after_a_stop_is_to_weights_that_the_server_has(monkeypatch):
    brought = []
    monkeypatch.setattr(transfer.Pair, "_weights", lambda self: iter(()))
    monkeypatch.setattr(transfer.Pair, "_differ", lambda self, now: 0)
    pair = object.__new__(transfer.Pair)
    pair._lora, pair._began, pair._work = False, False, None
    pair._own = SimpleNamespace(learn=lambda work: None, policy=SimpleNamespace(model=None))
    pair._snapshots = {kind: SimpleNamespace(name=kind.value, take=lambda model: None) for kind in transfer.Transfer}
    for name in ("_aside", "_server"):
        setattr(pair, name, SimpleNamespace(sent_bytes=0, bring=lambda one: brought.append(one.name)))
    pair.measure("update 2")
    pair.measure("update 3")
    assert brought == ["full", "auto", "auto", "auto"]
