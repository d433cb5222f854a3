"""The benchmarks run and print their tables. Nothing here looks at how long anything took."""

import asyncio
import json
import math
import re
import time

import pytest
import torch

from benchmarks import (
    copies,
    draws,
    harness,
    known,
    linear,
    measure,
    reference,
    sides,
    simulated_swarm,
    workload,
)
from benchmarks import evaluator as evaluator_benchmark
from benchmarks import gossip as gossip_benchmark
from benchmarks import proposer as proposer_benchmark
from benchmarks import round as round_benchmark
from benchmarks.attacks import ATTACKS
from benchmarks.proposer import Vouch
from codezero.evaluate.judge import Opinion
from codezero.identity.key import is_signed_by
from codezero.llm import onednn
from codezero.network import gossip as gossip_module
from codezero.network import wire
from codezero.prompts.proposer import parse_answer
from codezero.prompts.solver import parse
from codezero.proposer.duplicates import Seen
from codezero.proposer.write import Draft
from codezero.tasks.problems import load_problems
from tests import strangers
from tests.builders import save_tiny, task, tiny_tokenizer
from tests.processes import wait_until
from tests.unit.benchmarks.builders import folders, result
from tests.unit.tasks.builders import mbpp_row, mbpp_rows, write_jsonl

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning"),
    pytest.mark.usefixtures("restored_process"),
]


def test_informative_draws_lie_between_blind_ones_and_those_that_know_every_rate():
    arms = ("uniform", "informative", "oracle")
    late = [draws.counts(arm, 2, "measured, G = 16")["mixed"] for arm in arms]
    uniform, informative, oracle = (sum(sum(windows[3:]) for windows in seeds) for seeds in late)
    assert uniform < informative < oracle


def test_known_drops_what_a_reader_does_not_draw_and_all_of_a_hostile_peers(tmp_path, capsys):
    others = [
        mbpp_row(task_id=511 + i, text=f"Write a function to find the sum of a number and {i}.") for i in range(3)
    ]
    path = write_jsonl(tmp_path / "mbpp.jsonl", [*mbpp_rows(40), *others])
    known.main(["--mbpp", path, "--rounds", "3"])
    printed = capsys.readouterr().out
    assert printed.startswith("3 of 3 proposals pass the checks")
    shares = {row[:18].strip(): re.findall(r"[\d.]+%", row) for row in printed.splitlines()[3:]}
    assert shares["MBPP"] == ["0.0%"] * 5 + ["100.0%"]
    assert shares["built-in"][3] == "100.0%"
    assert 0 < float(shares["all"][4][:-1]) < 100


def test_round_measures_every_side_with_checkpoint_and_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    round_benchmark.main(["g2", "--tokens", "16", "--model", save_tiny(tmp_path), *folders(tmp_path)])
    results = harness.results("round", tmp_path / "results")
    found = results["g2"].counts["1"]
    assert {side: sorted(costs) for side, costs in found.items()} == {
        "reference": ["learn", "solve"],
        "codezero": ["judge", "learn", "save", "solve"],
        "equal steps": ["judge", "learn", "solve"],
    }
    rows = [row.split(" | ") for row in round_benchmark.round_table(results).splitlines()[2:]]
    assert [row[0] for row in rows] == ["| 2, reference", "| 2, codezero", "| 2, equal steps"]
    assert all("at least 1.5: " in row[-3] for row in rows[1:])


@pytest.mark.parametrize("method", ["lora", "full"])
def test_one_update_tells_what_it_costs(method, tmp_path, capsys):
    round_benchmark.main([method, "--alone", "--tokens", "16", "--model", save_tiny(tmp_path)])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["cpu_s"] > 0


def test_learning_is_compared_with_another_checkout_that_has_to_be_named(capsys):
    with pytest.raises(SystemExit):
        round_benchmark.main(["g2", "lora"])
    assert "lora compares two checkouts: name the other one with --before FOLDER" in capsys.readouterr().err


def test_learning_is_compared_by_medians_of_pairs():
    counts = {str(i): {"before": {"cpu_s": 10.0}, "now": {"cpu_s": 4.0 + i}} for i in range(3)}
    found = result(counts)
    rows = round_benchmark.learn_table({"lora": found, "full": found}).splitlines()[2:]
    assert rows == [f"| {method} | 10 | 5 | 0.50 [0.40, 0.60], at most 0.5: met |" for method in ("lora", "full")]


