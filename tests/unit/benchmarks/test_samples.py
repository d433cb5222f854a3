from benchmarks import harness, samples


def test_samples_of_several_folders_are_told_apart():
    result = harness.Result(
        benchmark="samples",
        arm="",
        settings={},
        seed=0,
        power=[],
        targets=[samples.KILLED],
        sittings=[],
        counts={"11": ["PPP", "FFF"]},
    )
    rows = samples.table({"first": result, "second": result}).splitlines()[2:]
    assert [row.split(":")[0] for row in rows] == ["| first"] * 4 + ["| second"] * 4
