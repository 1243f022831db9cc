"""Pages from templates: `templates/{lang}/{name}.j2`, with the filters of `text`.

A name that a template uses and nobody gave is an error, never an empty place in a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from opratchet.ledger.plural import counted
from opratchet.report import text
from opratchet.report.words import Lang


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for used in (text.number, text.percent, text.spread, text.speedup, text.verdict, text.cell):
        environment.filters[used.__name__] = used
    environment.filters["line"] = text.one_line
    environment.filters["counted"] = counted
    return environment


def render(name: str, lang: Lang, values: Mapping[str, Any]) -> str:
    """One page, e.g. `render("opt_log.md", "zh", {...})`."""
    return _environment().get_template(f"{lang}/{name}.j2").render(values)
