"""Charts as HTML with inline SVG, drawn here and not in the browser: for the dashboard and for reports.

Each is a `<figure>` that says what it shows to people who see no colours (dashes, hatching, direct names), to screen
readers (title, description, a table of values) and without any script. They need `STYLE` on the page once; without it
they are drawn in their light colours. Two charts of one page need different titles.
"""

from __future__ import annotations

from pathlib import Path

STYLE = Path(__file__).with_name("charts.css").read_text(encoding="utf-8")
"""The style sheet of the charts: light or dark, as the reader prefers."""
