"""The pages of the studies: made of ``results.json`` and the pictures beside it; nothing is computed here."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from felicific._files import write_whole
from felicific.plots import LIGHT
from felicific.report.page import render_page
from felicific.report.words import named
from felicific.studies._charts import SECOND, THIRD
from felicific.studies._verdict import written

HERE = Path(__file__).parent

#: Stands in the page over several studies, by which it is known: no other page is ever replaced by it.
SIGN = "felicific reproduce: all studies"

#: Colours of the pictures as variables of the page, so that one picture serves light, dark and paper.
VARIABLES = {
    LIGHT.ink: "var(--ink)",
    LIGHT.muted: "var(--muted)",
    LIGHT.faint: "var(--grid)",
    LIGHT.paper: "var(--paper)",
    LIGHT.accent: "var(--own)",
    SECOND: "var(--second)",
    THIRD: "var(--third)",
}

#: What a picture loses: what only the program that drew it understands, and fonts, which are the page's.
DROPPED = ("aria-", "class", "font-", "pointer-events", "role", "version")


def study_page(folder: Path) -> str:
    """The page of one study, from its folder: the same files always give the same text."""
    results = json.loads((folder / "results.json").read_text("utf-8"))
    figures = [
        figure | {"panels": [panel | _shown(folder, figure, panel) for panel in figure["panels"]]}
        for figure in results["figures"]
    ]
    column, happiness = named([results.get("group column", ""), results.get("happiness", "")])
    seeds = results.get("seeds", [])
    return render_page(
        "study.html",
        folder=HERE,
        kicker="Case study, felicific reproduce",
        title=results["title"],
        results=results,
        flags=_flags(results),
        claims=[_row(item) for item in results["claims"]],
        compared=any(item["paper"] for item in results["claims"]),
        figures=figures,
        groups=named(results.get("groups", ())),
        column=column,
        happiness=happiness,
        people=seeds[0]["people"] if seeds else {},
        seeds=[seed["seed"] for seed in seeds],
    )


def write_index(out: Path, names: Sequence[str]) -> Path | None:
    """Write the page over those studies; see :func:`felicific.studies.write_index`."""
    page = out / "index.html"
    if page.exists() and SIGN not in page.read_text("utf-8", "replace"):
        return None
    found = {name: results for name in names if (results := _finished(out / name)) is not None}
    if len(found) < 2:
        return None
    studies = [{"name": name, "flags": _flags(results), **results} for name, results in found.items()]
    text = render_page(
        "studies.html",
        folder=HERE,
        kicker="felicific reproduce",
        title="The case studies",
        sign=SIGN,
        studies=studies,
    )
    write_whole(page, text)
    return page


def _finished(folder: Path) -> dict[str, Any] | None:
    """The results of a study that has a page; None when there are none that can be read."""
    try:
        results: dict[str, Any] = json.loads((folder / "results.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return results if (folder / "index.html").exists() and "verdict" in results else None


def _flags(results: dict[str, Any]) -> list[list[Any]]:
    parts = ("level", "kind", "name", "sentence")
    return [[flag[part] for part in parts] for flag in results["verdict"]["flags"]]


def _row(item: dict[str, Any]) -> dict[str, Any]:
    """One statement as text."""
    ours = "not measured here" if item["ours"] is None else written(item["ours"])
    holds = {True: "yes", False: "no", None: "open"}[item["holds"]]
    return {
        "statement": item["statement"],
        "paper": item["paper"],
        "ours": ours,
        "holds": holds,
        "note": item["note"],
    }


# ---------------------------------------------------------------------------------------------------------
# Pictures


def _shown(folder: Path, figure: dict[str, Any], panel: dict[str, str]) -> dict[str, str]:
    label = f"{figure['title']}. {panel['title']}".rstrip(". ")
    prefix = Path(panel["file"]).stem
    return {"picture": inline((folder / panel["file"]).read_text("utf-8"), f"{label}: line chart", prefix)}


def inline(picture: str, label: str, prefix: str) -> str:
    """An SVG file as a part of the page: it has the page's colours and font, and names that clash with no other's.

    Parameters
    ----------
    picture : str
        The text of the file.
    label : str
        What those who cannot see it are told.
    prefix : str
        Begins every name in it. They are counted anew, as they depend on what was drawn before.
    """
    root = ET.fromstring(picture)
    names = [part.attrib["id"] for part in root.iter() if "id" in part.attrib]
    anew = {name: f"{prefix}-{position}" for position, name in enumerate(names)}
    for part in root.iter():
        part.tag = part.tag.rpartition("}")[2]
        _restyle(part, anew)
    for size in ("width", "height"):
        del root.attrib[size]  # as wide as its place
    root.attrib |= {"role": "img", "aria-label": label}
    return ET.tostring(root, encoding="unicode")


def _restyle(part: ET.Element, names: dict[str, str]) -> None:
    """Colours as variables, new names, and of a text what the page's style would otherwise decide."""
    kept = {
        key: VARIABLES.get(value, value) for key, value in part.attrib.items() if not key.startswith(DROPPED)
    }
    if "id" in kept:
        kept["id"] = names[kept["id"]]
    if "clip-path" in kept:
        kept["clip-path"] = f"url(#{names[kept['clip-path'][5:-1]]})"
    if part.tag == "text":
        weight, size = part.get("font-weight", "normal"), part.get("font-size", "12px")
        kept["style"] = f"fill:{kept.pop('fill')};font-weight:{weight};font-size:{size}"
    part.attrib.clear()
    part.attrib.update(kept)
