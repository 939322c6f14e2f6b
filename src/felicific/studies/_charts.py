"""The figures of the studies: one accent, direct labels, legible without colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._typing import Floats
from felicific.plots import LIGHT, Theme
from felicific.studies._delayed import CHANGE, Credit, crossings
from felicific.studies._paper import PARTS, Run
from felicific.studies._tracks import METHODS, OWN, Track

WIDTH, HEIGHT = 400, 300
ALONE = 330  # width of a panel that stands alone: on a phone its text is still read
SECOND, THIRD = "#a35200", "#00735c"  # colours of lines beside the accent
LETTER, LINE = 6.4, 15.0  # pixels of a label's letter and line

AROUND = tuple(
    (0.0, side * far) for far in (13.0, 28.0, 43.0) for side in (-1, 1)
)  # where a name stands: above, below

#: Stroke patterns, so that the lines can be told apart without colour.
DASHES: dict[str, list[int]] = {
    "own happiness": [1, 0],
    "equalized odds": [7, 3],
    "statistical parity": [2, 2],
    "overall accuracy": [9, 3, 2, 3],
}


@dataclass(frozen=True)
class Frame:
    """From data to pixels of one panel."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = WIDTH
    height: float = HEIGHT

    def pixels(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Pixels from the left and from the top."""
        across = (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        down = (self.y[1] - np.asarray(y)) / (self.y[1] - self.y[0]) * self.height
        return across, down

    def data(self, across: float, down: float) -> tuple[float, float]:
        """The other way."""
        x = self.x[0] + across / self.width * (self.x[1] - self.x[0])
        return x, self.y[1] - down / self.height * (self.y[1] - self.y[0])


def place_labels(
    lines: Mapping[str, tuple[Any, Any]], frame: Frame, marks: Sequence[tuple[Any, Any]] = ()
) -> dict[str, tuple[float, float]]:
    """Where to write each line's name: above, below or beside it, where the least is in the way.

    Returns the middle of each name, in data. Where lines run together only the first is seen, and the others are named
    elsewhere. ``marks`` are other lines, which no name should cover.
    """
    drawn = {name: _dense(*frame.pixels(*line)) for name, line in lines.items()}
    other = [_dense(*frame.pixels(*mark)) for mark in marks]
    taken: list[tuple[float, float, float, float]] = []
    found: dict[str, tuple[float, float]] = {}
    for name, points in drawn.items():
        seen = _apart(points, [drawn[earlier] for earlier in found])
        strangers = np.concatenate([*(some for key, some in drawn.items() if key != name), *other])
        half, best = LETTER * len(name) / 2, (math.inf, 0.0, 0.0)
        beside = half + 10
        corners = [(-beside, -11.0), (beside, -11.0), (-beside, 11.0), (beside, 11.0)]
        for i in range(0, len(seen), max(len(seen) // 60, 1)):
            for offset in [*AROUND, (-beside, 0.0), (beside, 0.0), *(corners if i == 0 else [])]:
                x, y = (seen[i] + offset).tolist()
                if offset[0] == 0.0:
                    x = min(max(x, half + 2), frame.width - half - 2)
                box = (x - half, y - LINE / 2, x + half, y + LINE / 2)
                # Near the line, and of equally good places the one nearest to where the line begins.
                far = 0.5 * abs(offset[1]) + (10.0 if abs(offset[1]) > 20 else 0.0)
                cost = _cost(box, points, strangers, taken, frame) + 0.01 * i + far
                best = min(best, (cost, x, y))
        taken.append((best[1] - half, best[2] - LINE / 2, best[1] + half, best[2] + LINE / 2))
        found[name] = frame.data(best[1], best[2])
    return found


def _apart(points: Floats, others: Sequence[Floats]) -> Floats:
    """The points that are not on another line, or all when there are none."""
    far = np.ones(len(points), dtype=bool)
    for other in others:
        far &= np.hypot(*(points[:, None, :] - other[None, :, :]).T).min(axis=0) > 6
    return points[far] if far.any() else points


def _dense(across: Floats, down: Floats) -> Floats:
    """Points along a line, three pixels apart."""
    steps = np.hypot(np.diff(across), np.diff(down))
    length = np.concatenate([[0.0], steps.cumsum()])
    at = np.linspace(0.0, length[-1], max(int(length[-1] / 3), 2))
    return np.column_stack([np.interp(at, length, across), np.interp(at, length, down)])


def _cost(
    box: tuple[float, float, float, float],
    own: Floats,
    strangers: Floats,
    taken: Sequence[tuple[float, float, float, float]],
    frame: Frame,
) -> float:
    left, top, right, bottom = box
    outside = left < 2 or right > frame.width - 2 or top < 2 or bottom > frame.height - 2
    clash = sum(left < b[2] + 6 and right > b[0] - 6 and top < b[3] and bottom > b[1] for b in taken)

    def inside(points: Floats, room: float) -> int:
        x, y = points.T
        return int(((x > left - room) & (x < right + room) & (y > top - room) & (y < bottom + room)).sum())

    covered = 6 * inside(own, 1) + 6 * inside(strangers, 1) + 0.5 * inside(strangers, 8)
    return 1000.0 * (outside + clash) + covered


# ---------------------------------------------------------------------------------------------------------
# Accuracy against the gap


def trade_off(run: Run, policy: str, theme: Theme = LIGHT) -> Any:
    """The gap in the own happiness along every method's frontier: on test and on validation, side by side."""
    import altair as alt

    panels = [
        panel.properties(title=people_of(run, part))
        for part, panel in trade_off_panels(run, policy, WIDTH, theme).items()
    ]
    return _finished(alt.hconcat(*panels, spacing=36), NOTE, theme)


def trade_off_panels(run: Run, policy: str, width: int, theme: Theme = LIGHT) -> dict[str, Any]:
    """The panels of :func:`trade_off` by their people, on the same axes."""
    shown = [run.tracks[policy, part, method] for part in PARTS for method in METHODS]
    whole = {part: run.facts["policies"][policy][part]["unprocessed"] for part in PARTS}
    x = _range(
        [*(track.accuracy for track in shown), *(np.array([w["accuracy"]]) for w in whole.values())], 0.06
    )
    top = max([*(float(track.gap.max()) for track in shown), *(w["gap"] for w in whole.values())])
    frame = Frame(x, (-0.10 * top, 1.12 * top), width)
    happiness, unit = run.data.happiness.name, run.data.happiness.unit
    title, number = (f"gap in {happiness}", "$,.0f") if unit == "$" else (f"gap in {happiness} ({unit})", ",")
    panels = {}
    for part in ("test", "validation"):
        tracks = {method: run.tracks[policy, part, method] for method in METHODS}
        panel = _panel(tracks, whole[part], frame, _axes(frame, title, number), theme)
        panels[part] = panel.properties(width=width, height=HEIGHT)
    return panels


def people_of(run: Run, part: str) -> str:
    """Whose numbers a panel shows."""
    who = "never seen by the policies" if part == "test" else "that the policies were fitted on"
    return f"{part.capitalize()}: {run.facts['people'][part]:,} people {who}"


NOTE = (
    "Each line is a whole frontier. Dots: the criterion met exactly, with one standard error. Diamond: the classifier "
    "as it is.",
    "Shaded: the gaps that policies of equal overall accuracy can have, all of them optimal by that criterion.",
)


def _finished(chart: Any, note: Sequence[str], theme: Theme) -> Any:
    """With a note below, and the theme."""
    import altair as alt

    below = alt.TitleParams(
        list(note),
        orient="bottom",
        anchor="start",
        fontSize=theme.size - 1,
        fontWeight="normal",
        color=theme.muted,
        offset=12,
    )
    return chart.properties(title=below, config=theme.config(), padding=6)


def alone(panel: Any, theme: Theme = LIGHT) -> Any:
    """A panel for a page that writes its title and notes itself."""
    return panel.properties(config=theme.config(), padding=2)


def _axes(frame: Frame, title: str, number: str) -> tuple[Any, Any]:
    import altair as alt

    x = alt.X("x:Q", title="accuracy", axis=alt.Axis(format=".1%", grid=False, tickCount=5))
    y = alt.Y("y:Q", title=title, axis=alt.Axis(format=number, tickCount=6, domain=False, ticks=False))
    return (
        x.scale(domain=list(frame.x), nice=False),
        y.scale(domain=list(frame.y), nice=False),
    )


def _rows(**columns: Any) -> list[dict[str, Any]]:
    """Columns as rows; a single number or text is repeated."""
    size = max(np.size(column) for column in columns.values())
    table = {name: np.broadcast_to(column, size).tolist() for name, column in columns.items()}
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _chart(rows: list[dict[str, Any]], x: Any, y: Any) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)


