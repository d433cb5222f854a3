"""The hub's token: where it comes from, and where it is no more."""

import pytest

from codezero.config import PushConfig
from codezero.errors import ConfigError
from codezero.publish.tokens import take_tokens


def test_all_names_of_the_token_leave_the_environment_whether_it_is_used_or_not():
    for config in (PushConfig(), PushConfig(enabled=True)):
        environment = {
            "HUGGINGFACE_ACCESS_TOKEN": "hf_a",
            "HF_TOKEN": "hf_b",
            "HUGGING_FACE_HUB_TOKEN": "hf_c",
            "A": "b",
        }
        found = take_tokens(config, environment)
        assert environment == {"A": "b"}
        assert found.push == ("hf_a" if config.enabled else "")
        assert found.download == "hf_b"
        assert "hf_" not in repr(found)


def test_the_hubs_own_name_will_do_and_none_is_no_token():
    environment = {"HUGGINGFACE_ACCESS_TOKEN": "None", "HF_TOKEN": " hf_b\n"}
    assert take_tokens(PushConfig(enabled=True), environment).push == "hf_b"


def test_a_token_for_pushing_is_not_used_for_downloads():
    assert take_tokens(PushConfig(), {"HUGGINGFACE_ACCESS_TOKEN": "hf_a"}).download is None


def test_a_file_wins(tmp_path):
    (tmp_path / "token").write_text("hf_file\n")
    config = PushConfig(enabled=True, token_file=str(tmp_path / "token"))
    assert take_tokens(config, {"HF_TOKEN": "hf_b"}).push == "hf_file"


@pytest.mark.parametrize(
    ("content", "environment", "said"),
    [
        (None, {}, "push.enabled=true needs a token of the hub that may write: give it in HUGGINGFACE_ACCESS_TOKEN"),
        (None, {"HF_TOKEN": "secret words"}, "^HF_TOKEN holds no token of the hub"),
        (None, {"HF_TOKEN": "secr\x1bet"}, "^HF_TOKEN holds no token of the hub"),
        (b"", {}, "needs a token"),
        (b"secret\nsecret", {}, "token' holds no token|token holds no token of the hub"),
        (b"\xff\xfe", {}, "cannot read push.token_file=.*: it is not text"),
        (b"secret" * 1000, {}, "holds no token of the hub"),
    ],
)
def test_what_is_no_token_is_told_without_showing_it(tmp_path, content, environment, said):
    config = PushConfig(enabled=True)
    if content is not None:
        (tmp_path / "token").write_bytes(content)
        config = PushConfig(enabled=True, token_file=str(tmp_path / "token"))
    with pytest.raises(ConfigError, match=said) as caught:
        take_tokens(config, environment)
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read push\.token_file=.*gone: No such file"):
        take_tokens(PushConfig(enabled=True, token_file=str(tmp_path / "gone")), {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"every_hours": 0.0},
        {"every_hours": -1.0},
        {"every_rounds": -1},
        {"endpoint": "http://example.org"},
        {"endpoint": "http://localhost.example.org"},
        {"endpoint": "ftp://example.org"},
    ],
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ConfigError, match=r"^push\."):
        PushConfig(**wrong)


def test_settings_that_can_be():
    PushConfig(every_hours=0, every_rounds=5, repo="my-org/my.model", endpoint="http://127.0.0.1:8000")
    PushConfig(repo="mine", endpoint="https://hub.example.org")
