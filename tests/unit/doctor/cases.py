"""A node to be examined, in a folder of the test's own."""

import os

from codezero.config.load import load_config
from codezero.doctor.case import ExaminedNode
from codezero.doctor.finding import Severity


def case_of(folder, *settings, **environment):
    """Environment: PATH, HOME and what is given, nothing of the test's own."""
    own = [
        f"state_dir={folder / 'state'}",
        f"tracking.log_dir={folder / 'logs'}",
        f"model.cache_dir={folder / 'cache'}",
    ]
    own += [f"swarm.identity_path={folder / 'swarm.pem'}", f"ledger.keystore={folder / 'wallet.json'}"]
    given = [*own, f"ledger.login_dir={folder / 'login'}", *settings]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), **environment}
    return ExaminedNode(config=load_config(given), environment=environment, settings=given)


def told(findings, severity):
    """Those of a severity, as one text each."""
    wanted = Severity(severity)
    return [f"{one.name}: {one.found} | {one.means} | {one.do}" for one in findings if one.severity is wanted]
