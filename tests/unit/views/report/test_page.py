import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from codezero.observe.probes import PAIR
from codezero.runtime.console import printable
from codezero.views.report.measured import compare, read_measured
from codezero.views.report.page import MAX_RUNS, page
from codezero.views.report.summary import gather
from codezero.views.runs import find_runs
from tests.swarm_folder import append, verifier
from tests.unit.observe import test_batches, test_probes
from tests.unit.views.report import runs
from tests.unit.views.report.runs import EVIL

VOID = {"meta", "br", "img", "link", "input", "hr", "path", "rect"}
HARMLESS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "article", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "p", "b", "code", "pre", "ul", "li", "dl", "dt", "dd", "div", "span"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "figure", "figcaption"),
    *("svg", "path", "rect", "text", "desc", "defs", "pattern"),
}


class Census(HTMLParser):
    """Which elements and attributes a page has, and whether every element that begins ends."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.open, self.text = set(), set(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def report(folder, comparison=None):
    return page([gather(run) for run in find_runs(folder)], comparison)


def words_of(text):
    return " ".join(" ".join(Census(text).text).split())


def hostile(folder):
    """A swarm in which every text that others can choose is an attack."""
    logs = runs.solver(folder / "node-1", [0.1, 0.2, 0.3], external_groups={EVIL: 1}, dropped={EVIL: 1}, skipped=EVIL)
    for number in (1, 2):
        runs.attempts(logs, number, EVIL, [0.1 * number, 0.2], text=EVIL, reason=EVIL)
    runs.proposer(folder / "proposer-1", 2, rejected={EVIL: 1}, dropped={EVIL: 1}, reason=EVIL, network=EVIL)
    settings = {EVIL: EVIL, "model": EVIL}
    return [
        read_measured(runs.results(folder / name, {EVIL: [passed]}, settings))
        for name, passed in (("before", False), ("after", True))
    ]


def test_hostile_text_stays_text(tmp_path):
    text = report(tmp_path, compare(*hostile(tmp_path)))
    found = Census(text)
    assert found.elements <= HARMLESS
    assert not {name for _, name in found.attributes if name.startswith("on") or name in ("style", "src", "href")}
    assert {attribute for attribute in found.attributes if attribute[0] == "meta"} == {
        *(("meta", "charset"), ("meta", "name"), ("meta", "content"), ("meta", "http-equiv"))
    }
    assert text.count("&lt;script&gt;alert(1)") >= 15
    assert "49" not in re.findall(r"\$\{?(\d+)", text)  # nobody's braces are a template
    assert printable(text.replace("\n", "").replace("\t", "")) == text.replace("\n", "").replace("\t", "")
    assert "\u202e" not in text
    assert "\\u202e" in text


def test_nothing_is_loaded_and_nothing_can_be(tmp_path):
    text = report(tmp_path, compare(*hostile(tmp_path)))
    outside = [
        address for address in re.findall(r"(?:https?:)?//[\w.]+", text) if not "//evil.example".startswith(address)
    ]
    assert outside == []
    assert "url(" not in re.sub(r"url\(#chart-[0-9a-f]{8}-\d\)", "", text)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src &#39;none&#39;; style-src &#39;sha256-{digest}&#39;; base-uri &#39;none&#39;; "
        "form-action &#39;none&#39;"
    )


def test_a_solver_has_its_name_its_facts_its_curves_and_what_changed(tmp_path):
    logs = runs.solver(tmp_path, [0.1] * 20 + [0.3] * 20 + [0.5] * 20, num_external_groups=1, skipped=None)
    test_probes.write(logs, test_probes.passes(0.25, 0.75, 0.75))
    runs.attempts(logs, 1, "Add one.", [0.1, 0.1])
    runs.attempts(logs, 5, "Add one.", [0.9, 0.9], reason="f(1) is 3")
    text = report(tmp_path / "state")
    found = words_of(text)
    assert "Report of thorny fishy meerkat" in found
    assert "It learns. It learns: of solutions to 40 problems it never trains on, 25.0 % were right at the s" in found
    assert "60 (1 to 60)" in found
    assert "2025-10-09T08:53:19Z to 2025-10-09T09:53:20Z" in found
    assert "all weights" in found
    for chart in (
        "Held-out problems solved",
        "Reward",
        "pass@4 and average@4",
        "Reward by part",
        "Groups: own and of peers",
        "Dropped, by reason",
    ):
        assert f"<figcaption>{chart}</figcaption>" in text
    assert "1 task came again" in found
    assert "first attempt, round 1 Reward +0.10" in found
    assert "last attempt, round 5 Reward +0.90" in found
    assert "test 1: fail, f(1) is 3" in found
    assert "zero_advantage 60 all solutions equally good: nothing to learn from" in found


def test_the_round_of_the_best_checkpoint_is_told(tmp_path):
    runs.solver(tmp_path, [0.1, 0.2])
    assert "best checkpoint" not in words_of(report(tmp_path / "state"))
    best = tmp_path / "state" / "checkpoints" / "best"
    best.mkdir(parents=True)
    (best / "manifest.json").write_text('{"round": 1}')
    assert "best checkpoint of round 1, where its probes were highest" in words_of(report(tmp_path / "state"))


def test_a_swarm_has_a_section_for_each_and_titles_that_differ(tmp_path):
    for name in ("node-1", "node-2"):
        runs.solver(
            tmp_path / name, [0.5] * 30, external_groups={runs.PEER: 2}, skipped="every group has equal rewards"
        )
    runs.proposer(tmp_path / "proposer-1", 3)
    text = report(tmp_path)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    found = words_of(text)
    assert "Report of 2 solvers and 1 proposer" in found
    assert "Of 2 solvers: 2 of which it is too early to tell." in found
    assert "Reward of each node" in found
    assert "every group has equal rewards 30" in found
    assert "thorny fishy meerkat 60 QmYyQSo" in found
    assert "proposer-1: Level" in found
    assert "12 written, 9 published" in found
    assert "unreadable 3" in found


def test_a_node_that_trains_alone_is_nobodys_peer_and_no_path_of_its_machine_is_told(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    state = runs.state_of(tmp_path)
    with runs.StatusFile(state, runs.new_status("solver", state, logs)) as status:
        status.update(peer_id="local", model="/home/me/models/tiny", method="lora")
    append(logs / "rounds.jsonl", runs.test_monitor.report(1))
    text = report(state)
    found = words_of(text)
    assert "Report of solver" in found
    assert "model tiny trained adapters (LoRA)" in found
    assert "peer id" not in found
    assert "/home" not in text
    assert str(tmp_path) not in text


def test_skipped_updates_are_counted_by_reason(tmp_path):
    logs = runs.solver(tmp_path, [])
    skipped = "every group has equal rewards"
    append(logs / "rounds.jsonl", *(runs.test_monitor.report(number, skipped=skipped) for number in (1, 2)))
    assert "Updates left out reason count every group has equal rewards 2" in words_of(report(tmp_path / "state"))


def test_a_test_writer_beside_a_solver(tmp_path):
    runs.solver(tmp_path / "node-1", [0.5] * 3)
    test_probes.write(verifier(tmp_path / "verifier-1", 2), test_probes.passes(0.25, 0.75, 0.75), PAIR)
    found = words_of(report(tmp_path))
    assert "Of 2 solvers: 1 learning, 1 of which it is too early to tell." in found
    assert "verifier-1: It learns: of solutions to 40 problems" in found
    assert "verifier-1: Held-out problems solved" in found
    assert "Report of 1 solver and 1 verifier" in found
    assert "verifier-1: Reward of test cases" in found
    assert "verifier-1: Attempts of the solver" in found
    assert "answers of test cases 32" in found


def test_only_a_proposer(tmp_path):
    runs.proposer(tmp_path, 2, writer=test_batches.WRITER)
    found = words_of(report(tmp_path / "state"))
    assert "A proposer's batches." in found
    assert "test cases 62, 24 valid; discriminating: 3 or more in 2 of 6 problems, none in 2" in found
    assert "Share of problems by tests that an attempt of the solver fails" in found
    assert "Success by level" in found
    assert "first third" not in found


@pytest.mark.parametrize("rewards", [[], [None], [0.5]])
def test_a_run_without_rounds_or_with_one_says_so(tmp_path, rewards):
    runs.solver(tmp_path, rewards)
    found = words_of(report(tmp_path / "state"))
    assert "Not measured. Not measured: no probe has ended yet; a run of fewer than 20 rounds takes none" in found
    assert ("It has not finished a round yet." in found) == (not rewards)


def test_torn_lines_are_left_out(tmp_path):
    logs = runs.solver(tmp_path, [0.5, 0.5])
    for name in ("rounds.jsonl", "groups.jsonl"):
        with (logs / name).open("ab") as file:
            file.write(b'{"round": 3, "policy_ver\n\xff\xfe\n[[[[\n{"round": 4')
    assert "2 (1 to 2)" in words_of(report(tmp_path / "state"))


def test_a_round_that_was_played_again_counts_once(tmp_path):
    logs = runs.solver(tmp_path, [0.5, 0.5])
    append(logs / "rounds.jsonl", runs.test_monitor.report(1, reward_mean=1.0))
    found = words_of(report(tmp_path / "state"))
    assert "2 (1 to 2)" in found


def test_impossible_numbers_break_nothing(tmp_path):
    logs = runs.solver(tmp_path, [1e308, -1e308, 0.5], tokens_per_s=1e308, peak_rss_bytes=2**62)
    append(logs / "rounds.jsonl", runs.test_monitor.report(10**15, finished_at_s=1e300, reward_mean=None))
    assert "4 (1 to 1000000000000000)" in words_of(report(tmp_path / "state"))


def test_a_long_text_is_cut(tmp_path):
    logs = runs.solver(tmp_path, [0.5])
    runs.attempts(logs, 1, "q" * 7_000, [0.5])
    text = report(tmp_path / "state")
    assert "q" * 6_000 + " [1000 more characters]" in text
    assert "q" * 6_001 not in text


@pytest.mark.parametrize(("more", "text"), [(1, "1 more run not shown."), (2, "2 more runs not shown.")])
def test_a_large_swarm_is_cut_and_says_so(tmp_path, more, text):
    for number in range(MAX_RUNS + more):
        runs.solver(tmp_path / f"node-{number:02}", [0.5])
    assert text in words_of(report(tmp_path))


def test_before_and_after(tmp_path):
    runs.solver(tmp_path, [0.5])
    one = read_measured(runs.results(tmp_path / "a", {"p": [False], "q": [True]}, {"model": "a", "seed": 1}))
    two = read_measured(runs.results(tmp_path / "b", {"p": [True], "q": [True]}, {"model": "b", "seed": 2}))
    found = words_of(report(tmp_path / "state", compare(one, two)))
    assert "2 problems, solutions executed by codezero eval ." in found
    assert "pass@1 0.500 [0.000, 1.000] 1.000 [1.000, 1.000] +0.50 too few to tell" in found
    assert "Gained: 1" in found
    assert "p 0 of 1 1 of 1 What is p?" in found
    assert "Lost: 0" in found
    assert "Settings that differ: seed." in found
