"""Results of what was not run, and the options for folders of a test's own."""

from benchmarks.harness import Result


def result(counts, settings=None, targets=()):
    """A result with what a table reads of it; the rest is empty."""
    return Result(
        benchmark="",
        arm="",
        settings=settings or {},
        seed=0,
        power=[],
        targets=list(targets),
        sittings=[],
        counts=counts,
    )


def folders(tmp_path):
    return ("--results", str(tmp_path / "results"), "--state", str(tmp_path / "state"))