def _own_colour() -> Any:
    """Every row's own colour, as it is: layers would otherwise share one scale."""
    import altair as alt

    return alt.Color("colour:N", scale=None, legend=None)


def _wide(field: str, name: str, wide: float, narrow: float) -> Any:
    """A broad stroke for one name."""
    import altair as alt

    return alt.condition(alt.FieldEqualPredicate(equal=name, field=field), alt.value(wide), alt.value(narrow))


def _panel(
    tracks: Mapping[str, Track], whole: dict[str, Any], frame: Frame, axes: tuple[Any, Any], theme: Theme
) -> Any:
    """Lines, their beginnings with a standard error, the ties of overall accuracy, the classifier as it is, names."""
    import altair as alt

    x, y = axes
    colours, ties = colours_of(theme), tracks["overall accuracy"]
    lines: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    marks = [([whole["accuracy"]] * 2, [whole["gap"]] * 2)]
    for method in reversed(METHODS):  # the accent on top
        track, what = tracks[method], {"method": method, "colour": colours[method]}
        lines += _rows(x=track.accuracy, y=track.gap, i=np.arange(len(track.gap)), **what)
        first, g, one = float(track.accuracy[0]), float(track.gap[0]), float(track.error[0])
        low, high = max(g - one, frame.y[0]), min(g + one, frame.y[1])
        ends += _rows(x=first, y=g, **what)
        errors += _rows(x=first, y=low, top=high, **what)
        marks.append(([first, first], [low, high]))
    dashes = alt.Scale(domain=list(DASHES), range=list(DASHES.values()))
    band = _chart(_rows(x=ties.accuracy, y=ties.low, top=ties.high), x, y).encode(y2="top:Q")
    line = _chart(lines, x, y).mark_line(strokeJoin="round")
    error = _chart(errors, x, y).mark_rule(strokeWidth=1.2)
    diamond = _chart(_rows(x=whole["accuracy"], y=whole["gap"]), x, y)
    named: dict[str, tuple[Any, Any]] = {m: (track.accuracy, track.gap) for m, track in tracks.items()}
    named = {OWN: named.pop(OWN), "unprocessed": marks[0], **named}
    return alt.layer(
        band.mark_area(color=theme.muted, opacity=0.13, clip=True),
        line.encode(
            color=_own_colour(),
            strokeDash=alt.StrokeDash("method:N", scale=dashes, legend=None),
            strokeWidth=_wide("method", OWN, 3.5, 2.0),
            order="i:O",
        ),
        error.encode(color=_own_colour(), y2="top:Q"),
        _chart(ends, x, y).mark_circle(size=55, opacity=1).encode(color=_own_colour()),
        diamond.mark_point(shape="diamond", filled=True, size=110, color=theme.ink, opacity=1),
        *_names(place_labels(named, frame, marks), OWN, colours | {"unprocessed": theme.ink}, x, y),
    )


