"""Checks of the servers that a node asks: hub, package index, judge service, and servers of its models."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import msgspec

from codezero.config import Backend, RolloutEngine
from codezero.config.multiaddr import is_loopback
from codezero.doctor import reach
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Finding, error, info, ok, refusal, warning
from codezero.errors import CodezeroError, ConfigError, ProposerError
from codezero.llm import catalogue, store
from codezero.llm.chat_server import DEFAULT_URL
from codezero.llm.client import JsonClient, Purpose
from codezero.llm.store import ModelState
from codezero.publish.tokens import take_tokens
from codezero.runtime.system_info import is_installed

DEFAULT_HUB, DEFAULT_INDEX = "https://huggingface.co", "https://pypi.org/simple/"
_MIRROR = "check the connection, name a mirror in HF_ENDPOINT, or give files (tasks.mbpp.path=..., model.name=FOLDER)"
_LIST = "`ollama list` shows what is there; `ollama pull NAME` fetches one"


class _Named(msgspec.Struct):
    name: str = ""
    id: str = ""


class _Models(msgspec.Struct):
    models: list[_Named] = []
    """The models in Ollama's reply."""
    data: list[_Named] = []
    """The models in a reply of OpenAI's API."""


def check_judge(case: ExaminedNode) -> Iterator[Finding]:
    config = case.config.judge
    if not config.enabled and not case.config.market.enabled:
        return
    from codezero.services.judge.client import JudgeService, JudgeServiceError

    means = "rounds have no judge score, and no bets are made; training continues"
    do = "correct judge.url, or set judge.enabled=false"
    why = reach.why_unreachable(case, "judge service", config.url)
    if why is not None:
        yield warning("judge service", why, means, do)
        return
    try:
        clue = JudgeService(config.url, timeout_s=reach.TIMEOUT_S).current_clue()
    except JudgeServiceError as fault:
        yield warning("judge service", str(fault), means, do)
    else:
        yield ok("judge service", "it answers; " + ("no game is open" if clue is None else f"game {clue.game} is open"))


def check_evaluator(case: ExaminedNode) -> Iterator[Finding]:
    config = case.config
    evaluator = config.evaluator
    from codezero.evaluate.backends.served import JUDGING
    from codezero.llm.llama_library import PACKAGE as LLAMA_CPP

    for who, wants, other in (
        ("evaluator", evaluator.backend is Backend.llama_cpp, "evaluator.backend=auto"),
        ("rollouts", config.rollout.engine is RolloutEngine.llama_cpp, "rollout.engine=transformers"),
    ):
        if wants and not is_installed(LLAMA_CPP):
            found = f"{who} by llama_cpp, and xllamacpp is not installed"
            do = f"install the extra llama-cpp (docs/launch-script.md), or {other}"
            yield error(who, found, "no node can start", do)
    if config.rollout.engine is RolloutEngine.vllm and not is_installed("vllm"):
        do = "install the extra vllm (docs/rollout-service.md), or rollout.engine=transformers"
        yield error("rollouts", "rollouts by vllm, and vllm is not installed", "no node can start", do)
    if evaluator.backend is Backend.ollama:
        from codezero.evaluate.backends.ollama import DEFAULT_URL as OLLAMA_URL

        yield from _server(case, JUDGING, evaluator.url or OLLAMA_URL, "/api/tags", evaluator.model, "")
    elif evaluator.backend is Backend.openai:
        url = evaluator.url or DEFAULT_URL
        yield from _server(case, JUDGING, url, "/models", evaluator.model, evaluator.api_key_env)
    elif evaluator.backend is Backend.execution:
        found = "evaluator.backend=execution RUNS what models wrote, in a sandbox"
        means = "a weakness of the sandbox is one of this machine"
        yield warning("evaluator", found, means, "use evaluator.backend=auto, which runs no code")
    if config.proposer.url:
        purpose = Purpose(who="the proposer's model", section="proposer", error=ProposerError)
        key_env = config.proposer.api_key_env
        yield from _server(case, purpose, config.proposer.url, "/models", config.proposer.model, key_env)


def _server(case: ExaminedNode, purpose: Purpose, url: str, path: str, model: str, key_env: str) -> Iterator[Finding]:
    name = purpose.section
    means = "no proposer can start" if name == "proposer" else "no node can start: it asks its judge first"
    why = reach.why_unreachable(case, f"{name}'s server", url)
    if why is not None:
        yield error(name, why, means, f"start the server, or correct {name}.url")
        return
    key = case.environment.get(key_env, "").strip() if key_env else ""
    try:
        client = JsonClient(url, purpose, timeout_s=reach.TIMEOUT_S, retries=0, at_once=1, key=key, key_env=key_env)
        found = client.get(path, _Models)
    except CodezeroError as fault:
        yield refusal(name, fault, means)
        return
    served = [one.name or one.id for one in [*found.models, *found.data]] if found is not None else []
    if model in served or f"{model}:latest" in served:
        yield ok(name, f"{client.place} serves {model}")
    elif served:
        do = _LIST if path == "/api/tags" else f"set {name}.model to one of these"
        yield error(name, f"{client.place} does not serve {model}, but {', '.join(served[:5])}", means, do)
    else:
        yield info(name, f"{client.place} answers, and lists no models", "whether it serves the model shows at start")


