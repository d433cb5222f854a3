"""A program with a node's view and no node: `python -m tests.unit.views.terminal.program FOLDER WAY`."""

import os
import sys
import time
from pathlib import Path

from codezero.config import TerminalView
from codezero.observe.status import new_status
from codezero.runtime.console import Console
from codezero.runtime.stop import stop_on_signals, stop_with_parent
from codezero.views.watch import NodeView


def main(folder, way):
    console = Console()
    view = NodeView(console, TerminalView.auto)
    console.line("starts")
    status = new_status("solver", folder, folder)
    with stop_on_signals(view.leave):
        try:
            with view.showing("solver", folder, lambda: status):
                console.line("a line of the node")
                console.show("WARNING: with \x1b[2J in it", warns=True)
                if way == "raises":
                    time.sleep(1)
                    raise ValueError("a bug")
                if way == "dies":
                    time.sleep(1)
                    os.kill(os.getpid(), 9)
                if way == "breaks":
                    status = object()  # the view meets what it cannot show
                while True:
                    time.sleep(0.05)
        except KeyboardInterrupt:
            pass
        console.line("done: a summary")


def under_a_launcher(folder, way):
    from codezero.launch import supervisor
    from codezero.launch.child import ChildProgram

    command = [sys.executable, "-m", "tests.unit.views.terminal.program", str(folder), way, "child"]
    supervisor.FIRST_PAUSE_S = 60.0
    with supervisor.Supervisor(Console()) as launcher:
        launcher.add(ChildProgram(name="node", command=lambda left: command))
        print("launcher ends", launcher.run())


if __name__ == "__main__":
    folder, way, *place = sys.argv[1:]
    if place == ["child"]:
        stop_with_parent()
    (under_a_launcher if place == ["launcher"] else main)(Path(folder), way)