def _names(
    places: Mapping[str, tuple[float, float]], bold: str, colours: Mapping[str, str], x: Any, y: Any
) -> list[Any]:
    """Names where they were placed, one of them bold."""
    layers = []
    for weight in ("bold", "normal"):
        here = {name: place for name, place in places.items() if (name == bold) == (weight == "bold")}
        if here:
            across, up = zip(*here.values(), strict=True)
            rows = _rows(x=across, y=up, name=list(here), colour=[colours[name] for name in here])
            text = _chart(rows, x, y).mark_text(fontWeight=weight)
            layers.append(text.encode(color=_own_colour(), text="name:N"))
    return layers


def colours_of(theme: Theme) -> dict[str, str]:
    """The accent for the own happiness; the criteria in colours that differ in lightness too."""
    return {
        "own happiness": theme.accent,
        "equalized odds": SECOND,
        "statistical parity": THIRD,
        "overall accuracy": theme.muted,
    }


def _range(columns: Sequence[Floats], margin: float) -> tuple[float, float]:
    low, high = min(float(c.min()) for c in columns), max(float(c.max()) for c in columns)
    room = margin * (high - low or 1.0)
    return low - room, high + room


# ---------------------------------------------------------------------------------------------------------
# Delayed impact


PANEL = 230
SHOWN = (
    ("statistical parity", "Statistical parity"),
    ("equal opportunity", "Equal opportunity"),
    ("happiness parity", "Happiness parity"),
    ("statistical parity, no group worse than today", "Statistical parity, nobody worse"),
)


