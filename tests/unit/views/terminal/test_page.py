"""The pages line by line, at the widths of real terminals."""

import dataclasses

import pytest

from codezero.observe.probes import PAIR, learning
from codezero.views.terminal import nodes as node_rows
from codezero.views.terminal.page import ViewOptions, lines
from codezero.views.terminal.snapshot import Message
from tests.unit.observe import test_batches, test_cases, test_probes
from tests.unit.views.terminal.builders import NOW, proposer, report, solver, status, verifier

pytestmark = pytest.mark.usefixtures("utc")


def shown(snapshot, width, height, **choice):
    return [line.plain.rstrip() for line in lines([snapshot], width, height, ViewOptions(**choice))]


def test_a_solver_at_80_by_24():
    assert shown(solver(), 80, 24)[:20] == [
        "thorny fishy meerkat                                       codezero 0.1.0 solver",
        "QmYyQS…Wjhx5N  Qwen2.5-Coder-0.5B-Instruct, full          process 4711, up 1h02m",
        "",
        "Round      13  learning  ━━━━━━━━━━━━━━━━━━━━────────────── 6/10  about 20s left",
        "            draw  solve 36s  exchange 2s  score 3s ▸learn 54s  settle",
        "Learns     No change beyond chance: of solutions to 40 problems it never trains",
        "           on, 25.0 % were right at the start and 25.0 % in rounds 1 to 10, +0.0",
        "           points [-4.0, +4.0]; greedy 25.0 % and 25.0 %.",
        "Reward     +0.58  ▁▂▁▂▁▂▅▇▅▇▅█                              higher is better",
        "           correct +0.30  structure +0.10  formatting +0.10  alignment +0.10",
        "           finished +0.20",
        "pass@4     0.50   ▄▄▄▄▄▄▄▄▄▄▄▄                              predicted",
        "average@4  0.25   ▄▄▄▄▄▄▄▄▄▄▄▄                              predicted",
        "Learned    policy version 12  loss -0.0123  grad 1.5",
        "Swarm      3 peers in sight  local 2  external 0  dropped 1 zero_advantage",
        "tokens/s   32     ▄▄▄▄▄▄▄▄▄▄▄▄                              round 1m00s",
        "Memory     7.9 GiB of 10.3 GiB planned",
        "Ledger     earned +3.68 in 12 rounds",
        "           accepted round 12 +0.58, 1970-01-01 00:01:40",
        "── messages ────────────────────────────────────────────────────────────────────",
    ]
    assert shown(solver(), 80, 24)[-2:] == ["00:00:00 message 39", "q stop   l log   ? help"]


def test_a_solver_at_60_keeps_the_figures():
    page = shown(solver(), 60, 24)
    assert page[0] == "thorny fishy meerkat                   codezero 0.1.0 solver"
    assert "Round      13  learning  ━━━━━━━━────── 6/10  about 20s left" in page
    assert "Reward     +0.58  ▁▂▁▂▁▂▅▇▅▇▅█          higher is better" in page


def test_a_solver_at_120_has_groups_apart_and_peers_by_name():
    last = report(12, 0.58, num_external_groups=2, num_pooled_groups=4, external_groups={"a": 1, "b": 1})
    page = shown(solver(reports=[last]), 120, 30)
    assert page[1].startswith("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N  Qwen2.5-Coder-0.5B-Instruct, full  ")
    peers = "noisy spotted barracuda and lively whistling penguin"
    at = page.index(f"Swarm      3 peers in sight  local 2  external 2 of 4 from {peers}")
    assert page[at - 1] == ""
    assert page[at + 1] == "           dropped 1 zero_advantage"
    assert "           correct +0.30  structure +0.10  formatting +0.10  alignment +0.10  finished +0.20" in page


def test_a_proposer_shows_its_level_and_what_is_known_of_each():
    assert shown(proposer(), 80, 24)[3:17] == [
        "Batch      9  writing problems  ━━━━━━━━━━━━━━━────────── 6/10  about 1m20s left",
        "           ▸write 1m29s  listen 1m00s",
        "",
        "Level      2 easy  start",
        "            1 beginner  0.90 ━━━━━━━━━━━━━━━━━━━━━━━━━━━───",
        "           ▸2 easy      0.55 ━━━━━━━━━━━━━━━━──────────────",
        "            3 medium    not known",
        "            4 hard      not known",
        "            5 expert    not known",
        "           share of right attempts; problems teach most at about one half",
        "Valid      75%    ▄▄▄▄▄▄▄▄                                  of what was written",
        "           rejected 1 unreadable",
        "Judged     2 in the last batch, 50% with right and wrong attempts",
        "Swarm      2 peers in sight",
    ]


