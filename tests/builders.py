"""Small real things for tests: a random Qwen2 with a byte-level tokenizer, tasks, rollouts and groups."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from codezero.llm.load import LoadedModel
from codezero.proposals import Proposal
from codezero.types import (
    FinishReason,
    Outcome,
    Reward,
    Rollout,
    RolloutGroup,
    SampledTokens,
    ScoredGroup,
    Task,
    TaskOrigin,
    Verdict,
)

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer(chat_template: str | None = CHAT_TEMPLATE) -> PreTrainedTokenizerFast:
    """One token a byte plus Qwen's three special tokens: 259 ids, every text round-trips."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def tiny_model(seed: int = 0, vocab_size: int = 259, tie: bool = True, **config: object) -> Qwen2ForCausalLM:
    """A random two-layer Qwen2 in float32, in eval mode."""
    torch.manual_seed(seed)
    settings: dict[str, object] = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": tie,
        "initializer_range": 0.2,
        "bos_token_id": None,
        "eos_token_id": tiny_tokenizer().eos_token_id,
        "pad_token_id": tiny_tokenizer().pad_token_id,
    }
    return Qwen2ForCausalLM(Qwen2Config(**{**settings, **config})).eval()


def save_tiny(folder, seed: int = 0, **config: object) -> str:
    """Saves `tiny_model` and `tiny_tokenizer` as a local model folder and returns its path."""
    tiny_model(seed, **config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def loaded(model: Qwen2ForCausalLM | None = None) -> LoadedModel:
    """A `tiny_model` with its tokenizer, as a node loads them."""
    tokenizer = tiny_tokenizer()
    return LoadedModel(
        name="tiny",
        model=model or tiny_model(),
        tokenizer=tokenizer,
        end_ids=(tokenizer.eos_token_id,),
        context_length=2048,
    )


def task(question: str = "Write a function f(x) that returns x + 1.", tests: str = "assert f(1) == 2") -> Task:
    return Task(origin=TaskOrigin.BUILTIN, question=question, tests=tests, difficulty=1)


def proposal(
    name: str = "f", peer_id: str = "p", difficulty: int | None = 2, raw: str = "", tests: str | None = None
) -> Proposal:
    """A sound proposal about a function of this name."""
    return Proposal(
        peer_id=peer_id,
        model_id="tiny",
        question=f"Write a function {name}(x) that returns one more than the number x.",
        tests=f"assert {name}(1) == 2\nassert {name}(-1) == 0" if tests is None else tests,
        difficulty=difficulty,
        raw=raw,
    )


def rollout(prompt_ids=(1, 2, 3), completion_ids=(4, 5), logprobs=None, text: str = "x") -> Rollout:
    """A local rollout; its log-probs are -1 a token unless given."""
    tokens = SampledTokens(
        prompt_ids=tuple(prompt_ids),
        completion_ids=tuple(completion_ids),
        logprobs=tuple(logprobs) if logprobs is not None else (-1.0,) * len(completion_ids),
    )
    return Rollout(text=text, finish=FinishReason.STOP, tokens=tokens)


def group(
    rollouts, of: Task | None = None, peer_id: str = "local", policy_version: int = 0, address: str = "", age: int = 0
) -> RolloutGroup:
    return RolloutGroup(
        peer_id=peer_id,
        model_id="tiny",
        policy_version=policy_version,
        task=of or task(),
        rollouts=tuple(rollouts),
        address=address,
        age=age,
    )


def written(codes, of: Task, policy_version: int = 0) -> RolloutGroup:
    """The group of a solver that answers a task with these programs."""
    rollouts = [rollout(text=f"```python\n{code}\n```") for code in codes]
    return group(rollouts, of, peer_id="self", policy_version=policy_version)


def scored(rollouts, rewards, external: bool = False, programs: bytes = b"", **kwargs) -> ScoredGroup:
    """A scored group with one total reward per rollout, None for a masked one that the judge finds rather right."""
    return ScoredGroup(
        group=group(rollouts, **kwargs),
        verdicts=tuple(
            Verdict(outcome=Outcome.UNSURE, p_correct=0.6)
            if r is None
            else Verdict(outcome=Outcome.JUDGED, p_correct=min(max(r, 0.0), 1.0))
            for r in rewards
        ),
        rewards=tuple(None if r is None else Reward(total=r, parts={"correct": r}) for r in rewards),
        external=external,
        programs=programs,
    )


def assert_identical(found, wanted, path="state"):
    """Compares states of plain values and tensors, with their types; `path` is where they are, for the message."""
    assert type(found) is type(wanted), path
    if isinstance(wanted, torch.Tensor):
        assert torch.equal(found, wanted), path
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), path
        for key in wanted:
            assert_identical(found[key], wanted[key], f"{path}.{key}")
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), path
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            assert_identical(a, b, f"{path}[{i}]")
    else:
        assert found == wanted, path