def check_hub(case: ExaminedNode) -> Iterator[Finding]:
    config = case.config
    datasets = (("mbpp", config.tasks.mbpp), ("code_contests", config.tasks.code_contests))
    data = [name for name, dataset in datasets if dataset.weight > 0 and dataset.path is None]
    weights = _absent(case)
    needs = [*([f"the weights of {weights}"] if weights else []), *(f"the dataset {name}" for name in data)]
    if case.environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        means = f"{' and '.join(needs)} cannot be fetched" if needs else ""
        yield info("hub", "switched off by HF_HUB_OFFLINE", means, "unset HF_HUB_OFFLINE" if needs else "")
        return
    url = case.environment.get("HF_ENDPOINT") or DEFAULT_HUB
    if url.startswith(("http://", "https://")):
        why, do = reach.why_unreachable(case, "hub", url), _MIRROR
    else:
        why, do = "HF_ENDPOINT has no https:// or http:// in front", "write it as https://HOST, or unset it"
    if why is None:
        yield ok("hub", f"{urlsplit(url).hostname} answers")
    elif not needs:
        yield info("hub", why, "it is not needed: weights and problems are on this machine")
    elif weights and catalogue.find(config.model.name) is None:
        yield error("hub", why, f"{weights} cannot be downloaded, so no node can start", do)
    else:
        instead = "weights are tried from the package index" if weights else ""
        builtin = "the built-in problems stand in" if config.tasks.fallback else "drawing tasks fails"
        means = "; ".join(
            filter(None, [f"not available from it: {', '.join(needs)}", instead, builtin if data else ""])
        )
        yield warning("hub", why, means, do)


def check_push(case: ExaminedNode) -> Iterator[Finding]:
    """Checks that the hub accepts the token for pushing. The token is sent to that hub alone."""
    push = case.config.push
    if not push.enabled:
        return
    try:
        token = take_tokens(push, dict(case.environment)).push
    except ConfigError as fault:
        yield refusal("push", fault)
        return
    parts, do = urlsplit(push.endpoint), "make a token that may write at https://huggingface.co/settings/tokens"
    why = reach.why_unreachable(case, "hub for pushing", push.endpoint)
    role = _role(push.endpoint, token) if why is None else None
    if why is not None or role is None:
        found = why or "whether the hub takes the token could not be found out"
        yield warning("push", found, "nothing is pushed until it answers; training continues", "see push.endpoint")
    elif role in ("refused", "read"):
        found = "the hub refuses the token" if role == "refused" else "the token may only read"
        yield warning("push", found, "nothing is pushed; training continues", do)
    else:
        yield ok("push", f"{parts.hostname} takes the token" + (", which may write" if role == "write" else ""))


def _role(endpoint: str, token: str) -> str | None:
    """Returns the token's role at the hub, such as `read` or `write`, `refused` for none, or None if not known."""
    try:
        reply = httpx2.get(
            endpoint.rstrip("/") + "/api/whoami-v2",
            headers={"Authorization": f"Bearer {token}"},
            timeout=reach.TIMEOUT_S,
            follow_redirects=False,
            trust_env=not is_loopback(urlsplit(endpoint).hostname or ""),
        )
        if reply.status_code in (401, 403):
            return "refused"
        if reply.status_code != 200:
            return None
        return str(msgspec.json.decode(reply.content)["auth"].get("accessToken", {}).get("role", ""))
    except (httpx2.HTTPError, msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def check_index(case: ExaminedNode) -> Iterator[Finding]:
    """Checks the index that pip gets packages from: weights come from it where the hub fails."""
    weights = _absent(case)
    if not weights or catalogue.find(case.config.model.name) is None:
        return
    url = case.environment.get("PIP_INDEX_URL") or DEFAULT_INDEX
    why = reach.why_unreachable(case, "package index", url)
    if why is None:
        yield ok("package index", f"{urlsplit(url).hostname} answers")
    else:
        do = "check the connection, or name another index in PIP_INDEX_URL"
        yield warning("package index", why, f"{weights} cannot be downloaded from it if the hub fails too", do)


def _absent(case: ExaminedNode) -> str:
    """Returns the name of the solver's model if its weights are still to be fetched, else an empty text."""
    name = case.config.model.name
    if catalogue.find(name) is None and not store.HUB_ID.fullmatch(name):
        return ""
    known = {model.name.lower(): model.state for model in store.list_models(case.cache_dir)}
    return "" if known.get(name.lower()) is ModelState.PREPARED else name
