"""HTML from templates. All values but charts are escaped, and characters that would not be seen made visible."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from codezero.config import checkout
from codezero.identity.names import animal_name
from codezero.runtime.amounts import counted, gib, span, utc
from codezero.runtime.visible import visible
from codezero.views import charts
from codezero.views.charts.scale import format_number

_HERE = Path(__file__).parent
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FEW = 8
"""The most entries of a mapping that are shown in a row."""
MAX_SHOWN = 300
"""The most characters of a text for which the template gives no other limit."""


def static_files() -> dict[str, tuple[bytes, str]]:
    """Returns content and media type of each static file, by name."""
    files = {path.name: (path.read_bytes(), _KINDS[path.suffix]) for path in (_HERE / "static").iterdir()}
    return {**files, "charts.css": (charts.STYLE.encode(), _KINDS[".css"])}


def render(name: str, content: Mapping[str, object]) -> str:
    """Returns the page that a template makes of `content`."""
    return _environment().get_template(name).render(content)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "animal": animal_name,
        "whole": _Whole,
        "num": format_number,
        "span": span,
        "counted": counted,
        "gib": gib,
        "utc": utc,
        "first_few": lambda mapping: list(mapping.items())[:FEW],
        "arg": lambda text: quote(text, safe="", errors="replace"),
    }
    versions = {name: hashlib.sha256(body).hexdigest()[:12] for name, (body, _) in static_files().items()}
    environment.globals["start"] = checkout.START
    environment.globals["file"] = lambda name: f"/static/{name}?v={versions[name]}"
    return environment


class _Whole(str):
    """Text that is shown whole, since it was cut before."""


def _finalize(value: object) -> object:
    """Returns the value of an expression in a template as it is shown: cut and made visible, but not yet escaped."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    if len(value) > MAX_SHOWN and not isinstance(value, _Whole):
        value = value[:MAX_SHOWN] + "\N{HORIZONTAL ELLIPSIS}"
    return visible(value)