def test_training_texts_are_the_wanted_tokens_again():
    work = sides.Work(tasks=tuple(p.task for p in load_problems(1, 1)[:2]), num_generations=3, num_tokens=7)
    tokenizer = tiny_tokenizer()
    texts = sides.training_texts(tokenizer, work)
    assert [len(group) for group in texts] == [3, 3]
    assert {len(tokenizer(text).input_ids) for group in texts for text in group} == {7}
    assert len({text for group in texts for text in group}) == 6


def test_every_attempt_has_an_advantage():
    for num_generations in range(2, 17):
        work = sides.Work(tasks=(), num_generations=num_generations, num_tokens=1)
        assert sum(work.rewards) / num_generations not in work.rewards


def test_reference_learns_and_its_losses_are_those_of_ratio_one(tmp_path):
    trainer = reference.GenrlTrainer(save_tiny(tmp_path), 2)
    before = [weight.clone() for weight in trainer.model.parameters()]
    chats = [[{"role": "user", "content": "hi"}]]
    losses = trainer.train(chats, [["abcd", "efgh"]], torch.tensor([[1.0, 0.0]]))
    assert losses == [pytest.approx(0.0, abs=1e-5)]  # the two advantages cancel where lengths are equal
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_reference_completions_have_the_wanted_length(tmp_path):
    trainer = reference.GenrlTrainer(save_tiny(tmp_path), 3)
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
        wait_until(lambda: watch._peak - before > size * 0.9)
    del held
    assert watch.read() - before > size * 0.9
    measure.free_memory()
    assert peak().read() - before < size * 0.9


def test_measure_returns_the_result_with_its_cost():
    result, cost = measure.measure(lambda: 42)
    assert result == 42
    assert cost.peak_bytes > 1 << 20


@pytest.mark.skipif(not onednn.is_available(), reason="this machine or torch has no oneDNN linears")
def test_linear_prints_a_ratio_for_every_row_count(capsys):
    linear.main(["--seconds", "0", "--shapes", "key, value", "--rows", "1", "8"])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [re.sub(r"[\d.]+x\b", "R", line).split()[-4:] for line in lines] == [
        ["1", "R", "R", "R"],
        ["8", "R", "R", "R"],
    ]


def test_gossip_of_simulated_nodes_costs_something_and_everybody_finds_others(capsys):
    gossip_benchmark.main(["--quick"])
    printed = capsys.readouterr().out
    assert printed.startswith("machine: ")
    (cells,) = re.findall(r"^40 native, simulated +([\d. ]+)$", printed, re.MULTILINE)
    row = dict(zip(gossip_benchmark.SIMULATED, map(float, cells.split()), strict=True))
    assert all(value > 0 for name, value in row.items() if name != "new contacts")
    assert row["published %"] == 100
    # All on a machine that has time for it: the simulated clock does not wait for other threads.
    assert row["found %"] >= 90
    assert row["groups"] >= 0.9 * workload.POOL
    assert row["seen p5"] >= workload.POOL / workload.NUM_GROUPS  # publishers that fill a pool
    assert 96 < row["KB"] < 2000  # at least three replicas of 32 KB
    assert row["records"] <= row["records max"]


def test_gossip_counts_only_what_nodes_add_to_their_counters():
    earlier = workload.Traffic(made=3, served=5, sent_bytes=2048)
    used = workload.Traffic(made=4, served=9, sent_bytes=4096) - earlier
    assert workload.traffic([used, workload.Traffic()]) == {
        "calls": 0.5,
        "served p95": 4,
        "served max": 4,
        "KB": 1.0,
        "KB p95": 2.0,
        "KB max": 2.0,
    }


def test_gossip_waits_from_when_a_publication_is_out_and_its_collector_has_begun():
    records = {
        "early": workload.Record(began_s=0.0, publishing_s=0.0, published_s=1.0, taken_s={"late": 4.5}),
        "late": workload.Record(began_s=3.0, publishing_s=3.0, published_s=4.0, taken_s={"early": 3.25, "mute": 9.0}),
        "mute": workload.Record(began_s=0.0),
    }
    numbers = workload.latencies(records)
    assert (numbers["collected p50"], numbers["collected max"]) == (0.25, 0.5)
    assert numbers["published p50"] == 1.0


def test_publications_are_as_large_as_asked_for_and_differ():
    packed = {wire.pack_groups(workload.groups_of(f"Qm{i}", number, 32 << 10)) for i in (1, 2) for number in (1, 2)}
    assert len(packed) == 4
    assert all(0.95 < len(body) / (32 << 10) < 1.05 for body in packed)