def delayed_change(credit: Credit, theme: Theme = LIGHT) -> Any:
    """What each criterion does to every group's credit score as it is tightened."""
    import altair as alt

    panels = []
    for position, (name, title) in enumerate(SHOWN):
        # The groups are named where their lines are apart, the axis where it is read first.
        panel = change_panel(
            credit, name, PANEL, theme, titled=position == 0, named=name == "equal opportunity"
        )
        panels.append(panel.properties(title=title))
    return _finished(alt.hconcat(*panels, spacing=18), change_note(credit), theme)


def change_note(credit: Credit) -> tuple[str, str]:
    """How to read the changes."""
    group = credit.groups[credit.lowest]
    return (
        f"Mean change of the credit score; purple: {group}, the group approved least often today. Dashed: its change "
        "today. Circles: from here on it is worse off than today, or its scores fall.",
        "From left to right the criterion is tightened: from the gap that the most profitable policy leaves to the "
        "least one. A default costs the lender "
        f"{credit.ratio:g} repaid loans.",
    )


def change_panel(
    credit: Credit, name: str, width: int, theme: Theme = LIGHT, *, titled: bool = True, named: bool = True
) -> Any:
    """What one criterion does to every group's credit score, on the axes that all criteria share."""
    changes = [credit.path(shown, CHANGE) for shown, _ in SHOWN]
    frame = Frame((1.0, 0.0), _range([*changes, np.zeros(1)], 0.08), width, HEIGHT)
    panel = _change_panel(credit, name, frame, "mean change, points" if titled else None, theme, named=named)
    return panel.properties(width=width, height=HEIGHT)


