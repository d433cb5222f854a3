"""A node's model, checkpoints and rounds, as small as they get."""

from dataclasses import replace

import torch

from codezero.config import TrainConfig, TrainMethod
from codezero.llm.load import LoadedModel, load_model
from codezero.publish.card import NodeFacts, facts
from codezero.publish.pack import Packer
from codezero.reports import RoundReport
from codezero.train.checkpoint import CheckpointStore, trainable_weights
from codezero.train.method import apply_lora
from tests.builders import save_tiny

PEER_ID = "QmaLeNBKgMLqEoFnDx8RDQqCRw6JSvs44ejqfWeHF2Nvrs"


def report(number: int, policy_version: int | None = None, **values) -> RoundReport:
    return RoundReport(
        **{
            **dict.fromkeys(("loss", "grad_norm", "clip_fraction", "kl", "skipped", "average_at_k")),
            **{"round": number, "policy_version": number if policy_version is None else policy_version},
            **{"num_local_groups": 2, "num_external_groups": 0, "dropped": {}, "reward_mean": 0.5, "pass_at_k": 0.25},
            **{"reward_parts": {}, "num_tokens": 1, "tokens_per_s": 1.0, "peak_rss_bytes": 1, "seconds": {}},
            **values,
        }
    )


class Trainee:
    """A tiny model whose every round makes all its trained weights larger by 1."""

    def __init__(self, folder, method=TrainMethod.full, name="org/tiny"):
        source = save_tiny(folder / "source")
        self.policy: LoadedModel = load_model(name, folder / "source", torch.device("cpu"), torch.float32)
        if method is TrainMethod.lora:
            adapted = apply_lora(self.policy.model, TrainConfig(lora_r=4), seed=0)
            self.policy = replace(self.policy, model=adapted)
        self.source, self.method = source, method
        self.facts: NodeFacts = facts(name, method, PEER_ID)
        self.folder = folder / "state"
        self.store = CheckpointStore(self.folder / "checkpoints")
        self.round = 0

    def packer(self) -> Packer:
        return Packer(self.policy, self.facts, self.folder / "push")

    def train(self):
        """Another round's checkpoint."""
        self.round += 1
        with torch.no_grad():
            for weight in trainable_weights(self.policy.model).values():
                weight.add_(1.0)
        return self.save()

    def save(self):
        weights = trainable_weights(self.policy.model)
        return self.store.save(self.round, self.round, {"weights": weights, "learner": {}}, {})

    def logits(self, model=None):
        model = self.policy.model if model is None else model
        with torch.no_grad():
            return model(torch.tensor([[5, 6, 7, 8]])).logits


def write(folder, files):
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder
