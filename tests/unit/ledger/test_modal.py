"""Writing through the sign-in app, to a real contract on a real chain, with an app that misbehaves."""

import json
from types import SimpleNamespace

import pytest
from eth_account import Account

from codezero.errors import LedgerError
from codezero.ledger import delivery, modal
from codezero.ledger.coordinator import CoordinatorWriter
from codezero.ledger.faults import OutboxError, ProxyFault, Reverted
from codezero.ledger.items import ItemState, Kind
from codezero.ledger.reading import read_pending
from codezero.ledger.submissions import Submissions
from codezero.ledger.transactions import Journal
from codezero.types import RoundId
from tests.chain import new_key
from tests.sign_in import AFTER_MINING, ORG_ID, SAYS, SECRET, SIGNER, SignInApp
from tests.unit.ledger.fake_chain import Killed
from tests.unit.ledger.peer import credit, make_due, notes, on_chain, step, until_done

JOURNAL = Journal(store=lambda _: pytest.fail("the app signs"))
SIGNED_IN = SimpleNamespace(address="0x" + "7" * 40)
NOBODY = {"proxy_url": "http://127.0.0.1:9", "org_id": "", "account_address": ""}


@pytest.fixture
def app(deployed, tmp_path):
    account = Account.from_key(new_key())
    deployed.chain.fund(account.address)
    with SignInApp(deployed.chain.url, deployed.address, account).serving() as app:
        app.write_files(tmp_path / "temp-data")
        yield app


@pytest.fixture
def node(deployed, tmp_path, app, monkeypatch):
    monkeypatch.setattr(delivery, "LOOK_AGAIN_S", 0.0)
    reads, writer = connect(deployed, app, tmp_path / "temp-data")
    outbox = deployed.outbox(tmp_path / "outbox.sqlite")
    yield SimpleNamespace(
        reads=reads,
        writer=writer,
        outbox=outbox,
        delivery=Submissions(outbox, reads, writer),
        path=tmp_path / "outbox.sqlite",
    )
    outbox.close()


def connect(deployed, app, login_dir, **settings):
    given = {"org_id": "", "account_address": ""} | settings
    sender = modal.app_account(proxy_url=app.url + "/", login_dir=login_dir, **given)
    return deployed.coordinator, CoordinatorWriter(deployed.contract, sender)


def test_registration_reward_and_vote_arrive_as_the_smart_account_s(node, deployed, app):
    credit(node, reward=-7.5)
    until_done(node)
    assert node.writer.address == app.address != SIGNER
    assert deployed.read("getEoa(string[])", ["peer"]) == (app.address.lower(),)
    assert on_chain(deployed) == (-7, 1, ("peer", "other"))
    assert app.asked == [
        ("register-peer", {"orgId": ORG_ID, "peerId": "peer"}),
        ("submit-reward", {"orgId": ORG_ID, "roundNumber": 0, "stageNumber": 0, "reward": -7, "peerId": "peer"}),
        ("submit-winner", {"orgId": ORG_ID, "roundNumber": 0, "winners": ["peer", "other"], "peerId": "peer"}),
    ]


@pytest.mark.parametrize("mode", [*AFTER_MINING, "mined, then dropped"])
@pytest.mark.parametrize("only", ["register-peer", "submit-reward", "submit-winner"])
def test_what_was_mined_although_the_app_says_otherwise_is_not_sent_again(node, deployed, app, mode, only):
    credit(node)
    app.mode, app.only = mode, only
    for _ in range(8):
        try:
            step(node)
        except ProxyFault as error:
            fault = str(error)
            break
    assert fault.startswith("the sign-in app at 127.0.0.1:")
    app.mode = "ok"
    make_due(node)
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))
    assert sorted(app.names()) == ["register-peer", "submit-reward", "submit-winner"]


@pytest.mark.parametrize("mode", [mode for mode in SAYS if mode != "contract says"] + ["drop"])
def test_an_app_out_of_order_is_told_and_asked_again_later(node, deployed, app, mode):
    credit(node)
    app.mode = mode
    with pytest.raises(ProxyFault, match=r"^the sign-in app at 127\.0\.0\.1:[0-9]+ [ -~]*$"):
        step(node)
    (item,) = [item for item in node.outbox.open_items() if item.kind is Kind.REGISTRATION]
    assert item.note.startswith("the sign-in app at 127.0.0.1:")
    step(node)
    assert app.names() == ["register-peer"]  # not at once again
    app.mode = "ok"
    make_due(node)
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))


def test_an_app_that_hangs_holds_nobody_for_long(deployed, app, tmp_path, monkeypatch):
    monkeypatch.setattr(modal, "TIMEOUT_S", 0.3)
    _, writer = connect(deployed, app, tmp_path / "temp-data")
    app.mode = "hang"
    with pytest.raises(ProxyFault, match=r"gave no complete answer in 0\.3 s"):
        writer.register_peer("peer", JOURNAL)


def test_an_app_that_is_not_up_is_named(deployed, app, tmp_path):
    _, writer = connect(deployed, SimpleNamespace(url="http://127.0.0.1:9"), tmp_path / "temp-data")
    with pytest.raises(ProxyFault, match=r"the sign-in app at 127\.0\.0\.1:9 cannot be .* ledger\.proxy_url is right"):
        writer.register_peer("peer", JOURNAL)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("user not found", "does not know the user 7f1d2c9a"),
        ("expired", "refuses register-peer: the session key has expired: sign in again; rewards wait until then"),
        ("403", r"refuses register-peer \(only for .*\): ledger\.login_dir=.* has to be the temp-data of"),
        ("500", r"HTTP 500 \(API key not activated \\x1b\[2J\): the chain tells whether it arrived"),
        ("bad request", r"refuses register-peer \(bad request: orgId\)"),
        ("hash is text", r"not a hash: the chain will tell"),
        ("huge", "more than 4194304 bytes: use another ledger.proxy_url"),
    ],
)
def test_what_is_wrong_is_said_in_words(node, app, mode, words):
    app.mode = mode
    with pytest.raises(ProxyFault, match=words):
        node.writer.register_peer("peer", JOURNAL)


def test_a_user_that_the_app_does_not_know(deployed, app, tmp_path):
    _, writer = connect(deployed, app, tmp_path, org_id="somebody", account_address=app.address)
    with pytest.raises(ProxyFault, match=r"does not know the user somebody \(user not found\): sign in there again"):
        writer.register_peer("peer", JOURNAL)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda writer: writer.register_peer("peer", JOURNAL), "PeerIdAlreadyRegistered"),
        (lambda writer: writer.submit_reward(RoundId(number=0), 3, "peer", JOURNAL), "RewardAlreadySubmitted"),
        (lambda writer: writer.submit_winners(0, ["peer"], "peer", JOURNAL), "WinnerAlreadyVoted"),
        (lambda writer: writer.submit_winners(0, ["x", "x"], "peer2", JOURNAL), "InvalidVote"),
        (lambda writer: writer.submit_reward(RoundId(number=9), 3, "peer", JOURNAL), "InvalidRoundNumber"),
        (lambda writer: writer.submit_reward(RoundId(number=0, stage=7), 3, "peer", JOURNAL), "InvalidStageNumber"),
        (lambda writer: writer.submit_reward(RoundId(number=0), 3, "nobody's", JOURNAL), "InvalidVoterPeerId"),
    ],
)
def test_the_contract_s_errors_come_by_name(node, write, name):
    node.writer.register_peer("peer", JOURNAL)
    node.writer.register_peer("peer2", JOURNAL)
    node.writer.submit_reward(RoundId(number=0), 3, "peer", JOURNAL)
    node.writer.submit_winners(0, ["peer"], "peer", JOURNAL)
    with pytest.raises(Reverted) as caught:
        write(node.writer)
    assert caught.value.name == name


def test_an_error_of_the_contract_that_is_new_waits_and_is_told(node, app):
    credit(node)
    app.mode = "contract says"
    assert not step(node)
    assert notes(node)[Kind.REGISTRATION] == "the contract refuses register-peer: EnforcedPause"
    assert not step(node)
    assert len(app.asked) == 1


@pytest.mark.parametrize("killed", ["", "before the answer", "after the answer"])
def test_a_taken_submission_is_not_sent_again_while_it_is_under_way(node, deployed, app, monkeypatch, clock, killed):
    """The app's bundler takes its time, and the chain does not have it yet."""
    look, post = node.reads.registration, node.writer.register_peer
    monkeypatch.setattr(node.reads, "registration", lambda *_: SimpleNamespace(recorded=False, receipts={}))
    node.outbox.ensure_registration()
    view = SimpleNamespace(owner=None, round_id=RoundId(number=0))
    if killed == "before the answer":

        def post_and_die(*arguments):
            post(*arguments)
            raise Killed

        monkeypatch.setattr(node.writer, "register_peer", post_and_die)
        with pytest.raises(Killed):
            node.delivery.deliver(view)
        monkeypatch.setattr(node.writer, "register_peer", post)
    else:
        assert node.delivery.deliver(view)
    if killed:
        node.outbox.close()
        node.outbox = deployed.outbox(node.path)
        node.delivery = Submissions(node.outbox, node.reads, node.writer)
    for _ in range(3):
        assert node.delivery.deliver(view)
    assert app.names() == ["register-peer"]
    (item,) = read_pending(node.path).items
    assert item.state is ItemState.HANDED_OVER
    clock.skip(61.0)
    node.delivery.deliver(view)  # it is given up, sent again, and found there
    assert "PeerIdAlreadyRegistered" in notes(node)[Kind.REGISTRATION]
    monkeypatch.setattr(node.reads, "registration", look)
    make_due(node)
    until_done(node)


