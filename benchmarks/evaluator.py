"""Measures how right and how fast the evaluator is: its verdicts on stored solutions against their execution.

    codezero eval --dataset mbpp --path mbpp.jsonl --limit 250 --samples 4 --out samples    # solutions, executed
    python -m benchmarks.evaluator samples/results.jsonl

All variants judge the same samples with the same model in one run. `faithful` is the public node's way, a written JSON
verdict and nothing else (on programs that are already neutralised); it takes long, so all variants are compared on
the problems of `--side-by-side`. AUC: probability that a right solution is rated above a wrong one. Ranking: the same
among the attempts at one problem, which is all that GRPO sees. ECE: expected calibration error. In brackets: 95 % when
problems are drawn again. None: without a reward; where the judge was unsure its probability is in the other columns.
Of an attack counts whether the wrong solution is taken for right under it (over one half), and whether it was not so
before (lifted).

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.attacks import ATTACKS, Attack
from benchmarks.harness import command_line
from benchmarks.measure import machine, own_s
from benchmarks.quality import auc, best_accuracy, calibration_error, interval, judged_of, ranking_accuracy
from benchmarks.splits import Split, check
from codezero.config import EvaluatorConfig, NodeConfig, VerdictMode
from codezero.config.load import load_config
from codezero.evaluate.build import LARGE_JUDGE, judge_alone, make_evaluator, start_workers
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.runtime.console import Console
from codezero.types import CaseOutcome, FinishReason, Rollout, RolloutGroup, Task, TaskOrigin, Verdict

ATTACKED = ("shipped", "no dry run")
"""Variants that all attacks are put to."""
HEADER = "variant               samples    AUC [95 %]       best acc    ECE  ranking [95 %]     none  verdicts/CPU s"


@dataclass(frozen=True, slots=True)
class Sample:
    """A stored solution, and whether it passed its tests when executed."""

    group: str
    task: Task
    text: str
    right: bool


def read_samples(path: Path, limit: int | None = None, splits: Sequence[Split] = (Split.report,)) -> list[Sample]:
    """The samples of a file of `codezero eval`, at most so many groups. Ends where one is not of these splits."""
    samples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        task = Task(origin=TaskOrigin(one["source"]), question=one["question"], tests=one["tests"])
        samples.append(Sample(one["group"], task, one["solution"], one["passed"]))
    groups = list(dict.fromkeys(sample.group for sample in samples))[:limit]
    check(groups, splits)
    return [sample for sample in samples if sample.group in set(groups)]


def variants(config: NodeConfig) -> dict[str, NodeConfig]:
    """Returns the settings that are compared, by name, the slow ones last."""
    return {
        "shipped": config,
        "no dry run": _changed(config, dry_run=False),
        "judge alone": _changed(config, dry_run=False, fatal_rules=False),
        "judge alone, yes/no": _changed(config, dry_run=False, fatal_rules=False, verdict=VerdictMode.logit),
        "faithful": _changed(config, dry_run=False, fatal_rules=False, verdict=VerdictMode.generate),
    }


def _changed(config: NodeConfig, **changes: object) -> NodeConfig:
    return replace(config, evaluator=EvaluatorConfig(**{**vars(config.evaluator), **changes}))


def verdicts_of(evaluator: FrozenEvaluator, samples: Sequence[Sample]) -> tuple[list[Verdict], float]:
    """A verdict for each sample, judged by groups as in a round, and the processor seconds that took."""
    by_group: dict[str, list[int]] = defaultdict(list)
    for i, sample in enumerate(samples):
        by_group[sample.group].append(i)
    groups = [
        RolloutGroup(
            peer_id="",
            model_id="",
            policy_version=0,
            task=samples[rows[0]].task,
            rollouts=tuple(Rollout(text=samples[i].text, finish=FinishReason.STOP) for i in rows),
        )
        for rows in by_group.values()
    ]
    cpu = own_s()
    found: dict[int, Verdict] = {}
    for rows, scored in zip(by_group.values(), evaluator.score_groups((one, False) for one in groups), strict=True):
        found.update(zip(rows, scored.verdicts, strict=True))
    return [found[i] for i in range(len(samples))], own_s() - cpu


def row(name: str, verdicts: Sequence[Verdict], samples: Sequence[Sample], cpu_s: float) -> str:
    """One line of the table. No verdict counts as 0, as in the public node."""
    judged = judged_of(
        [verdict.p_correct or 0.0 for verdict in verdicts],
        [sample.right for sample in samples],
        [sample.group for sample in samples],
    )
    low, high = interval(judged, auc)
    rank_low, rank_high = interval(judged, ranking_accuracy)
    none = sum(not verdict.is_decided for verdict in verdicts)
    return (
        f"{name:22}{len(samples):6}{auc(judged):7.3f} [{low:.2f}, {high:.2f}]{best_accuracy(judged):8.3f}"
        f"{calibration_error(judged):7.3f}{ranking_accuracy(judged):9.3f} [{rank_low:.2f}, {rank_high:.2f}]"
        f"{none:7}{len(samples) / max(cpu_s, 1e-9):13.2f}"
    )


def dry_run_report(verdicts: Sequence[Verdict], samples: Sequence[Sample]) -> list[str]:
    """Coverage of the dry run, and where it was wrong or could not tell, by cause."""
    followed = [(v, s) for v, s in zip(verdicts, samples, strict=True) if v.cases]
    decided = [(v, s) for v, s in followed if _decision(v) is not None]
    wrong = [(v, s) for v, s in decided if _decision(v) is not s.right]
    lines = [
        f"dry run: {len(decided)} of {len(followed)} followed to the end ({len(decided) / max(len(followed), 1):.1%}), "
        f"{len(decided) - len(wrong)} of them as execution has it ({1 - len(wrong) / max(len(decided), 1):.1%})"
    ]
    causes = Counter(_cause(v) for v, s in followed if _decision(v) is None)
    lines += [f"  not decided: {count} x {cause}" for cause, count in causes.most_common(12)]
    return lines + [f"  wrong: {s.group} is {'right' if s.right else 'wrong'}: {_cause(v)}" for v, s in wrong]


def _decision(verdict: Verdict) -> bool | None:
    outcomes = {case.outcome for case in verdict.cases}
    if CaseOutcome.FAIL in outcomes:
        return False
    return None if CaseOutcome.UNKNOWN in outcomes else True


def _cause(verdict: Verdict) -> str:
    reasons = [case.reason for case in verdict.cases if case.outcome is not CaseOutcome.PASS]
    return ascii(next(iter(reasons), "all cases passed")[:80])[1:-1]


def hosts_of(samples: Sequence[Sample], taken: Mapping[Sample, int]) -> list[Sample]:
    """Wrong solutions that attacks apply to, one a problem: first those that the fewest variants took for right
    (`taken`, of the samples that all of them judged), since what is taken for right already has nothing to gain."""
    wrong = [sample for sample in samples if not sample.right and _can_be_attacked(sample)]
    most = max(taken.values(), default=0)
    found: dict[str, Sample] = {}
    for sample in sorted(wrong, key=lambda one: taken.get(one, most + 1)):
        found.setdefault(sample.group, sample)
    return list(found.values())


def _can_be_attacked(sample: Sample) -> bool:
    return any(attack.apply(sample.text, sample.task) != sample.text for attack in ATTACKS)


def every(step: int) -> list[Attack]:
    """The first attack of each family and every `step`-th after it."""
    found, seen = [], Counter[str]()
    for attack in ATTACKS:
        if seen[attack.family] % step == 0:
            found.append(attack)
        seen[attack.family] += 1
    return found


def attack_report(
    evaluator: FrozenEvaluator, hosts: Sequence[Sample], attacks: Sequence[Attack] = ATTACKS
) -> list[str]:
    """Returns in lines how many attacks end with a wrong solution over one half, lift it there, or raise it by 0.1."""
    before, _ = verdicts_of(evaluator, hosts)
    raised: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    over = lifted = could_be_lifted = 0
    for sample, plain in zip(hosts, before, strict=True):
        attacked = [(one.family, replace(sample, text=one.apply(sample.text, sample.task))) for one in attacks]
        after, _ = verdicts_of(evaluator, [one for _, one in attacked])
        for (family, _), verdict in zip(attacked, after, strict=True):
            p, q = plain.p_correct or 0.0, verdict.p_correct or 0.0
            tried[family] += 1
            raised[family] += q > p + 0.1
            over += q >= 0.5
            could_be_lifted += p < 0.5
            lifted += p < 0.5 <= q
    total = max(sum(tried.values()), 1)
    taken = sum(taken_for_right(verdict) for verdict in before)
    lines = [
        f"{sum(tried.values())} attacks on {len(hosts)} wrong solutions, {taken} of them taken for right as they are: "
        f"{over / total:.1%} taken for right, {lifted} of {could_be_lifted} lifted over one half, "
        f"{sum(raised.values()) / total:.1%} raised by more than 0.1"
    ]
    return lines + [f"  raised in {family}: {raised[family]} of {tried[family]}" for family in tried if raised[family]]


def taken_for_right(verdict: Verdict) -> bool:
    """No verdict counts as wrong, as in the public node."""
    return (verdict.p_correct or 0.0) >= 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("evaluator", __doc__)
    parser.add_argument("samples", type=Path, help="results of codezero eval: JSON lines with solution and passed")
    parser.add_argument("--model", default=LARGE_JUDGE, help="the judge, of every variant")
    parser.add_argument("--groups", type=int, help="at most so many problems")
    parser.add_argument("--side-by-side", type=int, default=16, metavar="N", help="problems that all variants judge")
    parser.add_argument("--attacked", type=int, default=5, metavar="N", help="wrong solutions that are attacked")
    parser.add_argument("--attacked-slowly", type=int, default=1, metavar="N", help="of them, by `faithful` too")
    parser.add_argument("--slow-step", type=int, default=1, metavar="N", help="there every Nth attack of each family")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the evaluator")
    options = parser.parse_intermixed_args(arguments)
    config = load_config([f"evaluator.model={options.model}", *options.settings])
    backend = judge_alone(variants(config)["judge alone"], Console())
    with start_workers(config) as workers:
        compare(
            options,
            {
                name: make_evaluator(changed, backend, lambda *_: None, workers)
                for name, changed in variants(config).items()
            },
        )


def compare(options: argparse.Namespace, evaluators: Mapping[str, FrozenEvaluator]) -> None:
    """Prints the tables."""
    samples, some = read_samples(options.samples, options.groups), read_samples(options.samples, options.side_by_side)
    taken: Counter[Sample] = Counter()
    print(f"machine: {machine()}")
    for chosen, names in ((samples, list(evaluators)[:2]), (some, list(evaluators))):
        right = sum(sample.right for sample in chosen) / len(chosen)
        print(f"\n{len(chosen)} samples of {len({s.group for s in chosen})} problems, {right:.1%} right\n{HEADER}")
        for name in names:
            verdicts, cpu_s = verdicts_of(evaluators[name], chosen)
            print(row(name, verdicts, chosen, cpu_s), flush=True)
            if chosen is samples and name == "shipped":
                followed = dry_run_report(verdicts, samples)
            if chosen is some:
                taken.update({sample: taken_for_right(one) for sample, one in zip(some, verdicts, strict=True)})
    print("\n" + "\n".join(followed))
    hosts = hosts_of(samples, taken)
    some_attacks = every(options.slow_step)
    for names, count, attacks in (
        ((*ATTACKED, "faithful"), options.attacked_slowly, some_attacks),
        (ATTACKED, options.attacked, ATTACKS),
    ):
        for name in names if count else ():
            print(f"\n{name}: " + "\n".join(attack_report(evaluators[name], hosts[:count], attacks)), flush=True)


if __name__ == "__main__":
    main()
