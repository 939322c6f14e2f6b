"""From a report's plain data to one HTML page. Everything a reader sees is text by the time a template gets it."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from felicific._report.amounts_view import amounts_view
from felicific._report.audit import audit_view
from felicific._report.slider import embedded
from felicific._report.view import choice_view

HERE = Path(__file__).parent


def render(content: dict[str, Any]) -> str:
    """The page of a choice, of a policy of amounts, or of an audit."""
    if content["kind"] == "audit":
        return render_page("audit.html", **audit_view(content))
    if content["kind"] == "amounts":
        return render_page("amounts.html", **amounts_view(content))
    view = choice_view(content)
    return render_page("page.html", script="script.js", **view | {"data": embedded(view["data"])})


def render_page(template: str, *, script: str = "", **values: Any) -> str:
    """A page in the report's style, which needs no other file and asks nobody for anything.

    Parameters
    ----------
    template : str
        Name of a template that extends ``base.html``; boxes of a verdict are in ``parts.html``.
    script : str
        Name of the only script that may run, beside this file; none may if there is none.
    **values
        For the template; every text in them is escaped.
    """
    code = _file(script) if script else ""
    page: str = (
        _environment()
        .get_template(template)
        .render(style=_file("style.css"), script=code, security=_security(code), **values)
    )
    # A lone surrogate in a name has no place in a file of UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


@lru_cache
def _file(name: str) -> str:
    return (HERE / name).read_text("utf-8")


@lru_cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _security(script: str) -> str:
    """Nothing may be loaded from anywhere, and no script may run but the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    runs = f"script-src 'sha256-{digest}'; " if script else ""
    return f"default-src 'none'; style-src 'unsafe-inline'; {runs}base-uri 'none'; form-action 'none'"