def test_a_full_disk_keeps_the_app_from_being_asked(node, app, monkeypatch):
    def fail(*_):
        raise OutboxError("cannot use the outbox: full")

    monkeypatch.setattr(node.outbox, "hand_over", fail)
    with pytest.raises(OutboxError):
        step(node)
    assert app.asked == []


def test_a_node_that_was_killed_after_the_app_took_it_sends_nothing_twice(node, deployed, app):
    credit(node)
    node.writer.register_peer("peer", JOURNAL)  # and killed before it noted that
    node.writer.submit_reward(RoundId(number=0), 3, "peer", JOURNAL)
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))
    assert app.names() == ["register-peer", "submit-reward", "submit-winner"]


def test_the_only_user_s_newest_activated_key_says_which_account(tmp_path, app):
    """A sign-in that was given up leaves keys, too."""
    keys = json.loads((tmp_path / "temp-data" / "userApiKey.json").read_text())
    given_up = keys[ORG_ID][0]
    keys[ORG_ID] += [keys[ORG_ID][1] | {"accountAddress": SIGNER}, given_up]
    (tmp_path / "temp-data" / "userApiKey.json").write_text(json.dumps(keys | {"another": [given_up]}))
    assert modal.app_account(**NOBODY, login_dir=tmp_path / "temp-data").address == SIGNER


def test_settings_stand_in_for_the_app_s_files(deployed, app, tmp_path):
    _, writer = connect(deployed, app, tmp_path / "none", org_id=ORG_ID, account_address=app.address)
    writer.register_peer("peer", JOURNAL)
    assert deployed.read("getEoa(string[])", ["peer"]) == (app.address.lower(),)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "nobody has signed in: .*userApiKey.json is missing; sign in first"),
        ("{}", "userApiKey.json has no activated key"),
        (
            '{"a": [%s], "b\\u001b": [%s]}' % (('{"activated": true, "accountAddress": "0x12"}',) * 2),
            r"2 users .* \(a, b\\x1b\): choose one",
        ),
        ("[]", "userApiKey.json is damaged or of another program"),
        ('{"a": 7}', "userApiKey.json is damaged"),
        ("[" * 100_000, "userApiKey.json is damaged"),
        (" " * (1 << 20) + "{}", "userApiKey.json is damaged"),
        (f'{{"{ORG_ID}": [{{"privateKey": "{SECRET}", "activated": 1}}]}}', "Key.json is damaged"),
        (f'{{"{ORG_ID}": [{{"privateKey": "{SECRET}"', "userApiKey.json is damaged"),
        (
            f'{{"{ORG_ID}": [{{"activated": true, "accountAddress": "0x12"}}]}}',
            r"ledger\.account_address: '0x12' is not an address",
        ),
    ],
)
def test_a_file_without_a_sign_in_says_what_to_do_and_no_secret(tmp_path, content, words):
    if content is not None:
        (tmp_path / "userApiKey.json").write_text(content)
    with pytest.raises(LedgerError, match=words) as caught:
        modal.app_account(**NOBODY, login_dir=tmp_path)
    assert SECRET not in str(caught.value)


def test_a_key_that_is_not_activated_is_no_sign_in(tmp_path):
    SignInApp.write_files(SIGNED_IN, tmp_path, activated=False)
    with pytest.raises(LedgerError, match=r"userApiKey\.json has no activated key; sign in first"):
        modal.app_account(**NOBODY, login_dir=tmp_path)
    with pytest.raises(LedgerError, match="has no activated key of the user somebody"):
        modal.app_account(**NOBODY | {"org_id": "somebody"}, login_dir=tmp_path)


def test_the_app_is_given_the_token_that_it_keeps_for_its_user(node, app, tmp_path):
    step(node)
    assert set(app.authorizations) == {None}  # an app of another machine may ask for none
    app.authorizations.clear()
    (tmp_path / "temp-data" / "token").write_text("t" * 43 + "\n")
    credit(node)
    until_done(node)
    assert set(app.authorizations) == {"Bearer " + "t" * 43}


@pytest.mark.parametrize("content", [b"", b"short", b"a" * 43 + b"\r\nX-Other: 1", b"\xff" * 43, b"a" * 5000])
def test_what_is_no_token_is_not_sent(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    assert modal.credentials(tmp_path) == {}
