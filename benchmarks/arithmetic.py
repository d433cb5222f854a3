"""Arithmetic with short answers, and a model of 0.4 million parameters that has begun to learn it.

Four of the nine tasks of SAPO's experiments (arXiv 2509.08721, section 4), at a size for such a model: sums, decimal
sums, fractions and other bases. A tenth of all questions, by their hash, is held out: no node ever trains on them.
"""

from __future__ import annotations

import hashlib
import io
import random
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from benchmarks import harness
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleRequest, sample_groups
from codezero.types import SampledTokens, Task, TaskOrigin

CHARACTERS = "0123456789+-./=b "
END, PAD = "<end>", "<pad>"
MAX_ANSWER = 9
"""Tokens of the longest answer, with its end."""
SHAPE = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
RATE, BATCH, LOOKS = 1e-3, 128, 50
"""Adam's step size, the questions of a supervised step, and the steps between two looks at what the model solves."""


def _sums(rng: random.Random) -> str:
    return str(rng.randint(1, 99)) + "".join(
        f"{rng.choice('+-')}{rng.randint(1, 99)}" for _ in range(rng.randint(1, 2))
    )


def _decimals(rng: random.Random) -> str:
    return f"{rng.randint(1, 99) / 10}+{rng.randint(1, 99) / 10}"


def _fractions(rng: random.Random) -> str:
    factor = rng.randint(2, 9)
    return f"{rng.randint(1, 20) * factor}/{rng.randint(2, 20) * factor}"


def _bases(rng: random.Random) -> str:
    return f"{rng.randint(2, 511)}b{rng.choice((3, 5, 8))}"


def answer(question: str) -> str:
    """The right answer to a question."""
    question = question.removesuffix("=")
    if "b" in question:
        number, base = map(int, question.split("b"))
        digits = ""
        while number:
            number, digit = divmod(number, base)
            digits = f"{digit}{digits}"
        return digits
    if "/" in question:
        numerator, denominator = map(int, question.split("/"))
        found = Fraction(numerator, denominator)
        return f"{found.numerator}/{found.denominator}"
    total = sum(map(Fraction, re.findall(r"[+-]?[\d.]+", question)))
    return str(float(total)) if "." in question else str(int(total))


KINDS = (_sums, _decimals, _fractions, _bases)


def task(rng: random.Random, *, is_held_out: bool = False, kind: int | None = None) -> Task:
    """Draws a task, of a kind drawn too where none is given. Its tests are the right answer."""
    make = KINDS[rng.randrange(len(KINDS)) if kind is None else kind]
    while True:
        question = make(rng)
        if (hashlib.sha256(question.encode()).digest()[0] < 26) == is_held_out:
            return Task(origin=TaskOrigin.BUILTIN, question=f"{question}=", tests=answer(question))


def held_out(count: int) -> list[Task]:
    """Different tasks that nobody trains on, as many of each kind, the same in every run."""
    rng, found = random.Random("held out"), dict[str, Task]()
    while len(found) < count:
        one = task(rng, is_held_out=True, kind=len(found) % len(KINDS))
        found.setdefault(one.question, one)
    return list(found.values())


def tokenizer(characters: str = CHARACTERS) -> PreTrainedTokenizerFast:
    """One token a character."""
    core = Tokenizer(models.WordLevel({text: i for i, text in enumerate([PAD, END, *characters])}, unk_token=PAD))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token=END, pad_token=PAD)


def blank(seed: int, characters: str = CHARACTERS) -> LoadedModel:
    """A model with random weights."""
    torch.manual_seed(seed)
    made = tokenizer(characters)
    config = Qwen2Config(vocab_size=len(made), num_key_value_heads=4, tie_word_embeddings=True, **SHAPE)
    end = made.eos_token_id
    return LoadedModel(
        name="arithmetic", model=Qwen2ForCausalLM(config).eval(), tokenizer=made, end_ids=(end,), context_length=64
    )


def beginner(seed: int, share: float) -> LoadedModel:
    """A model that was trained on solved questions until it solves this share of held-out ones at T=1. On the others it
    would pass long before: it soon knows many of their answers by heart."""
    made, rng = blank(seed), random.Random(seed)
    optimizer = torch.optim.Adam(made.model.parameters(), RATE)
    asked = [task(rng, is_held_out=True) for _ in range(512)]
    for step in range(20_000):
        if step % LOOKS == 0 and solved(made, asked, torch.Generator().manual_seed(step)) >= share:
            return made
        shown = [task(rng) for _ in range(BATCH)]
        supervise(made, optimizer, [(one.question, one.tests) for one in shown])
    raise SystemExit(f"the model does not learn to solve {share:.0%}: a fault of this benchmark")


def kept_beginner(seed: int, share: float, folder: Path) -> LoadedModel:
    """The same from the folder, where it is put when it is first made."""
    path = folder / f"beginner-{seed}-{share}.pt"
    if not path.exists():
        keep(beginner(seed, share), path)
    made = blank(seed)
    made.model.load_state_dict(torch.load(path, weights_only=True))
    return made


def keep(made: LoadedModel, path: Path) -> None:
    """Writes a model's weights in one step, so that a kill leaves no part of them."""
    weights = io.BytesIO()
    torch.save(made.model.state_dict(), weights)
    harness.write(path, weights.getvalue())


def supervise(made: LoadedModel, optimizer: torch.optim.Optimizer, pairs: Sequence[tuple[str, str]]) -> None:
    """One step on the answers of pairs of prompt and answer."""
    rows = [(made.encode_text(asked), [*made.encode_text(answer), *made.end_ids]) for asked, answer in pairs]
    width = max(len(asked) + len(answer) for asked, answer in rows)
    ids, labels = [], []
    for asked, answer in rows:
        rest = width - len(asked) - len(answer)
        ids.append([*asked, *answer, *[made.pad_id] * rest])
        labels.append([*[-100] * len(asked), *answer, *[-100] * rest])
    made.model(input_ids=torch.tensor(ids), labels=torch.tensor(labels)).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def sample(made: LoadedModel, tasks: Sequence[Task], num: int, rng: torch.Generator) -> list[list[SampledTokens]]:
    """Draws `num` answers to each task at T=1."""
    return complete(made, [one.question for one in tasks], num, rng)


def complete(
    made: LoadedModel, prompts: Sequence[str], num: int, rng: torch.Generator, longest: int = MAX_ANSWER
) -> list[list[SampledTokens]]:
    """Draws `num` completions of at most `longest` tokens of each prompt at T=1."""
    request = SampleRequest(
        prompts=[made.encode_text(one) for one in prompts],
        num_generations=num,
        params=SamplingParams(max_new_tokens=longest),
        end_ids=made.end_ids,
        pad_id=made.pad_id,
        generator=rng,
    )
    return sample_groups(made.model, request)


def text_of(made: LoadedModel, tokens: SampledTokens) -> str:
    return str(made.tokenizer.decode(tokens.completion_ids, skip_special_tokens=True))


def solved(made: LoadedModel, tasks: Sequence[Task], rng: torch.Generator) -> float:
    """The share of tasks that one answer at T=1 solves."""
    given = sample(made, tasks, 1, rng)
    right = sum(text_of(made, found) == one.tests for (found,), one in zip(given, tasks, strict=True))
    return right / len(tasks)