def test_quantiles():
    assert [workload.quantile([4, 1, 3, 2], share) for share in (0.5, 0.95, 1.0)] == [2, 4, 4]
    assert math.isnan(workload.quantile([], 0.5))


def test_simulated_time_passes_without_waiting_and_ends_with_the_loop():
    with simulated_swarm.simulated_time() as loop:
        before = loop.time(), gossip_module.time.time()
        loop.run_until_complete(asyncio.sleep(3600))
        assert loop.time() - before[0] == pytest.approx(3600)
        assert gossip_module.time.time() - before[1] == pytest.approx(3600)
    assert gossip_module.time is time


def test_simulated_keys_sign_and_differ():
    identities = simulated_swarm.make_identities(10)
    assert len({identity.peer_id for identity in identities}) == 10
    assert all(is_signed_by(one.public_key, b"text", one.sign(b"text")) for one in identities)


SAMPLES = {
    "right": ("def f(x):\n    return x + 1", True),
    "wrong": ("def f(x):\n    return x", False),
    "endless": ("def f(x):\n    while True:\n        x += 1\n    return x", False),
}


@pytest.fixture
def executed(tmp_path):
    """A file as `codezero eval` writes it: two problems of the report split, three attempts at each."""
    path, groups = tmp_path / "results.jsonl", ("mbpp/11", "mbpp/12")
    with path.open("w") as file:
        for group in groups:
            for code, passed in SAMPLES.values():
                task = {"question": f"Add one ({group}).", "tests": "assert f(1) == 2", "source": "mbpp"}
                line = {"group": group, "solution": f"```python\n{code}\n```", "passed": passed, **task}
                file.write(json.dumps(line) + "\n")
    return path


def test_copies_counts_how_often_groups_of_the_same_problem_are_equal(tmp_path, capsys):
    """Attempts that differ in names alone make equal groups, however they are drawn; of the others there are none."""
    task = {"question": "Add.", "tests": "assert f(1) == 2", "source": "mbpp", "passed": True}
    codes = [("mbpp/601", f"def f({name}):\n    return {name} + 1") for name in "abcd"]
    codes += [("mbpp/602", f"def f(x):\n    return x + {n}") for n in range(4)]
    lines = [{"group": group, "solution": f"```python\n{code}\n```", **task} for group, code in codes]
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, lines)))
    copies.main([str(tmp_path / "results.jsonl")])
    found, _, first, *rest = capsys.readouterr().out.splitlines()
    assert found == "2 problems, 8 samples, 0 do not parse"
    assert first.split() == ["1", "1", "100.0%", "50.000%"]
    assert "2       50            0.0%                  0.000%  <- shipped" in rest


@pytest.mark.slow
def test_evaluator_compares_its_ways_and_puts_attacks_to_them(tmp_path, executed, capsys):
    model = save_tiny(tmp_path / "model")
    few = ("--side-by-side", "1", "--attacked", "1", "--attacked-slowly", "0")
    evaluator_benchmark.main([str(executed), "model.device=cpu", "--model", model, *few, "evaluator.max_new_tokens=2"])
    printed = capsys.readouterr().out
    assert "6 samples of 2 problems, 33.3% right" in printed
    assert len(re.findall(r"^(?:shipped|no dry run) +6 ", printed, re.MULTILINE)) == 2
    assert len(re.findall(r"^[a-z ,/]+ +3 +[\d.]+ \[", printed, re.MULTILINE)) == 5
    assert "dry run: 4 of 6 followed to the end (66.7%), 4 of them as execution has it (100.0%)" in printed
    assert f"{len(ATTACKS)} attacks on 1 wrong solutions, 0 of them taken for right as they are: 0.0%" in printed


class Sure:
    """A judge that is sure of its opinion on what it knows, and of another one on the rest."""

    def __init__(self, known, p_known, p_rest):
        self.known, self.p_known, self.p_rest = known, p_known, p_rest

    def judge(self, solutions):
        return [Opinion(p_correct=self.p_known if one.code == self.known else self.p_rest) for one in solutions]


def sample(code, group="a", right=False):
    return evaluator_benchmark.Sample(group, task(), f"```python\n{code}\n```", right)


