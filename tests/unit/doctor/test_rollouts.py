"""What the doctor says of rollout servers, as real ones on loopback."""

import msgspec
import pytest

from codezero.config import checkout
from codezero.doctor import rollouts
from codezero.rollouts import rollout_file
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.server import make_app
from tests.rollout_servers import TOKEN, sampler, served
from tests.unit.doctor.cases import case_of, told
from tests.unit.doctor.test_servers import answering, closed_port


def found(folder, url, token=TOKEN, *settings):
    """What is said of one server, by severity."""
    file = folder / "pc.yaml"
    rollout_file.write(file, RolloutFile(url=url, token=token))
    return examined(folder, file, *settings)


def examined(folder, file, *settings):
    case = case_of(folder, "rollout.engine=remote", f"rollout.servers=[{file}]", *settings)
    findings = list(rollouts.check(case))
    assert len(findings) == 1
    return {severity: told(findings, severity) for severity in ("ok", "warning", "error") if told(findings, severity)}


@pytest.fixture(scope="module")
def url():
    with served(make_app(sampler(), TOKEN)) as made:
        yield made


def test_a_server_that_answers_with_this_node_s_model_is_fine(tmp_path, url):
    (said,) = found(tmp_path, url, TOKEN, "model.name=tiny")["ok"]
    assert said.startswith("rollout server: pc.yaml: it serves tiny by transformers, idle 100% of its time")


def test_one_with_another_model_is_told_with_both_names(tmp_path, url):
    (said,) = found(tmp_path, url, TOKEN, "model.name=other")["warning"]
    assert "it serves tiny, and this node learns other" in said
    assert said.endswith("start it with model.name=other")


def test_a_token_of_another_start_is_a_file_to_copy_again(tmp_path, url):
    (said,) = found(tmp_path, url, "an-older-token")["warning"]
    assert "401" in said
    assert "copy pc.yaml again" in said
    assert "an-older-token" not in said


def test_nobody_there_is_told_with_what_to_start(tmp_path):
    (said,) = found(tmp_path, f"http://127.0.0.1:{closed_port()}")["warning"]
    assert "refuses the connection" in said
    assert f"`{checkout.COMMAND} rollout serve`" in said


STATUS = {"version": 2, "model": "tiny", "base": "b", "weights": "b", "engine": "e", "busy_s": 0.0, "up_s": 1.0}
OTHERS = {
    "another version": (msgspec.json.encode(STATUS), "use the same codezero on both"),
    "no status": (b"<html>", "cannot be read"),
    "a huge one": (b" " * 100_000, "more than 4096 bytes"),
}


@pytest.mark.parametrize(("body", "says"), OTHERS.values(), ids=OTHERS)
def test_a_server_of_another_kind_is_told(tmp_path, body, says):
    with answering(body) as other:
        (said,) = found(tmp_path, other)["warning"]
    assert says in said


@pytest.mark.parametrize("content", [None, "url: [", "url: ftp://x:1\ntoken: t\n"])
def test_a_missing_or_damaged_file_lets_no_node_start(tmp_path, content):
    file = tmp_path / "pc.yaml"
    if content is not None:
        file.write_text(content)
    (said,) = examined(tmp_path, file)["error"]
    assert "no node can start" in said
    assert "copy it again" in said


def test_two_files_of_one_server_let_no_node_start(tmp_path, url):
    files = [tmp_path / "pc.yaml", tmp_path / "again.yaml"]
    for file in files:
        rollout_file.write(file, RolloutFile(url=url, token=TOKEN))
    case = case_of(tmp_path, "rollout.engine=remote", f"rollout.servers=[{files[0]},{files[1]}]", "model.name=tiny")
    findings = list(rollouts.check(case))
    assert len(findings) == 2
    assert len(told(findings, "ok")) == 1
    (said,) = told(findings, "error")
    assert f"rollout.servers={files[1]} is not possible: its server, at {url}, is named by another one too" in said
    assert "no node can start" in said


def test_a_node_that_samples_by_itself_has_no_servers_to_look_at(tmp_path):
    assert list(rollouts.check(case_of(tmp_path))) == []
