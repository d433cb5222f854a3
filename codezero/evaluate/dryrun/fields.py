"""Attributes of host values that programs may read, by type."""

from __future__ import annotations

from array import array
from datetime import date, datetime, time, timedelta

from codezero.evaluate.dryrun.library_decimal import Context
from codezero.evaluate.dryrun.library_fractions import Fraction
from codezero.evaluate.dryrun.library_time import DATE_FIELDS, DELTA_FIELDS, TIME_FIELDS
from codezero.evaluate.dryrun.measure import MATCH, PATTERN, deque
from codezero.evaluate.dryrun.regular import MATCH_FIELDS, PATTERN_FIELDS
from codezero.evaluate.dryrun.streams import FileStatus, Output, Stream

_FILE = frozenset({"buffer", "closed", "mode"})
_BOUNDS = frozenset({"start", "stop", "step"})
FIELDS: dict[type, frozenset[str]] = {
    MATCH: MATCH_FIELDS,
    PATTERN: PATTERN_FIELDS,
    FileStatus: frozenset({"st_size"}),
    Stream: _FILE,
    Output: _FILE,
    Context: frozenset({"prec", "rounding"}),
    deque: frozenset({"maxlen"}),
    range: _BOUNDS,
    slice: _BOUNDS,
    array: frozenset({"itemsize", "typecode"}),
    date: DATE_FIELDS,
    datetime: DATE_FIELDS | TIME_FIELDS,
    time: TIME_FIELDS,
    timedelta: DELTA_FIELDS,
    int: frozenset({"real", "imag", "numerator", "denominator"}),
    Fraction: frozenset({"numerator", "denominator"}),
    float: frozenset({"real", "imag"}),
    complex: frozenset({"real", "imag"}),
}
