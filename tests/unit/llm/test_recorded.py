"""When a step of decoding is recorded, with a stand-in for CUDA graphs: tests/e2e/test_gpu.py has real ones."""

import logging
from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import nn

from codezero.llm.recorded import Recorded

CUDA = torch.device("cuda")


class Graph:
    def __init__(self):
        self.replayed = 0

    def replay(self):
        self.replayed += 1


@pytest.fixture
def graphs(monkeypatch):
    """The graphs that were begun."""
    made = []

    @contextmanager
    def recording(graph, capture_error_mode):
        assert capture_error_mode == "thread_local"
        made.append(graph)
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", recording)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: None)
    return made


def test_the_second_call_is_recorded_and_replayed_from_then_on(graphs):
    calls, recorded = [], Recorded(nn.Linear(1, 1), CUDA)
    for _ in range(4):
        recorded(lambda: calls.append(1))
    assert len(calls) == 2  # the first one, and while it was recorded, which computes nothing
    assert [graph.replayed for graph in graphs] == [3]


def test_a_cpu_calls_each_time(graphs):
    calls, recorded = [], Recorded(nn.Linear(1, 1), torch.device("cpu"))
    for _ in range(4):
        recorded(lambda: calls.append(1))
    assert (len(calls), graphs) == (4, [])


def test_a_model_that_cannot_be_recorded_is_called_and_not_tried_again(graphs, caplog):
    caplog.set_level(logging.INFO)
    model, calls = nn.Linear(1, 1), []

    def waiting():
        calls.append(len(graphs))
        if calls.count(1) == 1 and len(calls) == 2:
            raise RuntimeError("operation not permitted when stream is capturing")

    for _ in range(2):
        recorded = Recorded(model, CUDA)
        for _ in range(3):
            recorded(waiting)
    assert len(graphs) == 1
    assert len(calls) == 7  # six, and the one that failed in the recording
    assert len([text for text in caplog.messages if "cannot be recorded" in text]) == 1
    other = Recorded(nn.Linear(1, 1), CUDA)
    for _ in range(2):
        other(lambda: None)
    assert len(graphs) == 2


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: out of memory")]
)
def test_no_memory_for_a_recording_is_told_as_such(graphs, error):
    model = nn.Linear(1, 1)
    recorded = Recorded(model, CUDA)
    recorded(lambda: None)

    def full():
        raise error

    with pytest.raises(type(error), match="out of memory"):
        recorded(full)
    again = Recorded(model, CUDA)  # with half as many rows
    for _ in range(2):
        again(lambda: None)
    assert graphs[-1].replayed == 1
