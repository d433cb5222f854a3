import json
import os
import re
from html.parser import HTMLParser

from starlette.testclient import TestClient

from codezero.ledger.board import read_shared
from codezero.ledger.leaderboard import Leaderboard, LeaderboardRow
from codezero.observe.probes import PAIR
from codezero.runtime.state import locked_state
from codezero.views.web.app import make_app
from codezero.views.web.source import WatchedFolders
from tests.browser.payloads import PAYLOADS
from tests.swarm_folder import add_round, append, ledger, proposer, round_report, scored_group, solver, verifier
from tests.unit.observe import test_probes

MB = 1_000_000


def client(*folders, board=None):
    return TestClient(make_app(WatchedFolders(folders), board), base_url="http://127.0.0.1:7007")


class Tags(HTMLParser):
    """Every start tag with the names of its attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))


def test_a_folder_without_a_node_says_what_to_do(tmp_path):
    for path in ("/", "/charts", "/rounds", "/peers", "/leaderboard"):
        answer = client(tmp_path).get(path)
        assert answer.status_code == 200
        assert "codezero dashboard FOLDER" in answer.text


def test_a_ledger_that_was_named_is_shown_without_a_node(tmp_path):
    ledger(tmp_path / "shared.sqlite", "QmNode1")
    site = client(tmp_path, board=lambda: read_shared(tmp_path / "shared.sqlite"))
    assert '<a href="/leaderboard">' in site.get("/").text.partition("No node yet")[2]
    text = site.get("/leaderboard").text
    assert "QmNode1" in text
    assert "No node yet" not in text
    missing = client(tmp_path, board=lambda: read_shared(tmp_path / "none.sqlite")).get("/leaderboard").text
    assert f"there is no ledger at {tmp_path}/none.sqlite" in missing


def test_places_are_counted_over_the_pages_of_a_leaderboard(tmp_path):
    ledger(tmp_path / "shared.sqlite", *(f"QmNode{number}" for number in range(60)), rounds=1)
    site = client(tmp_path, board=lambda: read_shared(tmp_path / "shared.sqlite"))
    assert 'href="/leaderboard?page=2">After</a>' in site.get("/leaderboard").text  # by reward, so not "Older"
    assert re.findall("<tr><td>([0-9]+)</td>", site.get("/leaderboard?page=2").text) == [str(n) for n in range(51, 61)]


def test_a_leaderboard_says_how_many_peers_are_left_out(tmp_path):
    places = (LeaderboardRow(peer_id="QmNode1", reward=1.0, rounds=1, wins=1),)
    for num_peers, told in ((1, "more peer"), (2, "And 1 more peer."), (3, "And 2 more peers.")):
        board = Leaderboard(places=places, num_peers=num_peers, kind="chain")
        text = client(tmp_path, board=lambda board=board: board).get("/leaderboard").text
        assert (told in text) is (num_peers > 1)


def test_a_node_that_comes_later_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.views.web.source.LOOK_AGAIN_S", -1)
    site = client(tmp_path)
    assert "No node yet" in site.get("/").text
    solver(tmp_path / "node-1")
    text = site.get("/").text
    assert "node-1" in text
    assert "Nothing is finished yet" in text
    for path in ("/charts", "/rounds", "/peers", "/leaderboard"):
        assert site.get(path).status_code == 200


def uses_more_than_planned(folder, **changes):
    """Has a solver's status say so; returns its file."""
    file = folder / "state" / "status.json"
    status = json.loads(file.read_text()) | {"planned_bytes": 10 * 2**30, "rss_bytes": 13 * 2**30, **changes}
    file.write_text(json.dumps(status))
    return file


def test_the_memory_of_a_node_that_has_ended_is_in_nobodys_way(tmp_path):
    solver(tmp_path / "node-1", 1)
    file = uses_more_than_planned(tmp_path / "node-1")
    assert "were planned" not in client(tmp_path).get("/").text
    with locked_state(file.parent):
        assert "it uses 13.0 GiB of memory, 10.0 GiB were planned" in client(tmp_path).get("/").text