def test_a_proposer_with_a_test_writer_shows_what_its_cases_are_worth():
    batches = [test_batches.report(1, writer=test_batches.WRITER)]
    page = shown(proposer(batches=batches), 120, 30)
    cases = "Cases      31 by batch 5 of the test writer, 12 valid"
    assert f"{cases}  discriminating: 3 or more in 1 of 3 problems, none in 1" in page
    page = shown(proposer(batches=batches), 70, 30)
    assert page[page.index(cases) + 1].strip().startswith("discriminating: 3 or more in 1 of 3")


def test_a_test_writer_shows_its_reward_beside_the_base_rate():
    assert shown(verifier(), 80, 24)[3:14] == [
        "Batch      9  writing test cases  ━━━━━━━━━━━━━━───────── 6/10  about 1m00s left",
        "            solve 30s ▸cases 20s  learn 40s",
        "",
        "Reward     0.21   ▄▄▄▄▄▄▄▄                                  of 1",
        "           approving always would earn 0.75",
        "Valid      25%    ▄▄▄▄▄▄▄▄                                  pass the reference",
        "Diagnosis  19%    ▄▄▄▄▄▄▄▄                                  right verdict",
        "Approved   12%    ▄▄▄▄▄▄▄▄                                  50% were right",
        "",
        "Written    16 answers on 2 candidates",
        "Learned    policy version 8  loss -0.0012",
    ]


def test_a_solver_that_learns_beside_a_test_writer_is_on_its_page():
    cases = [test_cases.report(number, solver=test_cases.solver()) for number in range(1, 9)]
    assert shown(verifier(cases=cases), 80, 24)[14:16] == [
        "Solver     25%    ▄▄▄▄▄▄▄▄                                  right of 16",
        "           second attempts 12% right of 8  policy version 3  loss 0.02",
    ]
    measured = learning(test_probes.passes(0.25, 0.25), PAIR)
    assert shown(verifier(cases=cases, learning=measured), 80, 30)[6:9] == [
        "Learns     No change beyond chance: of solutions to 40 problems it never trains",
        "           on, 25.0 % were right at the start and 25.0 % in batches 1 to 10,",
        "           +0.0 points [-4.0, +4.0]; greedy 25.0 % and 25.0 %.",
    ]


def test_of_several_nodes_each_has_a_row_and_the_chosen_one_its_page():
    stopped = dataclasses.replace(solver(), name="node-2", pid=None, status=status(ended="stopped"))
    nodes = [dataclasses.replace(solver(), name="node-1"), stopped, dataclasses.replace(proposer(), name="proposer-1")]
    page = [line.plain.rstrip() for line in lines(nodes, 80, 30, ViewOptions(chosen=1, quits="leave"))]
    assert page[:6] == [
        "  node         round  doing            left    earns",
        "  node-1       13     learn 6/10       20s     +0.58 ▁▂▁▂▁▂▅▇▅▇▅█",
        "▸ node-2       13     stopped 0 s ago          +0.58 ▁▂▁▂▁▂▅▇▅▇▅█",
        "  proposer-1   9      write 6/10       1m20s   level 2 easy",
        "─" * 80,
        "node-2: thorny fishy meerkat                               codezero 0.1.0 solver",
    ]
    assert page[-1] == "q leave   l log   ↑↓ choose   ? help"


def test_with_more_nodes_than_rows_the_chosen_one_is_in_sight():
    nodes = [dataclasses.replace(solver(), name=f"node-{number}") for number in range(50)]
    page = [line.plain for line in lines(nodes, 80, 24, ViewOptions(chosen=40))]
    assert len(page) == 24
    assert sum(line.startswith("▸ node-40 ") for line in page) == 1


