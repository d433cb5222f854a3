"""The rollout engine that samples with servers: shares prompts out by speed, and does the work of failed ones again."""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from typing import Any

import torch

from codezero.errors import RolloutError
from codezero.llm.replies import Done
from codezero.llm.sample import SampleGroups, SampleRequest, sample_groups
from codezero.llm.within_memory import WithinMemory
from codezero.rollouts import client, protocol
from codezero.rollouts.agreement import disagrees, foreign
from codezero.rollouts.client import Cancelled, RolloutServer, ServerFailed
from codezero.rollouts.job import PromptResult, RolloutJob
from codezero.rollouts.snapshots import Snapshots
from codezero.runtime.console import printable
from codezero.types import SampledTokens

SLOW = 2.0
"""A server that takes so many times as long as the slowest of the others has its prompts sampled by these."""
LEAST_WAIT_S = 5.0
"""The shortest time that a server has before that, in seconds."""
OUT_S, MOST_OUT_S = 60.0, 960.0
"""How long a server that has failed is left out, in seconds: at first, doubled each time, and at most."""
NEWEST = 0.5
"""The weight of the latest measurement in a server's speed."""
RECOVERY = 1.02
"""The factor on the speed of a server with each job of which it gets nothing: after 35 jobs it counts as twice as fast,
so that some day it gets a prompt again, and may be faster by then."""
LOOK_S = 0.5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sampled:
    """A server's share of a job, the name of the weights that it is from, and how long it took with their upload."""

    done: Done
    weights: str
    seconds: float


@dataclass(slots=True)
class _Standing:
    """The facts known about a server."""

    tokens_per_s: float = 0.0
    """0 before it has sampled."""
    out_until_s: float = 0.0
    out_s: float = 0.0
    """How long it was left out last; 0 if it has worked since."""
    upload: threading.Thread | None = None
    """The thread that has gone on with an upload when its job did not wait for it any more."""

    def is_able(self) -> bool:
        is_uploading = self.upload is not None and self.upload.is_alive()
        return self.out_until_s <= time.monotonic() and not is_uploading


