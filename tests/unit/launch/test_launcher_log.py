import re

from codezero.launch import launcher_log
from codezero.launch.launcher_log import LoggedConsole
from codezero.runtime import rotation

TIME = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "


def test_every_line_is_in_the_file_with_its_time_also_those_before_it_was_known(tmp_path, capsys):
    console = LoggedConsole()
    console.line("nothing was asked; defaults taken: a swarm of your own")
    console.log_to(tmp_path / "logs")
    console.line("the node crashed: exit code 3\n\x1b[2Jforged")
    lines = (tmp_path / "logs" / "swarm_launcher.log").read_text().splitlines()
    assert [re.sub(TIME, "", line) for line in lines] == [
        "nothing was asked; defaults taken: a swarm of your own",
        r"the node crashed: exit code 3\n\x1b[2Jforged",
    ]
    assert capsys.readouterr().out.startswith("nothing was asked")


def test_a_later_start_goes_on_in_the_file_which_stays_within_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(rotation.rotate, "__defaults__", (1000,))
    for _ in range(2):
        console = LoggedConsole()
        console.log_to(tmp_path)
        for number in range(50):
            console.line(f"line {number}")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) < 1100


def test_a_folder_that_cannot_be_made_costs_the_file_only(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    console = LoggedConsole()
    console.log_to(tmp_path / "file" / "logs")
    console.line("goes on")
    assert capsys.readouterr().out == "goes on\n"


def test_what_comes_before_the_folder_is_known_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher_log, "MAX_EARLY", 3)
    console = LoggedConsole()
    for number in range(9):
        console.line(str(number))
    console.log_to(tmp_path)
    assert len((tmp_path / "swarm_launcher.log").read_text().splitlines()) == 3
