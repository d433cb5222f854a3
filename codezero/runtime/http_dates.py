"""Times in the headers of HTTP answers."""

from __future__ import annotations

import datetime
import email.utils
import re


def unix_time(header: str) -> float | None:
    """Returns the time of a date such as `Wed, 21 Oct 2026 07:28:00 GMT` (RFC 9110, 5.6.7), in Unix seconds; None if
    the header holds none."""
    try:
        when = email.utils.parsedate_to_datetime(header)
        if when.tzinfo is None:
            when = when.replace(tzinfo=datetime.timezone.utc)
        return when.timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def retry_after_s(header: str, now_s: float) -> float | None:
    """Returns the seconds that a Retry-After header asks to wait, as a number or as a date (RFC 9110, 10.2.3); None if
    it holds neither."""
    said = header.strip()
    if re.fullmatch("[0-9]{1,9}", said):
        return float(said)
    when_s = unix_time(said)
    return None if when_s is None else max(0.0, when_s - now_s)