class RemoteEngine:
    """A rollout engine with the interface of `llm.sample.sample_groups`, which also samples while its caller does other
    things. It asks servers in a thread of its own, for one job after the other."""

    def __init__(
        self, servers: Sequence[RolloutServer], snapshots: Snapshots, *, local: SampleGroups = sample_groups
    ) -> None:
        """`local` samples where no server does."""
        self._standings = {server: _Standing() for server in servers}
        self._snapshots, self._local = snapshots, WithinMemory(local)
        self._jobs = queue.SimpleQueue[RolloutJob]()
        self._awaited: RolloutJob | None = None
        """The job that was waited for last."""
        self._is_closed = False
        threading.Thread(target=self._work, name="rollout servers", daemon=True).start()

    def publish(self, model: Any) -> str:
        """Makes the model's weights those that jobs begin with from now on, and returns their name."""
        return self._snapshots.take(model)

    def close(self) -> None:
        """Asks servers for nothing more, and frees the disk of what was kept for them, at the node's end."""
        self._is_closed = True
        self._snapshots.close()

    def begin(self, request: SampleRequest) -> RolloutJob:
        """Has rollouts sampled with the weights that are the newest when their turn comes, by a seed that is drawn
        now."""
        job = RolloutJob(request, request.draw_seed())
        self._jobs.put(job)
        return job

    def finish(self, job: RolloutJob, model: Any) -> list[tuple[list[SampledTokens], str]]:
        """Waits for a job. Returns the attempts at each prompt and the name of their weights; where no server has
        sampled, or one whose log-probs are not the model's, `model` does, which is the newest version."""
        on_step, params = job.request.on_step, job.request.params
        self._awaited = job
        while True:
            try:
                found = job.found.result(LOOK_S)
                break
            except NotYet:
                if on_step is not None:
                    on_step(min(job.steps.copy().values(), default=0), params.max_new_tokens)
        self._leave_out_liars(found, model, params.temperature)
        missing = [i for i, one in enumerate(found) if one is None]
        own = self._own(job, model, missing) if missing else []
        by_prompt, newest = dict(zip(missing, own, strict=True)), self._snapshots.name
        return [(by_prompt[i], newest) if one is None else (one.attempts, one.weights) for i, one in enumerate(found)]

    def _own(self, job: RolloutJob, model: Any, missing: Sequence[int]) -> list[list[SampledTokens]]:
        """Returns attempts at these prompts that are sampled here."""
        prompts = [job.request.prompts[i] for i in missing]
        generator = torch.Generator(device=model.device).manual_seed(job.seed)
        return self._local(model, replace(job.request, prompts=prompts, generator=generator))

    def sample_groups(self, model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
        """Samples as `llm.sample.sample_groups` does. Raises RolloutError: the weights cannot be written."""
        if not request.prompts:
            return []
        self.publish(model)
        return [attempts for attempts, _ in self.finish(self.begin(request), model)]

    def _leave_out_liars(self, found: list[PromptResult | None], model: Any, temperature: float) -> None:
        """Compares the tokens of each server, and the log-probs of its longest attempt and of one that nobody can
        foresee, with the model, and drops all attempts of those that disagree."""
        for server in {one.server for one in found if one is not None}:
            theirs = {i: one for i, one in enumerate(found) if one is not None and one.server is server}
            attempts = [(tokens, one) for one in theirs.values() for tokens in one.attempts]
            trouble = foreign(model, (tokens for tokens, _ in attempts))
            for tokens, one in (max(attempts, key=lambda pair: len(pair[0].completion_ids)), secrets.choice(attempts)):
                is_stale = one.weights != self._snapshots.name
                trouble = trouble or disagrees(model, tokens, temperature, is_stale=is_stale)
            if trouble:
                self._leave_out(server, trouble)
                for i in theirs:
                    found[i] = None
                continue
            if self._standings[server].out_s:
                logger.info("rollout server %s samples again", server.name)
            self._standings[server].out_s = 0.0

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job.found.set_result(self._sampled(job))
            except Exception as error:  # the thread's boundary: whoever waits for the job raises it
                job.found.set_exception(error)

    def _sampled(self, job: RolloutJob) -> list[PromptResult | None]:
        """Returns what servers have sampled; what is missing when none is able to and somebody waits, or at the end, is
        left."""
        found: list[PromptResult | None] = [None] * len(job.request.prompts)
        slow: set[RolloutServer] = set()
        while not self._is_closed and (missing := [i for i, one in enumerate(found) if one is None]):
            most = max(1, protocol.MAX_ROWS // job.request.num_generations)  # the rest has its turn later
            shares = {server: share[:most] for server, share in self._shares(missing, slow).items()}
            if shares:
                try:
                    slow |= self._share_out(job, shares, found)
                except RolloutError as error:
                    logger.warning("%s. Training is not affected: this node samples by itself", error)
                    break
            elif self._is_awaited():
                break
            else:  # nobody needs the rollouts yet, so a server may come back in time, and a slow one may take its time
                slow.clear()
                time.sleep(LOOK_S)
        return found

    def _is_awaited(self) -> bool:
        """Returns True if somebody waits for the job under way, or for a later one."""
        return self._awaited is not None and not self._awaited.found.done()

    def _shares(self, prompts: Sequence[int], slow: Collection[RolloutServer]) -> dict[RolloutServer, list[int]]:
        """Returns which server samples at which prompts: in proportion to speeds, equally before these are known."""
        able = [server for server, standing in self._standings.items() if standing.is_able() and server not in slow]
        speeds = {server: self._speed(server) for server in able}
        shares: dict[RolloutServer, list[int]] = {server: [] for server in speeds}
        for prompt in prompts if speeds else ():
            shares[min(shares, key=lambda one: (len(shares[one]) + 1) / speeds[one])].append(prompt)
        for server, share in shares.items():
            if not share:
                self._standings[server].tokens_per_s *= RECOVERY
        return {server: share for server, share in shares.items() if share}

    def _speed(self, server: RolloutServer) -> float:
        """Returns a server's speed; before it is known, the mean of the others."""
        known = [standing.tokens_per_s for standing in self._standings.values() if standing.tokens_per_s]
        return self._standings[server].tokens_per_s or (sum(known) / len(known) if known else 1.0)

    def _share_out(
        self, job: RolloutJob, shares: dict[RolloutServer, list[int]], found: list[PromptResult | None]
    ) -> set[RolloutServer]:
        """Has each server sample its share, and takes what comes. Returns those that were too slow beside others, or
        to get weights, for which it does not wait; one that still gets weights goes on with these, for a later job.
        Raises RolloutError, after the others: the weights for one cannot be written."""
        replies = queue.SimpleQueue[tuple[RolloutServer, _Sampled | Exception]]()
        job.steps = dict.fromkeys(shares, 0)
        began_s, slowest_s, under_way, slow = time.monotonic(), 0.0, set(shares), set()
        failure: Exception | None = None
        threads = {
            server: threading.Thread(
                target=self._ask, args=(job, server, share, replies), name=f"asks {server.name}", daemon=True
            )
            for server, share in shares.items()
        }
        for thread in threads.values():
            thread.start()
        while under_way:
            try:
                server, reply = replies.get(timeout=LOOK_S)
            except queue.Empty:
                waited_s = time.monotonic() - began_s
                is_late = slowest_s > 0 and waited_s > max(LEAST_WAIT_S, SLOW * slowest_s)
                uploading = {server for server in under_way if server.is_uploading}
                if is_late or (waited_s > client.STALLED_S and uploading == under_way and self._is_awaited()):
                    for server in under_way:
                        server.cancel()
                    for server in uploading:
                        self._standings[server].upload = threads[server]
                    under_way -= uploading
                    slow |= uploading
                continue
            under_way.discard(server)
            job.steps.pop(server, None)
            if isinstance(reply, Cancelled):
                slow.add(server)
                self._standings[server].tokens_per_s = self._speed(server) / 2
            elif isinstance(reply, Exception):
                failure = failure if isinstance(reply, ServerFailed) else reply
            else:
                slowest_s = max(slowest_s, time.monotonic() - began_s)
                self._note(server, reply)
                for prompt, attempts in job.attempts(shares[server], reply.done):
                    found[prompt] = PromptResult(attempts, reply.weights, server)
        if failure is not None:
            raise failure
        return slow

    def _ask(
        self,
        job: RolloutJob,
        server: RolloutServer,
        share: Sequence[int],
        replies: queue.SimpleQueue[tuple[RolloutServer, _Sampled | Exception]],
    ) -> None:
        try:
            began_s = time.monotonic()  # what an upload takes counts, so that slow links get less
            weights = server.bring(self._snapshots)
            done = server.sample(job.message(share, weights), lambda step: job.steps.__setitem__(server, step))
            replies.put((server, _Sampled(done, weights, time.monotonic() - began_s)))
        except Exception as error:  # the thread's boundary: without a reply nobody would hear of it
            if isinstance(error, ServerFailed) and not isinstance(error, Cancelled):
                self._leave_out(server, str(error))
            replies.put((server, error))

    def _note(self, server: RolloutServer, reply: _Sampled) -> None:
        """Takes a server's speed into account."""
        standing = self._standings[server]
        speed = sum(map(len, reply.done.ids)) / max(reply.seconds, 1e-3)
        standing.tokens_per_s += (NEWEST if standing.tokens_per_s else 1.0) * (speed - standing.tokens_per_s)

    def _leave_out(self, server: RolloutServer, trouble: str) -> None:
        standing = self._standings[server]
        standing.out_s = min(2 * standing.out_s, MOST_OUT_S) if standing.out_s else OUT_S
        standing.out_until_s = time.monotonic() + standing.out_s
        logger.warning(
            "rollout server %s is left out for %.0f s: %s. Training is not affected: other servers or this node do its "
            "work",
            server.name,
            standing.out_s,
            printable(trouble)[:300],
        )
