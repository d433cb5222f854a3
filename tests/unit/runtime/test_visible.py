import pytest

from codezero.runtime.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("tabs\tand\nlines", "tabs\tand\nlines"),
        ("größer 数 \U0001f600", "größer 数 \U0001f600"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("nul\x00 bell\x07 esc\x1b[31m del\x7f c1\x9b", "nul\\x00 bell\\x07 esc\\x1b[31m del\\x7f c1\\x9b"),
        ("line\u2028break\u2029", "line\\u2028break\\u2029"),
        ("\u3164filler\u115f\u2800", "\\u3164filler\\u115f\\u2800"),
        ("tag\U000e0041 selector\ufe0f\U000e0100", "tag\\U000e0041 selector\\ufe0f\\U000e0100"),
        ("\ud800", "\\ud800"),
        ("\r\n", "\\r\n"),
        ("z" + "\u0335" * 6, "z" + "\u0335" * 4 + "\\u0335" * 2),
    ],
)
def test_what_hides_is_shown(text, shown):
    assert visible(text) == shown
