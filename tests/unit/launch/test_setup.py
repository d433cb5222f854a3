"""scripts/setup.sh with a stand-in for the virtual environment's Python, whose pip prints what is wanted."""

import os
import shutil
import subprocess

import pytest
from packaging.specifiers import SpecifierSet

from tests.commands import executable
from tests.processes import wait_until
from tests.unit.launch.stand_in import ROOT
from tests.unit.launch.tty import Tty

SOURCED = f"set -euo pipefail; source {ROOT}/scripts/setup.sh"
PIP = """\
#!/bin/bash
[ "$1" != -c ] || exit {old}
echo "$*" >>asked.txt
{prints}
"""


def bash(folder, shell):
    """How these commands end in a folder, with the script's functions at hand."""
    command = f"{SOURCED}; {shell}"
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def pip_install(tmp_path):
    """Runs it with the lines or commands of the shell that pip consists of; returns the end of it and the arguments."""

    def install(prints, shell="pip_install x", old=0):
        executable(tmp_path / ".venv" / "bin" / "python", PIP.format(old=old, prints=prints))
        return bash(tmp_path, shell), (tmp_path / "asked.txt").read_text()

    return install


def test_without_a_python_it_is_told_where_a_mac_gets_one(tmp_path):
    command = f"source {ROOT}/scripts/setup.sh; find_python"
    ended = subprocess.run(
        [shutil.which("bash"), "-c", command], env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: no Python from 3.10 to 3.13 found: install one (for macOS from https://")
    assert ended.stderr.endswith("name it as PYTHON=/path/to/python\n")


def test_large_downloads_are_named_and_small_ones_are_not(pip_install):
    said = """cat <<'END'
Collecting torch==2.13.0+cpu
  Downloading torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl (191.8 MB)
Progress 65536 of 191794682
  Downloading https://index.example/files/idna-3.20-py3-none-any.whl (0.1 MB)
Installing collected packages: idna, torch
END"""
    ended, asked = pip_install(said)
    assert ended.stdout == "  downloading torch, 191 MB\n  unpacking, a minute or two\n"
    assert "--progress-bar raw x\n" in asked


def test_after_a_silence_it_is_told_how_far_pip_is(pip_install):
    said = "echo Progress 120000000 of 191794682; echo 'Collecting grpcio-tools>=1.33 (from hivemind)'; echo Other"
    ended, _ = pip_install(said, shell="SILENCE_S=0; pip_install x")
    assert ended.stdout == "  120 of 191 MB\n  smaller packages: grpcio-tools\n"


def test_an_old_pip_is_not_asked_for_what_it_does_not_know(pip_install):
    _, asked = pip_install("", old=1)
    assert "--progress-bar off x\n" in asked


def test_a_failure_of_pip_is_one_of_the_script(pip_install):
    ended, _ = pip_install("echo 'error: incomplete-download' >&2; exit 1", shell="pip_install x || echo failed")
    assert (ended.stdout, ended.stderr) == ("failed\n", "error: incomplete-download\n")


@pytest.mark.parametrize("wanted", ["CPU_ONLY=1", "has_nvidia_gpu() { true; }"])
def test_without_an_index_the_script_says_what_to_do(pip_install, wanted):
    shell = f'uname() {{ echo Linux; }}; {wanted}; install_torch "$(wanted_torch)"'
    ended, _ = pip_install("exit 1", shell=shell)
    assert ended.returncode == 1
    assert "check the connection (the CPU build is at https://download.pytorch.org/whl/cpu)" in ended.stderr


def test_a_socks_proxy_is_told_where_pip_fails(pip_install, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    ended, _ = pip_install("exit 1", "install_torch torch==2.13.0")
    assert ended.returncode == 1
    assert "pip cannot use the SOCKS proxy in ALL_PROXY or HTTPS_PROXY: name an http:// proxy" in ended.stderr


def test_a_virtual_environment_without_pip_that_somebody_else_made_is_kept(tmp_path):
    (tmp_path / ".venv" / "lib").mkdir(parents=True)  # as `uv venv` makes it
    for name in ("pyproject.toml", "scripts/constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    ended = bash(tmp_path, "set_up_venv")
    assert (ended.returncode, (tmp_path / ".venv" / "lib").is_dir()) == (1, True)
    assert ".venv is another program's and has no pip: move it away" in ended.stderr


def folder_with(tmp_path, python):
    """A checkout whose .venv has this program as its Python."""
    for name in ("pyproject.toml", "scripts/constraints.txt", ".venv/made-by-setup"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("")
    executable(tmp_path / ".venv/bin/python", f"#!/bin/bash\n{python}\n")
    return tmp_path


SET_UP = "CPU_ONLY=1 set_up_venv; echo done"
NO_CODEZERO = '[ "$*" != "-c import codezero" ] || exit 1'


def test_a_ctrl_c_ends_it_although_pip_has_an_exit_code_of_its_own(tmp_path):
    pip = """[ "$3" != install ] || { echo >>started; trap 'kill $!; exit 1' INT; sleep 60 & wait; }"""
    folder = folder_with(tmp_path, f"{NO_CODEZERO}\n{pip}")
    tty = Tty(["bash", "-c", f"{SOURCED}; {SET_UP}"], cwd=folder, env=dict(os.environ))
    wait_until(lambda: (folder / "started").exists())
    tty.type("\x03")
    tty.expect("stopped; the same command goes on where it was")
    assert tty.wait() == 130
    tty.close()
    assert (folder / "started").read_text() == "\n"
    assert not (folder / ".setting-up").is_symlink()


def test_of_two_starts_one_sets_up_and_what_a_killed_one_left_holds_nobody(tmp_path):
    folder = folder_with(tmp_path, NO_CODEZERO)
    (folder / ".setting-up").symlink_to(str(os.getpid()))
    ended = bash(folder, SET_UP)
    assert ended.returncode == 1
    assert f"process {os.getpid()} is setting up .venv: wait for it and start again" in ended.stderr
    (folder / ".setting-up").unlink()
    (folder / ".setting-up").symlink_to("99999999")
    ended = bash(folder, SET_UP)
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert not (folder / ".setting-up").is_symlink()


def test_a_set_up_that_was_killed_under_this_process_s_own_id_as_in_containers_holds_nobody(tmp_path):
    folder = folder_with(tmp_path, NO_CODEZERO)
    ended = bash(folder, f"ln -s $$ .setting-up; {SET_UP}")
    assert (ended.returncode, ended.stdout) == (0, "done\n")


def test_a_full_disk_or_a_folder_of_others_is_told_before_anything_is_installed(tmp_path):
    folder = folder_with(tmp_path, NO_CODEZERO)
    ended = bash(folder, f"ln() {{ return 1; }}; {SET_UP}")
    assert ended.returncode == 1
    assert f"cannot write in {folder}: give yourself the right to, or free disk" in ended.stderr
    assert "installing" not in ended.stderr


def test_a_torch_of_ones_own_stays_until_another_is_asked_for(tmp_path):
    folder = folder_with(tmp_path, 'echo "$*" >>asked.txt')
    for given in ("TORCH=torch==2.9", "TORCH=", "TORCH=torch==2.10", "TORCH="):
        (folder / "asked.txt").write_text("")
        assert bash(folder, f"{given}; {SET_UP}").returncode == 0
        installs = [line for line in (folder / "asked.txt").read_text().splitlines() if " torch" in line]
        assert [line.split()[-1] for line in installs] == [given.removeprefix("TORCH=")] * (given != "TORCH=")


def test_an_environment_whose_python_is_gone_is_made_anew_with_the_torch_that_it_had(tmp_path):
    folder = folder_with(tmp_path, "true")
    assert bash(folder, f"TORCH=torch==2.9; {SET_UP}").returncode == 0
    (folder / ".venv/bin/python").unlink()
    made = 'mkdir -p .venv/bin; printf "#!/bin/bash\\n" >.venv/bin/python; chmod +x .venv/bin/python'
    executable(folder / "python", f'#!/bin/bash\n[ "$1" != -m ] || {{ {made}; }}\n')
    ended = bash(folder, f"export PYTHON=$PWD/python; {SET_UP}")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "done")
    assert "setting up .venv" in ended.stderr
    assert wanted_torch(folder, "CPU_ONLY=1") == "torch==2.9"


GPUS = "for gpu in 0 1 2 3 4 5 6 7; do printf 'GPU %s: NVIDIA H100\\n' $gpu; sleep 0.05; done"
CUDA, CPU = "torch==2.13.0,!=2.13.0+cpu", "torch==2.13.0+cpu"


@pytest.mark.parametrize(
    ("machine", "wanted"),
    [
        (f"nvidia-smi() {{ {GPUS}; }}", CUDA),
        ("nvidia-smi() { echo 'No devices were found'; }", CPU),
        ("nvidia-smi() { echo 'it has failed' >&2; return 9; }", CPU),
        (f"CPU_ONLY=1; nvidia-smi() {{ {GPUS}; }}", CPU),
        (f"TORCH=torch==2.9; nvidia-smi() {{ {GPUS}; }}", "torch==2.9"),
        ("uname() { echo Darwin; }", CUDA),
    ],
)
def test_torch_is_that_of_the_machine(tmp_path, machine, wanted):
    assert wanted_torch(tmp_path, machine) == wanted


def test_a_gpu_that_comes_later_is_used_and_one_that_goes_fetches_nothing(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "installed").write_text(f"1 2 {tmp_path} {CPU}")
    assert wanted_torch(tmp_path, f"nvidia-smi() {{ {GPUS}; }}") == CUDA
    (tmp_path / ".venv" / "installed").write_text(f"1 2 {tmp_path} {CUDA}")
    assert wanted_torch(tmp_path, "nvidia-smi() { return 9; }") == CUDA


def test_pip_does_not_take_the_cpu_build_for_the_one_with_cuda():
    wanted = SpecifierSet(CUDA.removeprefix("torch"))
    assert [wanted.contains(version) for version in ("2.13.0", "2.13.0+cu128", "2.13.0+cpu")] == [True, True, False]


def wanted_torch(folder, machine):
    return bash(folder, f"uname() {{ echo Linux; }}; {machine}; wanted_torch").stdout.strip()
