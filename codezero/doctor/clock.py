"""The check of this machine's clock against the times in the replies to other checks; no time server is asked."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Iterator

from codezero.config import Network
from codezero.doctor.case import Case
from codezero.doctor.finding import Finding, error, info, ok, warning

SWARM_S = 60.0
"""The largest difference of clocks that nodes of a native swarm accept, in seconds."""
GENRL_S = 3.0
"""The largest difference of clocks that hivemind's nodes accept, in seconds."""
_SET = "set the clock, and keep it so: `timedatectl set-ntp true`, or the settings for date and time"


def check(case: Case) -> Iterator[Finding]:
    synchronised = ntp(case)
    if synchronised is False:
        yield info("clock", "this machine does not keep its clock by a time server (NTP)", "it drifts", _SET)
    if not case.skews:
        yield info("clock", "no server was reached that told the time", "whether the clock is right is not known")
        return
    skew = statistics.median(skew for _, skew in case.skews)
    who = ", ".join(name for name, _ in case.skews[:3])
    network = case.config.swarm.network
    found = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} {who}"
    if abs(skew) > SWARM_S and network is not Network.none:
        yield error("clock", found, "others drop what this node publishes, and it drops theirs", _SET)
    elif abs(skew) > SWARM_S:
        yield warning("clock", found, "certificates and dates in logs are wrong; in a swarm it would be alone", _SET)
    elif abs(skew) > GENRL_S:
        make = warning if network is Network.genrl else info
        yield make("clock", found, "nodes of GenRL want it within 3 seconds; others within a minute", _SET)
    else:
        yield ok("clock", f"within {GENRL_S:.0f} s of {who}")


def ntp(case: Case) -> bool | None:
    """Returns whether the system reports its clock as synchronised, or None where it reports nothing."""
    program = shutil.which("timedatectl", path=case.environment.get("PATH"))
    if program is None:
        return None
    try:
        said = subprocess.run(
            [program, "show", "--property=NTPSynchronized", "--value"],
            capture_output=True,
            text=True,
            timeout=1.5,
            env=case.child_environment,
            stdin=subprocess.DEVNULL,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return {"yes": True, "no": False}.get(said)
