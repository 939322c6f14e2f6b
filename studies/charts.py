"""The figures of the studies, in the theme of felicific's own charts; legible without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from felicific.plots import LIGHT, Chart, themed
from studies.delayed import CRITERIA, UNHARMED, lowest
from studies.experiment import METHODS, PARTS, Run

DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2]]


def trade_off(run: Run, policy: str, happiness: str, unit: str) -> Chart:
    """The gap in the own happiness along every method's frontier: on test and on validation, side by side."""
    tracks = {
        part: pd.concat([run.tracks[policy, part, method].assign(name=method) for method in METHODS])
        for part in PARTS
    }
    numbers = run.numbers[(run.numbers["policy"] == policy) & (run.numbers["place"] == "as it is")]
    whole = numbers.set_index("people").loc[list(PARTS), ["accuracy", "gap"]]
    drawn = pd.concat([*tracks.values(), whole])
    low, high, top = drawn["accuracy"].min(), drawn["accuracy"].max(), drawn["gap"].max()
    room, money = 0.06 * (high - low), unit == "$"
    x = _x("accuracy", "accuracy", ".1%", (low - room, high + room))
    title = f"gap in {happiness}" if money else f"gap in {happiness} ({unit})"
    y = _y("gap", title, "$,.0f" if money else ",", (-0.1 * top, 1.12 * top))
    colours = [LIGHT.accent, "#a35200", "#00735c", LIGHT.muted]
    panels = []
    for part, who in (
        ("test", "never seen by the policies"),
        ("validation", "that the policies were fitted on"),
    ):
        track = tracks[part]
        ties = track[track["name"] == METHODS[-1]]
        first = track[track["eps"] == track.groupby("name")["eps"].transform("min")]
        error = first.assign(gap=first["gap"] - first["error"], top=first["gap"] + first["error"])
        lines, colour = _lines(track.assign(order=track["eps"]), x, y, METHODS, colours)
        band = alt.Chart(ties.assign(gap=ties["low"])).mark_area(color=LIGHT.muted, opacity=0.13, clip=True)
        diamond = alt.Chart(whole.loc[[part]]).mark_point(shape="diamond", filled=True, size=110, opacity=1)
        panel = alt.layer(
            band.encode(x, y, y2="high:Q"),
            lines,
            alt.Chart(error).mark_rule(strokeWidth=1.2, clip=True).encode(x, y, colour, y2="top:Q"),
            alt.Chart(first).mark_circle(size=55, opacity=1).encode(x, y, colour),
            diamond.encode(x, y, color=alt.value(LIGHT.ink)),
        )
        title = f"{part.capitalize()}: {run.people[part]:,} people {who}"
        panels.append(panel.properties(width=400, height=300, title=title))
    return _finished(
        panels,
        "Each line is a whole frontier. Dots: the criterion met exactly, with one standard error. Diamond: the "
        "classifier as it is.",
        "Shaded: the gaps that policies of equal overall accuracy can have, all of them optimal by that criterion.",
    )


def score_changes(lender: pd.DataFrame, ratio: int) -> Chart:
    """What each criterion does to every group's credit score as it is tightened."""
    now, lender = lowest(lender), _left(lender)
    groups = sorted(lender["name"].unique(), key=lambda group: group != now["group"])
    room = 0.08 * (lender["change"].max() - lender["change"].min())
    x = _x("left", "gap left, of the unconstrained one", "%", (1, 0), 3)
    panels: list[Chart] = []
    for criterion in list(CRITERIA)[:4]:
        ends = (lender["change"].min() - room, lender["change"].max() + room)
        y = _y("change", None if panels else "mean change, points", ",d", ends)
        along = lender[lender["criterion"] == criterion]
        lines, _ = _lines(along.assign(order=along["gap"]), x, y, groups, [LIGHT.accent] + [LIGHT.muted] * 3)
        baseline, zero = (
            alt.Chart(pd.DataFrame({"left": [1, 0], "change": level})) for level in (now["change"], 0.0)
        )
        panel = alt.layer(
            zero.mark_line(color=LIGHT.muted, strokeWidth=1).encode(x, y),
            baseline.mark_line(color=LIGHT.accent, strokeWidth=1.2, strokeDash=[1, 3]).encode(x, y),
            lines,
        )
        title = criterion.replace(UNHARMED, "nobody worse")
        panels.append(panel.properties(width=230, height=300, title=title))
    return _finished(
        panels,
        f"Mean change of the credit score; purple: {now['group']}, the group that the baseline approves least often. "
        "Dotted: its change under the baseline.",
        "From left to right the criterion is tightened: from the gap that the most profitable policy leaves to the "
        f"least one. A default costs the lender {ratio} repaid loans.",
    )


