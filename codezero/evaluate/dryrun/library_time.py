"""`datetime`: dates, times and their differences. The current time is not interpreted."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.measure import checked
from codezero.evaluate.dryrun.named_tuples import NamedTuple
from codezero.evaluate.dryrun.text import FORMATTERS
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import FIELDS, Builtin

datetime.datetime.strptime("", "")  # imports a module, which a worker cannot do later: it opens no file
_MAX_TEXT = 200
_DIRECTIVES = re.compile(r"(?:[^%]|%[YmdHMSfyjaAbBpIwuUW%])*")
_WEEK = NamedTuple("datetime.IsoCalendarDate", ("year", "week", "weekday"), ())
FIELDS[datetime.date] = frozenset({"year", "month", "day"})
FIELDS[datetime.time] = frozenset({"hour", "minute", "second", "microsecond"})
FIELDS[datetime.datetime] = FIELDS[datetime.date] | FIELDS[datetime.time]
FIELDS[datetime.timedelta] = frozenset({"days", "seconds", "microseconds"})


def _format_of(text: Any) -> str:
    if type(text) is not str:
        raise TypeError("format must be a string")
    if len(text) > _MAX_TEXT or not _DIRECTIVES.fullmatch(text):
        raise Unsupported("this format of a date")
    meter.allocate(len(text) << 5)
    return text


def format_date(value: Any, spec: Any, /) -> str:
    """Returns value.strftime(spec)."""
    return value.strftime(_format_of(spec))  # type: ignore[no-any-return]


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function of numbers, dates, times and time differences."""

    def call(*args: Any, **kwargs: Any) -> Any:
        meter.work(256)
        for arg in (*args, *kwargs.values()):
            if not isinstance(arg, int | float | datetime.date | datetime.time | datetime.timedelta):
                raise Unsupported("a date of this")
            checked(arg)
        return function(*args, **kwargs)

    return call


def _iso(kind: Any) -> Builtin:
    def parse(text: Any, /) -> Any:
        if type(text) is str and len(text) > _MAX_TEXT:
            raise ValueError(f"Invalid isoformat string: {text[:20]!r}")
        return kind.fromisoformat(text)

    return Builtin("fromisoformat", parse)


def _parse(text: Any, form: Any, /) -> datetime.datetime:
    if type(text) is not str or len(text) > _MAX_TEXT:
        raise Unsupported("a date of this")
    return datetime.datetime.strptime(text, _format_of(form))


def _isoformat(value: Any, *args: Any, **kwargs: Any) -> str:
    return value.isoformat(*args, **kwargs)  # type: ignore[no-any-return]


def _date_methods(kind: type, *more: str) -> dict[str, Callable[..., Any]]:
    plain = ("weekday", "isoweekday", "toordinal", "replace", *more)
    return {
        **{name: _plain(getattr(kind, name)) for name in plain},
        "isocalendar": lambda value: _WEEK(*value.isocalendar()),
        "isoformat": _isoformat,
        "strftime": format_date,
    }


DATE_METHODS = _date_methods(datetime.date)
DATETIME_METHODS = _date_methods(datetime.datetime, "date", "time")
TIME_METHODS: dict[str, Callable[..., Any]] = {
    "isoformat": _isoformat,
    "replace": _plain(datetime.time.replace),
    "strftime": format_date,
}
DELTA_METHODS: dict[str, Callable[..., Any]] = {"total_seconds": datetime.timedelta.total_seconds}

DATETIME: dict[str, Any] = {
    kind.__name__: TypeValue(kind, _plain(kind))
    for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta)
}
for _kind in (datetime.date, datetime.datetime):
    DATETIME[_kind.__name__].attrs["fromisoformat"] = _iso(_kind)
    DATETIME[_kind.__name__].attrs["fromordinal"] = Builtin("fromordinal", _plain(_kind.fromordinal))
DATETIME["datetime"].attrs["strptime"] = Builtin("strptime", _parse)
DATETIME["datetime"].attrs["combine"] = Builtin("combine", _plain(datetime.datetime.combine))
FORMATTERS.update(dict.fromkeys((datetime.date, datetime.datetime, datetime.time), format_date))
