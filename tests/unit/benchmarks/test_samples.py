from benchmarks import samples
from tests.unit.benchmarks.builders import result


def test_samples_of_several_folders_are_told_apart():
    found = result({"11": ["PPP", "FFF"]}, targets=[samples.KILLED])
    rows = samples.table({"first": found, "second": found}).splitlines()[2:]
    assert [row.split(":")[0] for row in rows] == ["| first"] * 4 + ["| second"] * 4
