"""Checks of the servers that a node asks: the judge service, and the server of its judge or its proposer's model."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from codezero.config import Backend, NodeConfig, RolloutEngine
from codezero.doctor import reach
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning
from codezero.errors import CodezeroError, EvaluatorError, ProposerError
from codezero.llm.chat_server import DEFAULT_URL
from codezero.llm.client import JsonClient, Purpose

TIMEOUT_S = 4.0
_LIST = "`ollama list` shows what is there; `ollama pull NAME` fetches one"


class _Named(msgspec.Struct):
    name: str = ""
    id: str = ""


class _Models(msgspec.Struct):
    models: list[_Named] = []
    """The models in Ollama's reply."""
    data: list[_Named] = []
    """The models in a reply of OpenAI's API."""


def check_judge(case: Case) -> Iterator[Finding]:
    config = case.config.judge
    if not config.enabled and not case.config.market.enabled:
        return
    from codezero.services.judge.client import JudgeService, JudgeServiceError

    means = "rounds have no judge score, and no bets are made; training goes on"
    do = "correct judge.url, or set judge.enabled=false"
    why = reach.look(case, "judge service", config.url)
    if why is not None:
        yield warning("judge service", why, means, do)
        return
    try:
        clue = JudgeService(config.url, timeout_s=TIMEOUT_S).current_clue()
    except JudgeServiceError as fault:
        yield warning("judge service", str(fault), means, do)
    else:
        yield ok("judge service", "it answers; " + ("no game is open" if clue is None else f"game {clue.game} is open"))


def check_evaluator(case: Case) -> Iterator[Finding]:
    config = case.config
    evaluator = config.evaluator
    from codezero.evaluate.backends.choose import has_llama_cpp

    for who, wants, other in (
        ("evaluator", evaluator.backend is Backend.llama_cpp, "evaluator.backend=auto"),
        ("rollouts", config.rollout.engine is RolloutEngine.llama_cpp, "rollout.engine=transformers"),
    ):
        if wants and not has_llama_cpp():
            yield error(
                who,
                f"{who} by llama_cpp, and xllamacpp is not installed",
                "no node can start",
                f"pip install 'codezero[llama-cpp]', or {other}",
            )
    if evaluator.backend is Backend.ollama:
        from codezero.evaluate.backends.ollama import DEFAULT_URL as OLLAMA_URL

        url, purpose = evaluator.url or OLLAMA_URL, Purpose(who="the judge", section="evaluator", error=EvaluatorError)
        yield from _server(case, "evaluator", url, "/api/tags", evaluator.model, purpose, "")
    elif evaluator.backend is Backend.openai:
        url, purpose = evaluator.url or DEFAULT_URL, Purpose(who="the judge", section="evaluator", error=EvaluatorError)
        yield from _server(case, "evaluator", url, "/models", evaluator.model, purpose, evaluator.api_key_env)
    elif evaluator.backend is Backend.execution:
        yield warning(
            "evaluator",
            "evaluator.backend=execution RUNS what models wrote, in a sandbox",
            "a weakness of the sandbox is one of this machine",
            "evaluator.backend=auto never runs any of it",
        )
    yield from _proposer(case, config)


def _proposer(case: Case, config: NodeConfig) -> Iterator[Finding]:
    if config.proposer.url:
        purpose = Purpose(who="the proposer's model", section="proposer", error=ProposerError)
        key_env = config.proposer.api_key_env
        yield from _server(case, "proposer", config.proposer.url, "/models", config.proposer.model, purpose, key_env)


def _server(
    case: Case, name: str, url: str, path: str, model: str, purpose: Purpose, key_env: str
) -> Iterator[Finding]:
    means = "no proposer can start" if name == "proposer" else "no node can start: it asks its judge first"
    why = reach.look(case, f"{name}'s server", url)
    if why is not None:
        yield error(name, why, means, f"start the server, or correct {name}.url")
        return
    key = case.environment.get(key_env, "").strip() if key_env else ""
    try:
        client = JsonClient(url, purpose, timeout_s=TIMEOUT_S, retries=0, at_once=1, key=key, key_env=key_env)
        found = client.get(path, _Models)
    except CodezeroError as fault:
        what, _, do = str(fault).rpartition(": ")
        yield error(name, what or do, means, do)
        return
    served = [one.name or one.id for one in [*found.models, *found.data]] if found is not None else []
    if model in served or f"{model}:latest" in served:
        yield ok(name, f"{client.place} serves {model}")
    elif served:
        do = _LIST if path == "/api/tags" else f"set {name}.model to one of these"
        yield error(name, f"{client.place} does not serve {model}, but {', '.join(served[:5])}", means, do)
    else:
        yield info(name, f"{client.place} answers, and lists no models", "whether it serves the model shows at start")