@pytest.mark.parametrize(
    "snapshot", [solver(), proposer(), verifier(), verifier(cases=[]), solver(reports=[], status=None)]
)
@pytest.mark.parametrize(
    "choice", [ViewOptions(), ViewOptions(log=True), ViewOptions(help=True), ViewOptions(log=True, up=10_000)]
)
@pytest.mark.parametrize("nodes", [1, 3])
def test_whatever_the_size_every_line_fits_and_there_are_as_many_as_the_terminal_has(snapshot, choice, nodes):
    for width in (1, 2, 10, 20, 39, 40, 59, 80, 200):
        for height in (1, 2, 5, 10, 24, 60):
            page = lines([snapshot] * nodes, width, height, choice)
            assert len(page) == height
            assert max(line.cell_len for line in page) <= width, (width, height)


def test_a_node_that_was_killed_or_failed_says_so():
    killed = solver(pid=None, status=status(updated_at_s=NOW - 7200))
    assert shown(killed, 80, 24)[1].endswith("! died")
    assert shown(killed, 80, 30)[4:6] == [
        "           ended 2 h 0 min ago without a word",
        "           it was killed: memory ran out (`sudo dmesg | grep -i oom` shows it),…",
    ]
    failed = solver(pid=None, status=status(ended="StateError: the disk is full"))
    assert "           ended 0 s ago: StateError: the disk is full" in shown(failed, 80, 24)


def test_a_node_that_runs_and_says_nothing_is_noticed():
    page = shown(solver(status=status(updated_at_s=NOW - 90)), 80, 30)
    assert page[1].endswith("! silent")
    assert "           no sign of life for 1 min" in page


def test_what_an_earlier_process_wrote_is_not_told_of_one_that_has_not_written_yet():
    text = "\n".join(shown(solver(pid=5000), 80, 30))
    assert "process 5000\n" in text
    assert "running, and has not said yet what it does" in text
    assert "6/10" not in text
    assert "6/10" not in node_rows.table([solver(pid=5000)], 0, 80, 5)[1].plain


def test_why_a_round_taught_nothing_and_what_is_in_the_way():
    last = report(12, None, skipped="no scored groups", pass_at_k=None, judge="the judge is away", reward_parts={})
    page = shown(solver(reports=[last], status=status(ledger="the RPC is away")), 80, 40)
    assert any(line.startswith("Reward     -      ·") for line in page)
    assert "Learned    policy version 12  no update: no scored groups" in page
    assert "Judge      ! the judge is away" in page
    assert "           trouble the RPC is away" in page


def test_what_was_pushed_is_shown_and_what_keeps_it_from_the_hub_in_its_place():
    pushed = "round 12: https://huggingface.co/me/model"
    assert f"Push       {pushed}" in shown(solver(status=status(pushed=pushed)), 80, 40)
    page = shown(solver(status=status(pushed=pushed, push_trouble="push: HTTP 401")), 80, 40)
    assert "Push       ! push: HTTP 401" in page


def test_which_tasks_of_peers_are_trained_on_is_shown():
    told = "only those that this node knows itself; listed: code_contests 3,420 so far"
    page = shown(solver(status=status(peer_tasks=told)), 80, 40)
    first = page.index("Peer tasks only those that this node knows itself; listed: code_contests 3,420")
    assert page[first + 1] == "           so far"


def test_proposals_used_are_counted_over_the_last_rounds():
    reports = [report(number, num_proposed_groups=1) for number in (1, 2, 3)]
    assert "Proposals  3 of 6 tasks in 3 rounds were proposers'" in shown(solver(reports=reports), 80, 30)


def test_the_last_warning_stays_in_sight():
    messages = [Message(at_s=number, text=f"line {number}", warns=number == 3) for number in range(60)]
    page = shown(solver(messages=messages), 80, 24)
    at = next(number for number, line in enumerate(page) if line.startswith("── messages"))
    assert page[at + 1] == "00:00:03 ! line 3"
    assert page[-2] == "00:00:59 line 59"


def test_the_log_shows_messages_whole_and_scrolls():
    messages = [Message(at_s=0.0, text=f"{number} " + "x" * 100, warns=False) for number in range(50)]
    page = shown(solver(messages=messages), 80, 24, log=True)
    assert page[-3].startswith("00:00:00 49 xxx")
    assert page[-2] == "x" * (len("00:00:00 49 ") + 100 - 80)
    assert shown(solver(messages=messages), 80, 24, log=True, up=2)[-3].startswith("00:00:00 48 xxx")
    assert shown(solver(messages=messages), 80, 24, log=True, up=10_000)[0].startswith("00:00:00 0 xxx")
