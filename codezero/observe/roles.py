"""The roles of nodes, and where a node of each role keeps its state and its log."""

from __future__ import annotations

from pathlib import Path

ROLES = SOLVER, PROPOSER, VERIFIER = "solver", "proposer", "verifier"


def folder_of(state: Path, role: str) -> Path:
    """Returns the state folder of a node of this role. All but a solver have a subfolder of `state`, so that nodes of
    several roles may have the same state_dir."""
    return state if role == SOLVER else state / role


def log_name(role: str) -> str:
    """Returns the name of the log of a node of this role."""
    return "swarm.log" if role == SOLVER else f"{role}.log"