def test_a_node_that_has_just_been_started_again_has_no_progress_or_memory_of_the_process_before(tmp_path):
    solver(tmp_path / "node-1", 1)
    for pid, is_its_own in ((os.getpid(), True), (1, False)):
        file = uses_more_than_planned(tmp_path / "node-1", pid=pid, stage="solve", done=30, total=40)
        with locked_state(file.parent):
            text = client(tmp_path).get("/").text
        assert ("<progress" in text, "were planned" in text) == (is_its_own, is_its_own)
        assert ("has not said yet what it does" in text) is not is_its_own


def test_solvers_and_proposers_of_several_folders_have_a_name_each(tmp_path):
    for swarm in ("a", "b"):
        solver(tmp_path / swarm / "node-1", 1)
        proposer(tmp_path / swarm / "node-1", 1)
    names = [node["name"] for node in client(tmp_path / "a", tmp_path / "b").get("/api/nodes").json()]
    assert names == ["node-1", "node-1-proposer", "node-1-solver", "node-1-proposer-3"]


def test_a_node_that_comes_later_takes_no_others_name(tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.views.web.source.LOOK_AGAIN_S", -1)
    site = client(tmp_path / "a", tmp_path / "b")
    proposer(tmp_path / "b" / "node-1", 1)
    assert [node["name"] for node in site.get("/api/nodes").json()] == ["node-1"]
    for swarm in ("a", "b"):
        solver(tmp_path / swarm / "node-1", 1)
    found = [(node["name"], node["role"]) for node in site.get("/api/nodes").json()]
    assert found == [("node-1-solver", "solver"), ("node-1-solver-2", "solver"), ("node-1", "proposer")]
    assert len(site.get("/api/nodes/node-1/batches").json()) == 1


def test_an_unchanged_page_is_not_sent_again(tmp_path):
    logs = solver(tmp_path / "node-1", 2)
    site = client(tmp_path)
    first = site.get("/rounds")
    again = site.get("/rounds", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    add_round(logs, 3)
    assert site.get("/rounds", headers={"if-none-match": first.headers["etag"]}).status_code == 200


def test_each_payload_in_each_field_leaves_the_tags_of_a_page_as_they_are(tmp_path):
    """Beside the same in a browser, for some: all payloads, and where they stand alone."""
    paths = ("/", "/rounds/1", "/leaderboard", "/?node=proposer-1", "/?node=verifier-1", "/rounds?node=verifier-1")

    def tags(name, text):
        folder = tmp_path / name
        solver(folder / "node-1", 1, text)
        proposer(folder / "proposer-1", 1, text)
        verifier(folder / "verifier-1", 1, text)
        board = Leaderboard(
            places=(LeaderboardRow(peer_id=text, reward=1.0, rounds=1, wins=1),), kind="chain", where=text, problem=text
        )
        site = client(folder, board=lambda: board)
        return [Tags(site.get(path).text).found for path in paths]

    expected = tags("benign", "plain")
    for number, payload in enumerate(PAYLOADS):
        assert tags(str(number), payload) == expected, payload


def test_rounds_come_in_pages(tmp_path):
    logs = solver(tmp_path / "node-1")
    append(logs / "rounds.jsonl", *(round_report(number) for number in range(1, 121)))
    site = client(tmp_path)
    for page, first, last in ((1, 120, 71), (3, 20, 1), (99, 20, 1)):
        text = site.get("/rounds", params={"page": page}).text
        numbers = [int(part.partition("<")[0]) for part in text.split('<tr><th scope="row">')[1:]]
        assert (numbers[0], numbers[-1]) == (first, last)
    assert "Page 3 of 3, 120 rounds" in text


def test_30_000_rounds_are_shown_and_each_page_stays_small(tmp_path):
    logs = solver(tmp_path / "node-1")
    append(logs / "rounds.jsonl", *(round_report(number) for number in range(1, 30_001)))
    site = client(tmp_path)
    for path in ("/", "/charts", "/rounds?page=600", "/peers"):
        answer = site.get(path)
        assert answer.status_code == 200
        assert len(answer.content) < MB / 2, path
    assert ">30000</text>" in site.get("/charts").text
    assert len(site.get("/api/nodes/node-1/rounds?limit=1000").json()) == 1000
    assert site.get("/api/nodes/node-1/rounds?limit=1001").status_code == 400


def test_a_hostile_file_of_20_mb_makes_no_large_page(tmp_path):
    logs = solver(tmp_path / "node-1")
    huge = "<\u202e\U000e0041" * 2000
    groups = [scored_group(huge, num_rollouts=20) for _ in range(10)]
    add_round(logs, 1, huge, groups)
    assert 20 * MB < (logs / "groups.jsonl").stat().st_size < 40 * MB
    site = client(tmp_path)
    for path in (
        "/",
        "/charts",
        "/rounds",
        "/rounds/1",
        "/rounds/1?page=2",
        "/peers",
        "/api/nodes/node-1/rounds/1/groups",
    ):
        answer = site.get(path)
        assert answer.status_code == 200
        assert len(answer.content) < 6 * MB, path
    assert site.get("/api/nodes/node-1/rounds/1/groups").content.isascii()  # in a terminal it would act
    text = site.get("/rounds/1").text
    assert "4 more solutions not shown" in text
    assert "Page 1 of 2, 10 groups" in text
    assert text.count('<article class="group">') == 8


def test_a_line_too_long_to_be_looked_at_does_not_hide_the_rounds_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr("codezero.views.groups.MAX_LINE_BYTES", 10_000)
    logs = solver(tmp_path / "node-1", 1)
    add_round(logs, 2, groups=[scored_group("x" * 15_000)])
    add_round(logs, 3)
    (logs / "groups.jsonl").open("a").write('{"round": 4, "groups": [' + " " * 20_000)
    site = client(tmp_path)
    assert [site.get(f"/api/nodes/node-1/rounds/{number}/groups").status_code for number in (1, 2, 3, 4)] == [
        *(200, 404, 200, 404)
    ]
    (logs / "groups.jsonl").open("a").write("]}\n")
    add_round(logs, 5)
    assert site.get("/api/nodes/node-1/rounds/5/groups").status_code == 200


def test_many_small_groups_and_names_make_no_large_page(tmp_path):
    logs = solver(tmp_path / "node-1")
    names = {f"name {number}": 1 for number in range(20_000)}
    add_round(logs, 1, "", [scored_group(num_rollouts=1)] * 3000, dropped=names, external_groups=names, seconds=names)
    site = client(tmp_path)
    for path in ("/", "/charts", "/rounds", "/rounds/1", "/peers"):
        answer = site.get(path)
        assert answer.status_code == 200
        assert len(answer.content) < MB, path
    assert site.get("/rounds/1?page=375").text.count("<article") == 8


def test_files_that_are_torn_foreign_or_gone_are_read_as_far_as_they_go(tmp_path):
    logs = solver(tmp_path / "node-1", 3)
    for name in ("rounds.jsonl", "groups.jsonl"):
        whole = (logs / name).read_bytes()
        (logs / name).write_bytes(b"[" * 200_000 + b'\n\xff\x00\n{"round": "x"}\n' + whole[:-40])
    (tmp_path / "node-1" / "state" / "status.json").write_bytes(b'{"role": 7')
    site = client(tmp_path)
    assert "of 2" in site.get("/").text
    assert site.get("/rounds/2").status_code == 200
    assert site.get("/rounds/3").status_code == 404
    (logs / "groups.jsonl").unlink()
    assert "no longer kept" in site.get("/rounds/2").text
    (logs / "rounds.jsonl").unlink()
    assert site.get("/rounds").status_code == 200
    assert site.get("/rounds/2").status_code == 404


def test_a_round_is_found_after_its_file_was_rotated_and_as_it_went_the_last_time(tmp_path):
    logs = solver(tmp_path / "node-1", 2)
    site = client(tmp_path)
    assert "return x + 1" in site.get("/rounds/1").text
    os.replace(logs / "groups.jsonl", logs / "groups.1.jsonl")
    add_round(logs, 3)
    add_round(logs, 2, groups=[scored_group("played again")])
    assert "return x + 1" in site.get("/rounds/1").text
    assert "played again" in site.get("/rounds/2").text
    assert site.get("/rounds/3").status_code == 200


def test_values_of_any_size_are_shown(tmp_path):
    logs = solver(tmp_path / "node-1")
    for number in range(1, 13):
        values = {
            "reward_mean": 1e308 * (-1) ** number,
            "finished_at_s": 1e300,
            "seconds": {"solve": 1e308, "x": 1e308},
        }
        append(logs / "rounds.jsonl", round_report(number, **values, tokens_per_s=-1e308, peak_rss_bytes=10**300))
    (logs / "rounds.jsonl").open("a").write(json.dumps({"round": 10**400}) + "\n")
    site = client(tmp_path)
    for path in ("/", "/charts", "/rounds", "/rounds/12"):
        assert site.get(path).status_code == 200, path


def test_the_leaderboard_adds_up_what_the_nodes_own_ledgers_know(tmp_path):
    for number in (1, 2):
        solver(tmp_path / f"node-{number}", peer_id=f"QmNode{number}")
        ledger(tmp_path / f"node-{number}" / "state" / "ledger.sqlite", "QmNode1", *["QmNode2"] * (number == 2))
    places = client(tmp_path).get("/api/leaderboard").json()["places"]
    assert [(place["peer_id"], place["reward"], place["wins"]) for place in places] == [
        ("QmNode1", 2.0, 4),
        ("QmNode2", 1.0, 2),
    ]
    assert places[0]["name"] == "shrewd pudgy caribou"


def test_a_ledger_that_cannot_be_read_is_told_on_its_page_alone(tmp_path):
    solver(tmp_path / "node-1", 1)
    site = client(tmp_path, board=lambda: Leaderboard(problem="the chain does not answer; try later"))
    assert "the chain does not answer; try later" in site.get("/leaderboard").text
    assert site.get("/api/leaderboard").json()["problem"] == "the chain does not answer; try later"
    assert site.get("/").status_code == 200


def test_peers_go_by_the_name_that_the_swarm_knows_and_by_what_was_taken_from_them(tmp_path):
    solver(tmp_path / "node-1", 4)
    peers = client(tmp_path).get("/api/nodes/node-1/peers").json()
    assert [(peer["peer_id"], peer["taken"], peer["last_round"], peer["judged"]) for peer in peers] == [
        ("QmPeer1", 2, 4, 4),
        ("QmPeer0", 1, 3, 0),
        ("QmPeer2", 1, 2, 0),
    ]
    assert peers[0]["name"] == "hulking yawning mandrill"


def test_a_test_writer_has_its_reward_beside_the_base_rate_and_says_whether_its_solver_learns(tmp_path):
    test_probes.write(verifier(tmp_path / "verifier-1", 2), test_probes.passes(0.5, 1.0, 1.0), PAIR)
    site = client(tmp_path)
    for path, shown in (
        (
            "/",
            (
                "Does its solver learn?",
                "held-out problems solved",
                "Base rate",
                "approving always 0.75",
                "16 about 2 candidates",
            ),
        ),
        ("/rounds", ("Batches of verifier-1", "Right diagnosis")),
        ("/charts", ("Held-out problems solved", "Reward of test cases", "approving always")),
        ("/peers", ("A test writer learns alone",)),
    ):
        text = site.get(path).text
        assert all(part in text for part in shown), path
    assert [one["batch"] for one in site.get("/api/nodes/verifier-1/cases").json()] == [1, 2]
    assert site.get("/api/nodes/verifier-1/learning").json()["verdict"] == "It learns"


def test_the_json_is_described_and_says_what_the_pages_say(tmp_path):
    solver(tmp_path / "node-1", 3)
    proposer(tmp_path / "proposer-1", 2)
    site = client(tmp_path)
    paths = site.get("/api/openapi.json").json()["paths"]
    assert len(paths) == 8
    assert all(set(methods) == {"get"} for methods in paths.values())
    assert [one["round"] for one in site.get("/api/nodes/node-1/rounds?after=1&limit=1").json()] == [2]
    assert [one["batch"] for one in site.get("/api/nodes/proposer-1/batches").json()] == [1, 2]
    told = "31, 12 valid; discriminating: 3 or more in 1 of 3 problems, none in 1"
    assert told in site.get("/?node=proposer-1").text
    groups = site.get("/api/nodes/node-1/rounds/2/groups").json()["groups"]
    assert [one["group"]["trained"] for one in groups] == [True, False]
    assert site.get("/api/nodes/nope/rounds").status_code == 404
    (node, _) = site.get("/api/nodes").json()
    assert (node["presence"]["state"], node["status"]["round"]) == ("stopped", 3)
