"""Makes one upload in a separate process: `python -m codezero.publish.upload`, with a request on standard input.

The hub's library reads its settings from the environment at import, retries without a limit of ours, and keeps threads
that a process waits for at its end; this process can be killed at any moment. It ends by itself when its standard input
is closed. The request is one line of JSON, with the token; the answer is one line of JSON, without it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codezero.errors import causes, first_line
from codezero.publish.card import REPOSITORY
from codezero.publish.hub import UploadResult
from codezero.runtime import proxies
from codezero.runtime.http_dates import retry_after_s
from codezero.runtime.stop import stop_with_parent

STALE = ["*.safetensors", "*.safetensors.index.json", "adapter_config.json"]
"""Files of earlier pushes that are deleted unless this one has them: a model must not have an adapter beside it."""
_RATE_LIMIT = re.compile(r'"\w+"\s*;\s*r\s*=\s*\d+\s*;\s*t\s*=\s*(\d+)')
"""The hub's RateLimit header; group 1 is the seconds until requests are allowed again."""
_MAX_DETAIL = 200


class _Busy(Exception):
    """Raised if the hub is too busy, through the hub's library, which would sleep for as long as the server says."""

    def __init__(self, status: int, wait_s: float | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.wait_s = status, wait_s


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    stop_with_parent()
    os.nice(10)
    answer = asdict(upload(request))
    # A second safeguard: no error of the library or the hub is known to repeat the token.
    plain = {key: v.replace(request["token"], "[token]") if isinstance(v, str) else v for key, v in answer.items()}
    sys.stdout.write(json.dumps(plain) + "\n")
    sys.stdout.flush()
    os._exit(0)  # does not wait for threads of the hub's library


def upload(request: Mapping[str, Any]) -> UploadResult:
    """Pushes a folder in one commit."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError, OfflineModeIsEnabled

    repo: str = request["repo"]
    if why := proxies.why_unusable():
        return UploadResult(repo=repo, detail=why)
    _set_limits(request["timeout_s"])
    api = HfApi(endpoint=request["endpoint"], token=request["token"])
    try:
        if "/" not in repo:
            repo = f"{api.whoami()['name']}/{repo}"
        folder = Path(request["folder"])
        text = request["card"].replace(REPOSITORY, repo)
        (folder / "README.md").write_text(text, encoding="utf-8")
        api.create_repo(repo, private=request["private"], exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            commit_message=request["message"],
            delete_patterns=list(STALE),
        )
    # HTTPError is httpx's, and the parent of the hub's own errors; the library raises ValueError and RuntimeError for
    # answers that it does not understand, and for a file that could not be sent
    except (HTTPError, OfflineModeIsEnabled, _Busy, OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        return _failure(repo, error)
    return UploadResult(repo=repo, url=commit.commit_url)


def _set_limits(timeout_s: float) -> None:
    """Gives every request of the hub's library a timeout, and keeps the library from waiting for a busy hub."""
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils import get_session

    session = get_session()
    kind, hooks = type(session), session.event_hooks  # of httpx or httpx2, whichever the library uses
    hooks = {**hooks, "response": [*hooks.get("response", []), _raise_if_busy]}
    set_client_factory(lambda: kind(event_hooks=hooks, follow_redirects=True, timeout=timeout_s))


def _raise_if_busy(response: Any) -> None:
    if response.status_code == 429 or response.status_code >= 500:
        raise _Busy(response.status_code, wait_of(response.headers, time.time()))


def wait_of(headers: Mapping[str, str], now_s: float) -> float | None:
    """Returns the seconds that an answer asks to wait by Retry-After, else by RateLimit; None if it does not."""
    if said := headers.get("retry-after", ""):
        return retry_after_s(said, now_s)
    limit = _RATE_LIMIT.search(headers.get("ratelimit", "")[:_MAX_DETAIL])
    return float(limit[1][:9]) if limit else None


def _failure(repo: str, error: BaseException) -> UploadResult:
    """Returns the failure: by the hub's answer behind an error, which its library may have wrapped, else by the first
    cause's text."""
    found = causes(error)
    for cause in found:
        if isinstance(cause, _Busy):
            return UploadResult(repo=repo, status=cause.status, wait_s=cause.wait_s)
        response = getattr(cause, "response", None)
        if response is not None:
            if "authorization" not in response.request.headers:
                # The storage of large files, which never sees the token. Its links expire after 15 minutes, also while
                # other files are sent.
                return UploadResult(repo=repo, detail=f"its storage says HTTP {response.status_code}")
            said = ((getattr(other, "server_message", None) or "").strip().splitlines() for other in found)
            detail = next((lines[0][:_MAX_DETAIL] for lines in said if lines), "")
            return UploadResult(repo=repo, status=response.status_code, detail=detail)
    return UploadResult(repo=repo, detail=first_line(found[-1])[:_MAX_DETAIL])


if __name__ == "__main__":
    main()
