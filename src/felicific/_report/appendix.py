"""Everything else: what is folded at the end of the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from felicific._audit.names import clean, labels, listed
from felicific._audit.quantity import SHARE, Quantity, count, percent
from felicific._report.words import Content, Name, Names, Places, counts, named, spans, texts, totals

#: How ratios are written, and of how many groups at most besides the highest.
RATIO, FURTHEST = Quantity("", 0.001), 12

#: Gaps in one table of positions.
IN_A_TABLE = 3

#: How shares of people are written.
PEOPLE = Quantity(SHARE, 0.001)

#: How the three points are called on the page.
POINTS = {
    "baseline": "baseline",
    "unconstrained": "tuned, no requirements",
    "proposed": "the proposed policy",
}


def said(content: Content, text: str, longest: int = 600) -> str:
    """A sentence of the library with measures called as on this page."""
    for measure in content["measures"]:
        text = text.replace(repr(measure["name"]), repr(measure["title"]))
    return clean(text, longest)


def position_tables(content: Content, names: Names, places: Places) -> list[dict[str, Any]]:
    """All positions, for those who cannot move a slider: one table, and further ones for several gaps."""
    positions, tables, own = content["positions"], [], names.alone
    chunks = (
        [own] if len(own) == 1 else [[], *(own[i : i + IN_A_TABLE] for i in range(0, len(own), IN_A_TABLE))]
    )
    rows = _position_rows(content, names, places)
    for columns in chunks:
        found = [
            [texts(names.quantities[j], numbers) for numbers in _gaps_and_bounds(positions, j)]
            for j in columns
        ]
        gaps = [
            [(gap[i], "none" if bound[i] == "unknown" else bound[i]) for gap, bound in found]
            for i in range(len(positions))
        ]
        tables.append(
            {"columns": columns, "rows": [row | {"gaps": own} for row, own in zip(rows, gaps, strict=True)]}
        )
    return tables


def _gaps_and_bounds(positions: list[Content], j: int) -> tuple[list[float | None], list[float | None]]:
    parts = [place["measures"][j] for place in positions]
    return [part["gap"]["estimate"] for part in parts], [part["bound"] for part in parts]


def _position_rows(content: Content, names: Names, places: Places) -> list[dict[str, Any]]:
    """What is said of every position besides its gaps."""
    positions = content["positions"]
    costs = names.cost_texts([place["cost_baseline"]["estimate"] for place in positions])
    goods = names.goods([place["loss"] for place in positions])
    changed = counts([sum(place["changed"]) for place in positions])
    touched = {way: counts(totals([place[way] for place in positions])) for way in ("better", "worse")}
    return [
        {
            "at": places.short[i],
            "names": ", ".join(name for name in place["names"] if name != names.reference.name),
            "kind": place["verdict"]["kind"],
            "verdict": names.two_words[place["verdict"]["kind"]],
            "cost": costs[i],
            "good": goods[i],
            "changed": changed[i],
            "gain": touched["better"][i],
            "lose": touched["worse"][i],
            "proposed": place["proposed"],
        }
        for i, place in enumerate(positions)
    ]


def measures(content: Content, names: Names) -> list[dict[str, Any]]:
    """What happiness means here."""
    return [
        {
            "name": name,
            "unit": "a share, in per cent"
            if part["unit"] == SHARE
            else clean(part["unit"], 28)
            if part["unit"]
            else "",
            "words": clean(part["words"], 400) if part["words"] not in ("", part["name"]) else "",
            "among": clean(part["among"], 200) if part["among"] else "",
        }
        for name, part in zip(names.measures, content["measures"], strict=True)
    ]


def required(content: Content, names: Names, rows: Iterable[Content]) -> list[dict[str, str]]:
    """What was asked for, what was found on these people, from where to where, and whether that meets it."""
    places = {part["name"]: j for j, part in enumerate(content["measures"])}
    found = []
    for row in rows:
        j = places.get(row["measure"])
        quantity = RATIO if row["statistic"] == "ratio" or j is None else names.quantities[j]
        found.append(
            {
                "words": said(content, row["words"], 300),
                "what": row["what"],
                "number": quantity(row["estimate"]),
                "span": quantity.span(row["low"], row["high"]),
                "verdict": row["verdict"],
                "note": said(content, row["note"], 300) if row["note"] else "",
            }
        )
    return found


def ratios(content: Content, names: Names) -> list[dict[str, Any]]:
    """Of what people want, the groups furthest below the highest mean, and what is said of the smallest ratio."""
    found, places = [], {part["name"]: j for j, part in enumerate(content["measures"])}
    for compared in content.get("ratios", ()):
        between = compared["between"]
        several = between if isinstance(between, list) else [between]
        by = "" if between is None else f" by {clean(listed(map(str, several)))}"
        for part in compared["measures"]:
            if part["wanted"]:
                j = places[part["name"]]
                table = _ratio_rows(part, names.quantities[j])
                remarks = table.pop("remarks") + [said(content, text) for text in part["remarks"]]
                found.append({"name": names.measures[j], "by": by, "remarks": remarks, **table})
    return found


def _ratio_rows(part: Content, quantity: Quantity) -> dict[str, Any]:
    """Groups with their ratio to the highest, those furthest below it first."""
    rows = sorted(part["rows"], key=lambda row: row["ratio"])
    left = len(rows) - FURTHEST - 1
    shown = rows if left <= 0 else [*rows[:FURTHEST], rows[-1]]
    return {
        "rows": [
            {
                "name": name,
                "people": count(row["people"]),
                "mean": quantity(row["mean"]),
                "ratio": RATIO(row["ratio"]),
                "span": _ratio_span(row),
            }
            for name, row in zip(named(row["group"] for row in shown), shown, strict=True)
        ],
        "remarks": [f"{left} groups in between are not shown."] if left > 0 else [],
    }


def _ratio_span(row: Content) -> str:
    """What a ratio leaves open; the highest is itself."""
    if row["low"] == row["high"] == 1.0:
        return ""
    known = row["high"] is not None or row["low"]
    return RATIO.span(row["low"], row["high"]) if known else RATIO.span(None, None)


def points(content: Content, names: Names) -> dict[str, Any] | None:
    """The baseline, the best without requirements, and the proposal: what is aimed at, the gaps, who is changed."""
    found = [content["points"].get(name) for name in POINTS]
    if None in found:
        return None
    rows: list[tuple[Any, list[str]]] = [(names.aim, names.goods([point["loss"] for point in found]))]
    for j in names.alone:
        gaps = texts(names.quantities[j], [point["gaps"][j] for point in found])
        rows.append((f"gap in {names.measures[j]}", gaps))
    moved = ["not known" if not point["changed"] else _least_and_most(point["changed"]) for point in found]
    rows.append(("whose decision changes, in the groups", moved))
    return {"heads": [*POINTS.values()], "rows": rows}


def _least_and_most(shares: list[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return spans(PEOPLE, [(min(known), max(known))])[0] if known else "not known"


def worse_off(content: Content, names: Names) -> dict[str, Any] | None:
    """Who would lose less, and what it costs: at most so many of each group, the loss, and the share of each."""
    found = content["worse_off"]
    if not found:
        return None
    reached = [row["loss"] is not None for row in found]
    columns = [
        texts(PEOPLE, row["loses"]) if known else [""] * len(names.groups)
        for row, known in zip(found, reached, strict=True)
    ]
    limits = texts(PEOPLE, [row["at_most"] for row in found])
    return {
        "heads": [
            "as proposed" if i == 0 else f"at most {limits[i]} of each group" if row["at_most"] else "nobody"
            for i, row in enumerate(found)
        ],
        "goods": [
            names.goods([row["loss"]])[0] if known else "out of reach"
            for row, known in zip(found, reached, strict=True)
        ],
        "rows": list(zip(names.groups, zip(*columns, strict=True), strict=True)),
    }


def unlabelled(content: Content) -> dict[str, Any] | None:
    """Who has no label, as rows of a table and sentences; None where everybody has one."""
    known = content["labels"]
    if known is None:
        return None
    rows = [
        [
            percent(1.0 - share, 1) if share is not None else "nobody",
            percent(seen, 1) if seen is not None else "",
            percent(supposed, 1) if supposed is not None else "",
            percent(standing) if standing is not None else "",
            count(effective) if effective is not None else "",
        ]
        for share, seen, supposed, standing, effective in zip(
            *(known[part] for part in ("share", "seen", "imputed", "standing", "effective")), strict=True
        )
    ]
    worst = (
        f"Numbers that look at the label are the worst case {known['condition']}."
        if known["condition"]
        else ""
    )
    return {
        "label": Name(clean(str(known["label"]))),
        "heads": [
            "no label",
            f"{labels([known['label']])[0]}, of those with one",
            "supposed, of the others",
            "the others stood for",
            "as good as so many labels",
        ],
        "rows": list(zip(named(known["groups"]), rows, strict=True)),
        "lines": [
            f"{known['source']}.",
            *([worst] if worst else []),
            *(clean(t, 400) for t in known["cautions"]),
        ],
    }


def methods(content: Content) -> list[str]:
    """How it was measured: what the content says, and of the policies where they were fitted."""
    found = [said(content, text) for text in content["methods"]]
    found += [
        f"Of the policies where they were fitted: {said(content, text)}" for text in content["premises"]
    ]
    outlook = content["outlook"]
    if outlook:
        found.append(f"The proposed policy: {said(content, outlook[0].lower() + outlook[1:])}")
    return found