def _change_panel(
    credit: Credit, name: str, frame: Frame, title: str | None, theme: Theme, *, named: bool
) -> Any:
    import altair as alt

    x, y = _impact_axes(frame, title, ",d", 3)
    line, z = credit.lines[name], credit.lowest
    left, change = line.tau / credit.lines[name.split(",")[0]].tau[-1], credit.path(name, CHANGE)
    now = float(credit.means(credit.today, CHANGE)[z])
    group = credit.groups[z]
    order = [*(g for g in range(len(credit.groups)) if g != z), z]
    colours = {name: theme.accent if name == group else theme.muted for name in credit.groups}
    names = [credit.groups[g] for g in order]
    paths = [
        row
        for g, name in zip(order, names, strict=True)
        for row in _rows(x=left, y=change[:, g], group=name, colour=colours[name])
    ]
    ends = _rows(x=float(left[0]), y=change[0, order], colour=[colours[name] for name in names])
    # From here to the tight end the group is worse off.
    passed = [
        (min(crossings(left, change[:, z], level)), level)
        for level in (now, 0.0)
        if change[0, z] < level - 1e-9 and change[:, z].max() > level
    ]
    layers = [
        _chart(_rows(x=[1.0, 0.0], y=0.0), x, y).mark_line(color=theme.muted, strokeWidth=1),
        _chart(_rows(x=[1.0, 0.0], y=now), x, y).mark_line(
            color=theme.accent, strokeWidth=1.2, strokeDash=[4, 3]
        ),
        _chart(paths, x, y)
        .mark_line(strokeJoin="round")
        .encode(color=_own_colour(), detail="group:N", strokeWidth=_wide("group", group, 3.5, 1.6)),
        _chart(ends, x, y).mark_circle(size=45, opacity=1).encode(color=_own_colour()),
    ]
    if passed:
        rings = _chart(_rows(x=[p for p, _ in passed], y=[level for _, level in passed]), x, y)
        layers.append(
            rings.mark_point(color=theme.accent, size=80, fill=theme.paper, strokeWidth=2, opacity=1)
        )
    if named:
        lines = {credit.groups[g]: (left[::-1], change[::-1, g]) for g in reversed(order)}
        levels = [([1.0, 0.0], [level, level]) for level in (now, 0.0)]
        layers += _names(place_labels(lines, frame, levels), group, colours, x, y)
    return alt.layer(*layers)


PROFIT_NOTE = (
    "Profit per applicant. Purple: no group's credit scores fare worse than today; these frontiers end where a "
    "smaller gap would harm a group.",
)


def delayed_profit(credit: Credit, theme: Theme = LIGHT) -> Any:
    """What each criterion costs the lender as it is tightened."""
    import altair as alt

    return _finished(alt.hconcat(profit_panel(credit, 640, theme)), PROFIT_NOTE, theme)


def profit_panel(credit: Credit, width: int, theme: Theme = LIGHT) -> Any:
    """The panel of :func:`delayed_profit`."""
    import altair as alt

    now = -credit.today.loss
    paths = {}
    for name, line in credit.lines.items():
        widest = credit.lines[name.split(",")[0]].tau[-1]
        paths[name] = (line.tau[::-1] / widest, -line.loss[::-1] / now)
    low, _ = _range([profit for _, profit in paths.values()], 0.06)
    frame = Frame((1.0, 0.0), (low, 1.16), width, HEIGHT)
    x, y = _impact_axes(frame, "profit, of today's", "%", 5)
    named = {name.replace("no group worse than today", "nobody worse"): path for name, path in paths.items()}
    # Short lines first: the long ones have other places for their names.
    named = dict(sorted(named.items(), key=lambda item: float(np.ptp(item[1][0]))))
    colours = {name: theme.accent if "," in name else theme.muted for name in named}
    rows = [
        row
        for name, (left, profit) in reversed(named.items())
        for row in _rows(x=left, y=profit, name=name, colour=colours[name])
    ]
    ends = [
        row
        for name, (left, profit) in reversed(named.items())
        for row in _rows(x=float(left[-1]), y=float(profit[-1]), colour=colours[name])
    ]
    line = _chart(rows, x, y).mark_line(strokeWidth=2.4, strokeJoin="round")
    layers = [
        line.encode(color=_own_colour(), detail="name:N"),
        _chart(ends, x, y).mark_circle(size=50, opacity=1).encode(color=_own_colour()),
        *_names(place_labels(named, frame), "", colours, x, y),
    ]
    return alt.layer(*layers).properties(width=width, height=HEIGHT)


def _impact_axes(frame: Frame, title: str | None, number: str, ticks: int) -> tuple[Any, Any]:
    import altair as alt

    axis = alt.Axis(format="%", grid=False, tickCount=ticks)
    x = alt.X("x:Q", title="gap left, of the unconstrained one", axis=axis)
    y = alt.Y("y:Q", title=title, axis=alt.Axis(format=number, tickCount=7, domain=False, ticks=False))
    return (
        x.scale(domain=list(frame.x), nice=False),
        y.scale(domain=list(frame.y), nice=False),
    )
