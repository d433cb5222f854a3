"""The trackers that the configuration enables."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from pathlib import Path

from codezero.config import TrackingConfig, Wandb
from codezero.observe.trackers.tensorboard import TensorBoard
from codezero.observe.trackers.threads import Tracker, TrackerThreads
from codezero.observe.trackers.wandb import WandB, WandbRun

logger = logging.getLogger(__name__)

RUN_ID_FILE = "wandb_run_id"


def trackers(
    tracking: TrackingConfig,
    settings: Mapping[str, object],
    state_dir: Path,
    name: str,
    last: int | None,
    kind: str,
) -> TrackerThreads:
    """Returns the trackers of a node. `last` is the number of its last saved round or batch; None starts a new run.

    `settings` are shown with the run. `kind` separates the numbers of a proposer or test writer from those of a solver
    with the same log folder. Never raises: problems are logged as warnings.
    """
    made = list[Tracker]()
    log_dir = Path(tracking.log_dir).expanduser().absolute()
    if tracking.tensorboard:
        made.append(TensorBoard(log_dir / "tensorboard" / kind, 0 if last is None else last + 1))
    if tracking.wandb is not Wandb.off:
        run = WandbRun(
            mode=tracking.wandb.value,
            folder=str(log_dir),
            project=tracking.wandb_project,
            entity=tracking.wandb_entity,
            name=tracking.wandb_name or f"{name} {kind}".strip(),
            run_id=run_id(state_dir, is_new=last is None),
            config=settings,
        )
        made.append(WandB(run))
    if tracking.prometheus_port:
        from codezero.observe.trackers.prometheus import Prometheus

        made.append(Prometheus(tracking.prometheus_host, tracking.prometheus_port))
    return TrackerThreads(made)


def run_id(state_dir: Path, *, is_new: bool) -> str:
    """Returns the id of the run, kept in the state folder, so that a restarted node continues the same curves."""
    path = state_dir / RUN_ID_FILE
    try:
        kept = "" if is_new or not path.exists() else path.read_text(encoding="ascii").strip()
        if kept.isalnum():
            return kept
        made = secrets.token_hex(4)
        path.write_text(made + "\n", encoding="ascii")
    except (OSError, ValueError) as error:
        made = secrets.token_hex(4)
        logger.warning("cannot keep %s (%s): the next start begins a new run in Weights & Biases", path, error)
    return made
