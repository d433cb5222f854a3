"""A round of `preset=faithful`, played by the node's real parts and written down.

Not real are: the weights (`model`), the network, which is in memory (`peers`), the chain (`chain`), the frozen judge's
answers, and the time.
"""

from __future__ import annotations

import dataclasses
import io
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from transformers import AutoTokenizer

from codezero import build as build_module
from codezero import node as node_module
from codezero.build import begin
from codezero.config import NodeConfig
from codezero.config.load import load_config
from codezero.evaluate.backends.base import Review
from codezero.evaluate.build import make_evaluator, start_workers
from codezero.node import Node
from codezero.observe.roles import SOLVER
from codezero.publish.tokens import HubTokens
from codezero.runtime.console import Console
from codezero.types import RolloutGroup, ScoredGroup, SwarmRound
from codezero.views.runs import find_runs
from tests.golden.chain import recorded_ledger
from tests.golden.model import save_model
from tests.golden.peers import NOW_S, Swarm, as_text, decompressed, shown
from tests.settings import by_key
from tests.unit.tasks.builders import contest_row, mbpp_row, write_jsonl

PRESET, GENRL = "preset=faithful", "peers' records, packed by GenRL 0.3.0"
SEED = 2
"""Draws a contest's problem and a proposal, and samples right and wrong answers and one that is cut off."""
CLOCKS = ("seconds", "tokens_per_s", "peak_rss_bytes", "finished_at_s")


def play(packed: dict[str, str], noise: float = 0.0) -> dict[str, Any]:
    """The record of a round in each of the two formats, played in the current folder, which must be empty: names of
    other folders would be in the record. `packed` is what GenRL's packer makes of the peers' groups, in hex; `noise` is
    that of `save_model`."""
    save_model(Path("model"), noise)
    rows = [
        mbpp_row(task_id=601 + n, text=f"Write a function f to {what} a number.", test_list=[f"assert f(5) == {five}"])
        for n, (what, five) in enumerate([("double", 10), ("increment", 6)])
    ]
    write_jsonl(Path("mbpp.jsonl"), rows)
    write_jsonl(Path("contests.jsonl"), [contest_row()])
    theirs = {name: bytes.fromhex(record) for name, record in packed.items()}
    native, swarm_round = play_in("native", theirs)
    genrl, _ = play_in("genrl", theirs)
    return {
        "settings": by_key(load_config([PRESET])),
        "native": native,
        "genrl": genrl,
        GENRL: packed,
        "judged by default": judged_by_default(swarm_round),
    }


def play_in(network: str, theirs: dict[str, bytes]) -> tuple[dict[str, Any], SwarmRound]:
    config = load_config(
        [
            *(PRESET, f"swarm={network}", f"seed={SEED}", "rounds=1", "rollout.max_new_tokens=12"),
            *("model.name=model", "evaluator.model=model", "model.device=cpu", "model.threads=1"),
            *("tasks.mbpp.path=mbpp.jsonl", "tasks.code_contests.path=contests.jsonl"),
            *(f"state_dir={network}", f"tracking.log_dir={network}"),
        ]
    )
    judge = Judge()
    with ExitStack() as stack:
        stack.enter_context(patch("time.time", return_value=NOW_S))
        swarm = Swarm(config.swarm.network, theirs)
        stack.callback(swarm.loop.close)
        place = swarm.place(config)
        ledger, chain = stack.enter_context(recorded_ledger(Path(f"{network}-chain"), place.peer_id, config.swarm.vote))
        stack.enter_context(patch.object(build_module, "join", lambda *_, **__: place))
        stack.enter_context(patch.object(node_module, "make_ledger", lambda *_: ledger))
        stack.enter_context(patch.object(node_module, "make_evaluator", judge.evaluator))
        Node(config, HubTokens(), None, begin(config, SOLVER, Console(io.StringIO()), stack)).run()
        ledger.close()
    (run,) = find_runs(Path(network))
    report = {name: value for name, value in dataclasses.asdict(run.reports()[-1]).items() if name not in CLOCKS}
    return {
        "proposed by a peer": as_text(decompressed(swarm.proposed)),
        "sampled": [sampled(group) for group in judge.swarm_round.local],
        "stored": shown(swarm.stored),
        "judge is asked": sorted(judge.asked, key=json.dumps),
        "groups": sorted(map(msgspec.to_builtins, run.groups()[-1].groups), key=json.dumps),
        "report": report,
        "ledger": chain.calls,
    }, judge.swarm_round


class Judge:
    """A frozen judge that is told its answers: it finds right what doubles, whatever the task."""

    name = "Qwen2.5-Coder-1.5B-Instruct"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        """Chats, of each a message a line."""

    def write(self, chats, max_new_tokens):
        return [self._verdict(chat, f"{max_new_tokens} tokens") for chat in chats]

    def review(self, chats):
        for chat in chats:
            self._verdict(chat, "Yes or No")
        return [Review(logprobs=(-0.5,) * 20, choices=(-0.3, -1.4)) for _ in chats]

    def _verdict(self, chat, how: str) -> str:
        self.asked.append({"for": how, "chat": [[message["role"], message["content"]] for message in chat]})
        is_right = any(part in chat[-1]["content"] for part in ("return x * 2", "return x + x"))
        return f'```json\n{{"is_correct": {str(is_right).lower()}}}\n```'

    def evaluator(self, config: NodeConfig, backend, progress, workers, **lookups) -> Judge:
        """Stands in for `evaluate.build.make_evaluator`, and is an evaluator that keeps what it was given."""
        self._real = make_evaluator(config, self, progress, workers, **lookups)
        return self

    def score(self, swarm_round: SwarmRound) -> tuple[ScoredGroup, ...]:
        self.swarm_round = swarm_round
        return self._real.score(swarm_round)


def sampled(group: RolloutGroup) -> dict[str, Any]:
    """The completions that the node sampled for a task, and their prompt with its control tokens."""
    own = [(rollout, rollout.tokens) for rollout in group.rollouts if rollout.tokens is not None]
    (prompt_ids,) = {tokens.prompt_ids for _, tokens in own}
    return {
        "prompt": AutoTokenizer.from_pretrained("model").decode(prompt_ids),
        "completions": [
            {"text": one.text, "finish": one.finish.value, "ids": tokens.completion_ids, "logprobs": tokens.logprobs}
            for one, tokens in own
        ],
    }


def judged_by_default(swarm_round: SwarmRound) -> dict[str, Any]:
    """The same groups as a node without a preset judges them: what it asks, and what it makes of the answers."""
    judge = Judge()
    config = load_config(["swarm=native"])
    with start_workers(config) as workers:
        scored = make_evaluator(config, judge, lambda *_: None, workers).score(swarm_round)
    found = [
        {
            "task": group.group.task.question,
            "text": rollout.text,
            "p_correct": verdict.p_correct,
            "reply": verdict.reply,
            "parts": dict(reward.parts) if reward is not None else None,
            "rules": dict(verdict.rules),
            "cases": [dataclasses.asdict(case) for case in verdict.cases],
        }
        for group in scored
        for rollout, verdict, reward in zip(group.group.rollouts, group.verdicts, group.rewards, strict=True)
    ]
    return {"judge is asked": sorted(judge.asked, key=json.dumps), "verdicts": sorted(found, key=json.dumps)}
