"""From a report's plain data to one HTML page. Everything a reader sees is text by the time the template gets it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from felicific._audit.names import clean
from felicific.plots import means, steps, svg
from felicific.report.charts import PAGE, choice
from felicific.report.view import make_view

HERE = Path(__file__).parent


def render(content: dict[str, Any]) -> str:
    """The page."""
    view, script = make_view(content), _file("script.js")
    charts = _charts(content, view)
    page: str = _template().render(
        style=_file("style.css"),
        script=script,
        security=_security(script),
        charts=charts,
        data=embedded(view["embedded"]) if view["chosen"] else None,
        **view,
    )
    # A lone surrogate in a name has no place in a file of UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


@lru_cache
def _file(name: str) -> str:
    return (HERE / name).read_text("utf-8")


@lru_cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(_file("page.html"))


def _security(script: str) -> str:
    """Nothing may be loaded from anywhere, and no script may run but the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )


def embedded(data: Any) -> str:
    """JSON that can end neither its script element nor begin another one."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# ---------------------------------------------------------------------------------------------------------
# Pictures


def _charts(content: dict[str, Any], view: dict[str, Any]) -> dict[str, Any]:
    """Inline pictures, which inherit the page's colours and fonts."""
    names, groups = view["names"], []
    width = 640 if len(names.own) < 3 else 300
    for j in names.own:
        component = content["components"][j]
        share = component["unit"] == "share"
        rows = [
            {
                "way": way,
                "group": names.groups[z],
                "compared": mean["group"] not in found.get("unknown", ()),
                **{
                    at: value * 100 if share and value is not None else value
                    for at, value in (
                        ("mean", mean["estimate"]),
                        ("low", mean["low"]),
                        ("high", mean["high"]),
                        *zip(("least", "most"), mean.get("bounds", ()), strict=False),
                    )
                },
            }
            for way, found in view["ways"]
            for z, mean in enumerate(found["components"][j]["means"])
        ]
        unit = f" ({'%' if share else clean(component['unit'], 28)})" if component["unit"] else ""
        title = f"mean {clean(component['title'], 48)}{unit}"
        groups.append(_inline(means(rows, title=title, theme=PAGE, width=width)))
    found: dict[str, Any] = {"groups": groups, "choice": None, "policy": None}
    if view["chosen"]:
        chart, view["embedded"]["places"] = choice(view["picture"], theme=PAGE, start=view["start"])
        found["choice"] = _inline(chart)
        if content["policy"]["steps"] is not None:
            found["policy"] = _inline(steps(content["policy"]["steps"], theme=PAGE, width=660))
    return found


def _inline(chart: Any) -> str:
    """SVG without fixed size, hidden from screen readers: figures say in words and tables what it shows."""
    picture = svg(chart)
    width = re.search(r'width="([\d.]+)"', picture)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", picture[: picture.index(">")])
    limit = f' style="max-width:{1.3 * float(width[1]):.0f}px"' if width else ""
    return f'{opening} aria-hidden="true" focusable="false"{limit}{picture[picture.index(">") :]}'