def lender_profit(lender: pd.DataFrame) -> Chart:
    """What each criterion costs the lender as it is tightened."""
    along = _left(lender).drop_duplicates(["criterion", "gap"])
    along = along.assign(name=along["criterion"], profit=along["profit"] / lowest(lender)["profit"])
    x = _x("left", "gap left, of the unconstrained one", "%", (1, 0))
    y = _y("profit", "profit, of baseline", "%", (along["profit"].min() - 0.04, along["profit"].max() + 0.04))
    names = list(CRITERIA)[::-1]
    colours = [LIGHT.accent if name.endswith(UNHARMED) else LIGHT.muted for name in names]
    lines, _ = _lines(along.assign(order=along["gap"]), x, y, names, colours, columns=2)
    return _finished(
        [lines.properties(width=640, height=300)],
        "Profit per applicant. Purple: no group's credit scores fare worse than under the baseline; these frontiers "
        "end where a smaller gap would harm a group.",
    )


def _left(lender: pd.DataFrame) -> pd.DataFrame:
    """Every breakpoint, with its gap as a share of the one that the criterion's loosest policy leaves."""
    along = lender[lender["gap"].notna()]
    loosest = along.groupby("criterion")["gap"].max()
    widest = along["criterion"].str.split(",").str[0].map(loosest)
    return along.assign(left=along["gap"] / widest, name=along["group"])


def _lines(
    rows: pd.DataFrame, x: Any, y: Any, names: Sequence[str], colours: Sequence[str], columns: int = 0
) -> tuple[Chart, Any]:
    """A line for every ``name``, the first on top and those of the accent broad; and the names' colours."""
    legend = alt.Legend(symbolStrokeWidth=2.5, symbolSize=900, symbolType="stroke", columns=columns)
    by_colour = alt.Color("name:N", legend=legend).scale(domain=list(names), range=colours)
    dash = alt.StrokeDash("name:N", legend=legend).scale(domain=list(names), range=DASHES[: len(names)])
    width = alt.StrokeWidth("width:Q", scale=None, legend=None)
    looks = [
        (name, 3.5 if colour == LIGHT.accent else 2) for name, colour in zip(names, colours, strict=True)
    ]
    rows = pd.concat([rows[rows["name"] == name].assign(width=wide) for name, wide in reversed(looks)])
    line = alt.Chart(rows).mark_line(strokeJoin="round", clip=True)
    return line.encode(x, y, by_colour, dash, width, order="order:Q"), by_colour


def _x(field: str, title: str, number: str, ends: tuple[float, float], ticks: int = 5) -> Any:
    axis = alt.Axis(format=number, grid=False, tickCount=ticks)
    return alt.X(f"{field}:Q", title=title, axis=axis).scale(domain=list(ends), nice=False)


def _y(field: str, title: str | None, number: str, ends: tuple[float, float]) -> Any:
    axis = alt.Axis(format=number, tickCount=6, domain=False, ticks=False)
    return alt.Y(f"{field}:Q", title=title, axis=axis).scale(domain=list(ends), nice=False)


def _finished(panels: list[Chart], *note: str) -> Chart:
    """Side by side, with a note below, in the theme."""
    below = {"orient": "bottom", "anchor": "start", "fontWeight": "normal", "offset": 12}
    below |= {"fontSize": LIGHT.size - 1, "color": LIGHT.muted}
    return themed(
        alt.hconcat(*panels, spacing=24).properties(title=alt.TitleParams(list(note), **below)), LIGHT
    )
