import struct
import sys
import zlib
from xml.etree import ElementTree

import pytest

from codezero.errors import CommandError
from codezero.observe.probes import PAIR
from codezero.views.report import picture
from codezero.views.report.summary import gather
from codezero.views.runs import find_runs
from tests.swarm_folder import verifier
from tests.unit.observe import test_probes
from tests.unit.views.report import runs

SVG = "{http://www.w3.org/2000/svg}"


def facts(folder):
    return [gather(run) for run in find_runs(folder)]


def chunks(data):
    """(type, content) of a PNG's chunks, their checksums checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, []
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + content),)
        found.append((kind, content))
        at += 12 + length
    return found


def titles(folder):
    drawing = ElementTree.fromstring(picture.svg(facts(folder)))
    return [text.text for text in drawing.findall(f"{SVG}text") if text.get("font-weight") == "bold"]


def test_a_picture_is_a_png_of_a_sound_size_with_a_note_of_who_made_it(tmp_path):
    runs.solver(tmp_path, [0.1 * number for number in range(30)])
    found = chunks(picture.png(facts(tmp_path / "state")))
    width, height = struct.unpack(">II", found[0][1][:8])
    assert width == 1904
    assert 1000 < height < 4000
    assert found[1] == (b"tEXt", b"Software\0codezero report")
    assert found[-1] == (b"IEND", b"")


def test_it_has_text_where_the_system_has_no_fonts(tmp_path):
    """System fonts are never used, so a picture without text is what a machine without fonts would give too."""
    runs.solver(tmp_path, [0.5, 0.6])
    one = picture.png(facts(tmp_path / "state"))
    runs.solver(tmp_path / "b", [0.5, 0.6])
    (other,) = facts(tmp_path / "b" / "state")
    assert picture.png([other]) == one
    object.__setattr__(other, "animal", "calm quiet owl")
    assert picture.png([other]) != one


def test_a_solver_has_six_curves(tmp_path):
    runs.solver(tmp_path, [0.1, 0.2])
    assert titles(tmp_path / "state") == [
        *("Report of thorny fishy meerkat", "Reward", "pass@4 and average@4", "Reward by part"),
        *("Groups: own and of peers", "Seconds by stage", "Tokens per second"),
    ]


def test_a_swarm_has_all_rewards_in_one_and_its_proposers_level(tmp_path):
    for number in range(1, 8):
        runs.solver(tmp_path / f"node-{number}", [0.1, 0.2])
    runs.proposer(tmp_path / "proposer-1", 2)
    assert titles(tmp_path) == [
        *("Report of 7 solvers and 1 proposer", "Reward of each node", "node-1: pass@4 and average@4"),
        *("node-2: pass@4 and average@4", "node-3: pass@4 and average@4", "node-4: pass@4 and average@4"),
        "proposer-1: Level",
    ]


@pytest.mark.parametrize("rewards", [[], [None]])
def test_a_run_without_values_has_a_picture_too(tmp_path, rewards):
    runs.solver(tmp_path, rewards, tokens_per_s=0.0, reward_parts={}, seconds={})
    assert picture.png(facts(tmp_path / "state"))[:4] == b"\x89PNG"


def test_only_a_proposer(tmp_path):
    runs.proposer(tmp_path, 2)
    assert titles(tmp_path / "state")[1:] == [
        *("proposer: Level", "proposer: Success by level", "proposer: Problems: published and rejected"),
        *("proposer: Judged by solvers", "proposer: Share with signal", "proposer: Proposer's reward and loss"),
    ]


def test_only_a_test_writer_whose_solver_learns(tmp_path):
    test_probes.write(verifier(tmp_path, 2), test_probes.passes(0.25, 0.75, 0.75), PAIR)
    assert titles(tmp_path / "state")[1:3] == ["verifier: Held-out problems solved", "verifier: Reward of test cases"]
    assert ">It learns.<" in picture.svg(facts(tmp_path / "state"))


def test_hostile_names_stay_text(tmp_path):
    name = "node\n</text><image href='file:///etc/passwd'/>&xxe;]]>\u202e\x01"
    runs.solver(tmp_path, [0.1] * 3, reward_parts={name: 0.5}, seconds={name: 1.0})
    drawing = ElementTree.fromstring(picture.svg(facts(tmp_path / "state")))
    assert {element.tag.removeprefix(SVG) for element in drawing.iter()} <= {
        *("svg", "text", "title", "desc", "path", "defs", "pattern", "rect")
    }


@pytest.mark.parametrize("missing", ["resvg_py", picture.FONT])
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, missing):
    runs.solver(tmp_path, [0.5])
    if missing == "resvg_py":
        monkeypatch.setitem(sys.modules, missing, None)
    else:
        monkeypatch.setattr(picture, "FONT", "no_such_font")
    with pytest.raises(CommandError, match=r"install the extra report"):
        picture.png(facts(tmp_path / "state"))
