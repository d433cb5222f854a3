"""The check for settings files that differ from those shipped."""

from __future__ import annotations

from collections.abc import Iterator

from codezero.config import checkout
from codezero.config.load import config_dir
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, info, ok, warning
from codezero.launch import configs

_SHOWN = 5


def check_files(case: Case) -> Iterator[Finding]:
    folder = config_dir()
    try:
        found = configs.edited()
    except OSError as fault:
        yield warning(
            "settings files",
            f"cannot read {fault.filename}: {fault.strerror}",
            "no node can start",
            "correct its rights",
        )
        return
    if found is None:
        yield info("settings files", f"those in {folder}; what was shipped is not known here (no git checkout)")
    elif found:
        listed = "; ".join(f"{name}: {how}" for name, how in list(found.items())[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield info(
            "settings files",
            f"{len(found)} in {folder} differ{'s' * (len(found) == 1)} from what was shipped: {listed}{more}",
            "yours are used",
            f"{configs.RESET_ENV}=1 {checkout.START} puts the shipped ones back and keeps a copy of yours",
        )
    else:
        yield ok("settings files", f"those in {folder} are as shipped")
