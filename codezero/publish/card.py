"""Writes the model card: what was pushed, by which node, after how many rounds, and how to load it.

It contains no text of other nodes: only numbers, names derived from the node's key, and the model's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from codezero import __version__
from codezero.config import TrainMethod
from codezero.identity.names import animal_name
from codezero.llm import catalogue
from codezero.llm.store import HUB_ID
from codezero.reports import RoundReport

TAGS = ("rl-swarm", "grpo", "gensyn")
REPOSITORY = "@REPOSITORY@"
"""The placeholder for the repository's id, whose owner is known only when the hub has been asked."""
_NAME_CHARACTERS = 96
"""The largest length of a repository's name (huggingface_hub.utils.validate_repo_id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The facts about a node that stay the same while it runs."""

    model: str
    """The model's name without owner or folder."""
    base: str
    """The hub id of the model that training started from; empty if it came from a folder of this machine."""
    licence: str
    """The licence in the hub's spelling; empty if not known."""
    quantised: bool
    """True if training started from the weights of a 4-bit file."""
    method: TrainMethod
    peer_id: str

    @property
    def repository(self) -> str:
        """The repository's name without its owner, within the hub's rules."""
        end = f"-Gensyn-Swarm-{animal_name(self.peer_id).replace(' ', '_')}"
        return self.model[: _NAME_CHARACTERS - len(end)].rstrip("-.") + end


def facts(model_name: str, method: TrainMethod, peer_id: str) -> NodeFacts:
    """Returns a node's facts. `model_name` is as in model.name: of the catalogue, of the hub, or a folder, whose path
    is left out."""
    known = catalogue.find(model_name)
    if known is not None:
        base, licence, name = known.base, known.licence.lower(), known.name
    else:
        is_hub_id = HUB_ID.fullmatch(model_name) and not Path(model_name).expanduser().is_dir()
        base, licence, name = model_name if is_hub_id else "", "", model_name.rstrip("/").rpartition("/")[2]
    # The hub permits no "--" or ".." in a name, and neither "-" nor "." at its ends.
    plain = re.sub(r"[-.]*([-.])", r"\1", re.sub(r"[^A-Za-z0-9._-]", "-", name)).strip("-.") or "model"
    return NodeFacts(
        model=plain, base=base, licence=licence, quantised=known is not None, method=method, peer_id=peer_id
    )


def card(facts: NodeFacts, reports: Sequence[RoundReport]) -> str:
    """Returns the README.md with the hub's metadata in front. `reports` are those of the last rounds; the last one is
    that of the pushed version."""
    last, is_adapter = reports[-1], facts.method is TrainMethod.lora
    front = ["---", f"library_name: {'peft' if is_adapter else 'transformers'}", "pipeline_tag: text-generation"]
    front += [f"license: {facts.licence}"] * bool(facts.licence)
    if facts.base:
        relation = "adapter" if is_adapter else "finetune"
        front += [f"base_model: {facts.base}", f"base_model_relation: {relation}"]
    front += ["tags:", *(f"- {tag}" for tag in TAGS), "---"]
    what = "A LoRA adapter for" if is_adapter else "All weights of"
    rows = {
        "peer": f"{animal_name(facts.peer_id)}, `{facts.peer_id}`",
        "model": facts.base or facts.model,
        "method": f"GRPO, {'LoRA' if is_adapter else 'all weights'}",
        "round": str(last.round),
        "policy version (rounds with an update)": str(last.policy_version),
        **_means(reports),
        "made by": f"codezero {__version__}",
    }
    lines = [
        *front,
        "",
        f"# {facts.model}, trained in a swarm",
        "",
        f"{what} {facts.base or facts.model}, as a node of a peer-to-peer swarm has them after round {last.round}. The "
        "node trains with GRPO on programming problems, from its own solutions and those of other nodes. It continues, "
        "and this repository gets its newer versions.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
        "",
        "Reward and pass@k are the node's own estimates, by an evaluator that reads solutions and does not run them.",
        "",
    ]
    if facts.quantised:
        lines += ["Training started from a 4-bit release of the base model, whose weights differ slightly.", ""]
    return "\n".join([*lines, "## Loading it", "", "```python", *_code(facts), "```", ""])


def _means(reports: Sequence[RoundReport]) -> dict[str, str]:
    over = f"of the last {len(reports)} rounds" if len(reports) > 1 else "of this round"
    found = {}
    for name, values in (
        ("mean reward", [report.reward_mean for report in reports]),
        ("predicted pass@k", [report.pass_at_k for report in reports]),
    ):
        known = [value for value in values if value is not None]
        if known:
            found[f"{name} {over}"] = f"{fmean(known):.2f}"
    return found


def _code(facts: NodeFacts) -> list[str]:
    if facts.method is TrainMethod.full:
        return [
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            "",
            f'model = AutoModelForCausalLM.from_pretrained("{REPOSITORY}")',
            f'tokenizer = AutoTokenizer.from_pretrained("{REPOSITORY}")',
        ]
    base = facts.base or f"folder/of/{facts.model}"
    return [
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        f'base = AutoModelForCausalLM.from_pretrained("{base}")',
        f'model = PeftModel.from_pretrained(base, "{REPOSITORY}")',
        f'tokenizer = AutoTokenizer.from_pretrained("{REPOSITORY}")',
    ]
