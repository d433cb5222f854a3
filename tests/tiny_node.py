"""The command of a node on a tiny random model, and what it prints and leaves as files of JSON lines."""

import json
import re
import sys


def settings(model):
    """Short rounds on the CPU, of nothing but two tasks."""
    return (
        *(f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", "train.method=full"),
        *("swarm.num_local=2", "probe.share=0"),
    )


def command(model, folder, *more):
    """A node by itself with state and logs in the folder. Of a setting that is given twice the later one counts."""
    own = (f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs")
    return [sys.executable, "-m", "codezero", "run", "preset=local", *settings(model), *own, *more]


def peer_id(output):
    """The peer id that a node in this output says it has."""
    (found,) = set(re.findall(r"^peer: (\w+),", output, re.M))
    return found


def lines(file):
    """What the whole lines of a file hold, of which the last may be on its way; none without the file."""
    whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def reports(folder):
    """Those of the rounds that a node in the folder has played."""
    return lines(folder / "logs" / "rounds.jsonl")


def without_times(reports):
    """Reports without what differs between equal runs."""
    return [{**one, "seconds": None, "finished_at_s": None} for one in reports]
