import pytest

from codezero.runtime import limits

GIB = 2**30


def group(folder, **files):
    """A control group with files such as `memory_max`, named with a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{text}\n")


def memory(folder, most, used, cached=0):
    stat = f"anon 1\ninactive_file {cached}\nactive_file 0"
    group(folder, memory_max=most, memory_current=used, memory_stat=stat)


def left(root, groups):
    (root / "groups").write_text(groups)
    return limits.memory_left(root, root / "groups")


def test_a_container_has_its_limit_at_the_root(tmp_path):
    memory(tmp_path, 4 * GIB, 3 * GIB, cached=GIB)
    assert left(tmp_path, "0::/\n") == 2 * GIB
    assert left(tmp_path, "0::/docker/not/mounted/here\n") == 2 * GIB


def test_the_tightest_of_the_groups_above_a_job_holds(tmp_path):
    memory(tmp_path / "slurm" / "job" / "step", "max", GIB)
    memory(tmp_path / "slurm" / "job", 8 * GIB, GIB)
    memory(tmp_path / "slurm", 16 * GIB, 12 * GIB)
    assert left(tmp_path, "0::/slurm/job/step\n") == 4 * GIB
    assert left(tmp_path, "0::/elsewhere\n") == limits.UNLIMITED


def test_version_1_has_a_folder_of_its_own_for_memory(tmp_path):
    job = tmp_path / "memory" / "job"
    group(job, memory_limit_in_bytes=8 * GIB, memory_usage_in_bytes=GIB, memory_stat="active_file 0")
    assert left(tmp_path, "9:cpu,cpuacct:/other\n4:memory:/job\n") == 7 * GIB
    assert left(tmp_path, "4:memory:/\n") == limits.UNLIMITED


def test_in_version_1_cached_pages_of_the_groups_below_are_free_too(tmp_path):
    stat = f"inactive_file 0\nactive_file 0\ntotal_inactive_file {2 * GIB}\ntotal_active_file {GIB}"
    job = tmp_path / "memory" / "job"
    group(job, memory_limit_in_bytes=8 * GIB, memory_usage_in_bytes=7 * GIB, memory_stat=stat)
    assert left(tmp_path, "4:memory:/job/step\n") == 4 * GIB


@pytest.mark.parametrize("text", ["", "nonsense", "0::/../../etc\n", "4:memory\n"])
def test_without_groups_that_can_be_read_nothing_is_limited(tmp_path, text):
    group(tmp_path, memory_max="x", memory_current="y", memory_stat="z")
    assert left(tmp_path, text) == limits.UNLIMITED
    assert limits.memory_left(tmp_path / "none", tmp_path / "none") == limits.UNLIMITED


@pytest.mark.parametrize(
    ("text", "quota"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("1 0", None), ("x y", None)]
)
def test_a_share_of_the_cores(tmp_path, text, quota):
    group(tmp_path / "job", cpu_max=text)
    (tmp_path / "groups").write_text("0::/job/step\n")
    assert limits.cpu_quota(tmp_path, tmp_path / "groups") == quota
    assert limits.cpu_quota(tmp_path / "none", tmp_path / "groups") is None


@pytest.mark.parametrize(("most", "quota"), [("50000", 0.5), ("-1", None)])
def test_a_share_of_the_cores_in_version_1(tmp_path, most, quota):
    group(tmp_path / "cpu" / "job", cpu_cfs_quota_us=most, cpu_cfs_period_us=100000)
    (tmp_path / "groups").write_text("3:cpu,cpuacct:/job\n")
    assert limits.cpu_quota(tmp_path, tmp_path / "groups") == quota


@pytest.mark.parametrize(
    ("affinity", "quota", "physical", "logical"), [(32, None, 16, 32), (32, 2.0, 2, 2), (4, 6.0, 4, 4), (32, 0.3, 1, 1)]
)
def test_as_many_cores_as_affinity_and_quota_leave(monkeypatch, affinity, quota, physical, logical):
    monkeypatch.setattr(limits.psutil, "cpu_count", lambda logical=True: 32 if logical else 16)
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda _: set(range(affinity)), raising=False)
    monkeypatch.setattr(limits, "cpu_quota", lambda: quota)
    assert limits.usable_cores() == physical
    assert limits.usable_cores(logical=True) == logical
