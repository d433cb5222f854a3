"""The benchmarks run and print their tables. Nothing here looks at how long anything took."""

import re

import pytest
import torch

from benchmarks import linear, measure, reference
from benchmarks import round as round_benchmark
from codezero.llm import onednn
from codezero.tasks.problems import load_problems
from tests.builders import save_tiny, tiny_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_round_prints_every_side_and_its_ratios(tmp_path, capsys):
    folder = save_tiny(tmp_path)
    round_benchmark.main(["--quick", "--generations", "2", "3", "--model", folder])
    printed = capsys.readouterr().out
    assert "machine: " in printed
    for side in ("reference", "codezero", "codezero, equal steps", r"codezero, equal steps\+moments"):
        rows = re.findall(rf"^{side} +[\d.].* (\d+)$", printed, re.MULTILINE)
        assert rows == [str(2 * 2 * 16), str(2 * 3 * 16)]
    assert len(re.findall(r"codezero.*: solve .*x faster .*, learn .*, peak .*target", printed)) == 6


def test_round_measures_one_side_alone_and_in_the_order_asked(tmp_path, capsys):
    folder = save_tiny(tmp_path)
    round_benchmark.main(["--quick", "--generations", "2", "--model", folder, "--sides", "codezero"])
    printed = capsys.readouterr().out
    assert "codezero, equal steps" in printed
    assert "faster" not in printed


def test_training_texts_are_the_wanted_tokens_again():
    work = round_benchmark.Work(tasks=tuple(p.task for p in load_problems(1, 1)[:2]), num_generations=3, num_tokens=7)
    tokenizer = tiny_tokenizer()
    texts = round_benchmark.training_texts(tokenizer, work)
    assert [len(group) for group in texts] == [3, 3]
    assert {len(tokenizer(text).input_ids) for group in texts for text in group} == {7}
    assert len({text for group in texts for text in group}) == 6


def test_every_attempt_has_an_advantage():
    for num_generations in range(2, 17):
        work = round_benchmark.Work(tasks=(), num_generations=num_generations, num_tokens=1)
        assert sum(work.rewards) / num_generations not in work.rewards


def test_reference_learns_and_its_losses_are_those_of_ratio_one(tmp_path):
    trainer = reference.WrittenOut(save_tiny(tmp_path), 2)
    before = [weight.clone() for weight in trainer.model.parameters()]
    chats = [[{"role": "user", "content": "hi"}]]
    losses = trainer.train(chats, [["abcd", "efgh"]], torch.tensor([[1.0, 0.0]]))
    assert losses == [pytest.approx(0.0, abs=1e-5)]  # the two advantages cancel where lengths are equal
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_reference_completions_have_the_wanted_length(tmp_path):
    trainer = reference.WrittenOut(save_tiny(tmp_path), 3)
    seen = []
    generate = trainer.model.generate
    trainer.model.generate = lambda *args, **kwargs: seen.append(generate(*args, **kwargs)) or seen[-1]
    chats = [[{"role": "user", "content": text}] for text in ("hi", "hello there")]
    texts = trainer.generate(chats, 5)
    assert [len(group) for group in texts] == [3, 3]
    longest = len(trainer.tokenizer.apply_chat_template(chats[1], add_generation_prompt=True).input_ids)
    assert [tuple(rows.shape) for rows in seen] == [(2, longest + 5)] * 3


@pytest.mark.parametrize("peak", [measure._SampledPeak, measure._KernelPeak])
def test_peak_memory_counts_what_is_already_gone(peak):
    if peak is measure._KernelPeak and not measure._can_reset_peak():
        pytest.skip("the kernel does not reset its peak here")
    size = 200 << 20
    before = peak().read()
    watch = peak()
    held = torch.ones(size, dtype=torch.uint8)
    if peak is measure._SampledPeak:
        watch._stop.wait(10 * measure.SAMPLE_S)
    del held
    assert watch.read() - before > size * 0.9
    measure.free_memory()
    assert peak().read() - before < size * 0.9


def test_measure_returns_the_result_with_its_cost():
    result, cost = measure.measure(lambda: 42)
    assert result == 42
    assert cost.wall_s >= 0
    assert cost.cpu_s >= 0
    assert cost.peak_bytes > 1 << 20


@pytest.mark.skipif(not onednn.is_available(), reason="this machine or torch has no oneDNN linears")
def test_linear_prints_a_ratio_for_every_row_count(capsys):
    linear.main(["--seconds", "0", "--shapes", "key, value", "--rows", "1", "8"])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [re.sub(r"[\d.]+x\b", "R", line).split()[-4:] for line in lines] == [
        ["1", "R", "R", "R"],
        ["8", "R", "R", "R"],
    ]