def test_an_attack_on_what_is_taken_for_right_already_lifts_nothing():
    code = "def f(x):\n    return x"
    host = sample(code)
    changed = sum(parse(attack.apply(host.text, host.task)) != code for attack in ATTACKS)

    def report(p_known, p_rest):
        judge = Sure(code, p_known, p_rest)
        made = strangers.evaluator(judge, strangers.Reader(), dry_run=False, fatal_rules=False)
        return evaluator_benchmark.attack_report(made, [host])[0]

    all_of = f"{len(ATTACKS)} attacks on 1 wrong solutions"
    lifts = report(0.2, 0.9)
    assert lifts.startswith(f"{all_of}, 0 of them taken for right as they are: {changed / len(ATTACKS):.1%} taken")
    assert f" {changed} of {len(ATTACKS)} lifted over one half" in lifts
    over_already = report(0.9, 0.9)
    assert over_already.startswith(f"{all_of}, 1 of them taken for right as they are: 100.0% taken for right, 0 of 0")


def test_a_share_of_the_attacks_has_some_of_every_family():
    assert evaluator_benchmark.every(1) == list(ATTACKS)
    few = evaluator_benchmark.every(3)
    assert {attack.family for attack in few} == {attack.family for attack in ATTACKS}
    assert len(ATTACKS) / 3 <= len(few) < len(ATTACKS) / 2
    comments = [attack for attack in ATTACKS if attack.family == "comments"]
    assert [attack for attack in few if attack.family == "comments"] == comments[::3]


def test_wrong_solutions_that_nobody_takes_for_right_are_attacked_first():
    loved, liked, refused = (sample(f"def f(x):\n    return {i}", group=f"g{i}") for i in range(3))
    unseen, right = (
        sample("def f(x):\n    return 3", group="g3"),
        sample("def f(x):\n    return x + 1", "g4", right=True),
    )
    also_of_g0 = sample("def f(x):\n    return 4", group="g0")
    cut_off = sample("def f(x):\n    return (", group="g5")
    taken = {loved: 2, liked: 1, refused: 0, also_of_g0: 1, right: 0, cut_off: 0}
    found = evaluator_benchmark.hosts_of([*taken, unseen], taken)
    assert found == [refused, liked, also_of_g0, unseen]


LEVELS_SHOWN = (("beginner", "3"), ("expert", "3"), ("all", "6"))


def test_proposer_prints_every_level_of_every_variant(tmp_path, capsys):
    proposer_benchmark.main(
        [
            *("--model", save_tiny(tmp_path), "--levels", "15", "--answers", "3"),
            *("--variants", "naive,repair", "--solve", "1", "proposer.batch_size=2", "proposer.max_new_tokens=8"),
        ]
    )
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = [row[:3] for row in rows if row and row[0] in ("naive", "repair")]
    assert shown == [[name, level, n] for name in ("naive", "repair") for level, n in LEVELS_SHOWN]


def test_proposer_counts_what_was_published_and_why_the_rest_was_not():
    question = "Write a function f(x) that returns the number that comes after x."
    solution = "def f(x):\n    return x + 1"
    other = "Write a function g(x) that doubles each and every one of the numbers."
    answers = [
        {"question": question, "tests": ["assert f(1) == 2"], "solution": solution},
        {"question": question, "tests": ["assert f(1) == 2"]},
        {
            "question": other,
            "tests": ["assert g(1) == 3", "assert g(2) == 4"],
            "solution": "def g(x):\n    return 2 * x",
        },
        {"question": other, "tests": []},
        "no object at all",
    ]
    drafts = [Draft(level=1, raw="", answer=parse_answer(json.dumps(answer))) for answer in answers]
    for vouch, published, failed in ((Vouch.nothing, 2, {}), (Vouch.passes, 1, {"reference_fails": 1})):
        seen = Seen(remembered=9, similarity=0.6)
        found = proposer_benchmark.tally(strangers.Reader(), lambda level, count: drafts, 1, 5, 5, seen, vouch)
        assert (found.written, found.parsed, found.valid, len(found.published)) == (5, 4, 2, published)
        assert found.reasons == {"duplicate": 1, "no_tests": 1, "unreadable": 1, **failed}
        assert f"{published / 5:.0%} [" in found.row("shipped", "easy")
    seen = Seen(remembered=9, similarity=0.6)
    found = proposer_benchmark.tally(strangers.Reader(), lambda level, count: drafts, 1, 5, 5, seen, Vouch.settles)
    assert [task.tests for task in found.published] == ["assert f(1) == 2", "assert g(1) == 2\nassert g(2) == 4"]
