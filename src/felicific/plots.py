"""Charts, as Altair objects: the trade-off, the groups, the policy; one theme for all of them.

They need the extra ``plots``, which reports do not. Names of groups, decisions and measures are data to these
charts, never code: they are made printable and cut to a readable length, and no chart holds an expression that they
could become part of.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from felicific._audit.monitored import Monitor
from felicific._audit.names import clean
from felicific._audit.names import labels as short_labels
from felicific._audit.result import Audit, Interval
from felicific._files import write_whole
from felicific._fit.candidates import Alternatives
from felicific._frontier.curve import drawn
from felicific._frontier.frontier import Frontier
from felicific._frontier.numeric import AmountFrontier
from felicific._policy.numeric import AmountPolicy
from felicific._policy.policy import Policy
from felicific._policy.steering import Steering
from felicific._policy.words import loss_title
from felicific._problem.happiness import Measure, positions
from felicific.exceptions import DataError

try:
    import altair as alt
    import vl_convert
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"Charts need {error.name}. Install it: pip install 'felicific[plots]'", name=error.name
    ) from None

#: An Altair chart of any kind.
Chart: TypeAlias = Any

#: Longest name that a chart shows whole.
LONGEST = 32


@dataclass(frozen=True)
class Theme:
    """Fonts and colours. Groups are told apart by colour and by shape, whose cycles differ in length.

    The default colours are those of Okabe and Ito (2008), which people with any common colour vision tell apart.
    """

    ink: str = "#1f2328"
    muted: str = "#5f6670"
    faint: str = "#d9dde2"
    accent: str = "#5b3ea8"
    paper: str = "#ffffff"
    groups: tuple[str, ...] = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#4d4d4d")
    shapes: tuple[str, ...] = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
    font: str = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
    size: int = 12

    def colours(self, n: int) -> list[str]:
        """Colours of n groups."""
        return [self.groups[i % len(self.groups)] for i in range(n)]

    def forms(self, n: int) -> list[str]:
        """Shapes of n groups."""
        return [self.shapes[i % len(self.shapes)] for i in range(n)]

    def config(self) -> dict[str, Any]:
        """Everything that a chart would otherwise decide by itself."""
        text = {"labelColor": self.muted, "titleColor": self.ink, "labelFontSize": self.size}
        return {
            "aria": False,
            "background": self.paper,
            "font": self.font,
            "view": {"stroke": None},
            "axis": {
                **text,
                "titleFontSize": self.size,
                "titleFontWeight": "normal",
                "titlePadding": 8,
                "domainColor": self.faint,
                "tickColor": self.faint,
                "gridColor": self.faint,
                "labelLimit": 260,
                "titleLimit": 520,
            },
            "header": {
                **text,
                "titleFontSize": self.size,
                "titlePadding": 2,
                "labelFontWeight": "bold",
                "labelLimit": 260,
            },
            "legend": {**text, "orient": "top", "title": None, "labelLimit": 260, "symbolStrokeWidth": 0},
            "title": {
                "color": self.ink,
                "fontSize": self.size + 1,
                "anchor": "start",
                "frame": "group",
                "fontWeight": "bold",
            },
            "text": {"color": self.ink, "fontSize": self.size},
        }


LIGHT = Theme()


# ---------------------------------------------------------------------------------------------------------
# The charts


def frontier(
    frontier: Frontier, *, measure: str | None = None, theme: Theme = LIGHT, width: int = 560
) -> Chart:
    """The whole trade-off: what the decisions lose or get right, for every allowed gap.

    Parameters
    ----------
    frontier : Frontier
        Its breakpoints are dots (while they can be told apart; of very many, some are drawn); the baseline's decisions
        are a diamond.
    measure : str, optional
        The measure in whose unit the gap is drawn. With several measures the default is the position on the
        ray: the allowed gaps in per cent of those that the ray stands for.
    """
    unit, title = _ray(frontier, measure)
    share = measure is None and len(frontier.measures) > 1
    accuracy = frontier.loss_name == "error"
    x = _across("gap", title, format="%" if share else alt.Undefined).scale(domainMin=0, nice=False)
    y = _up("loss", format="%" if accuracy else alt.Undefined).scale(zero=False)
    points = [
        {"gap": tau * unit, "loss": _good(loss, accuracy)} for tau, loss in zip(*drawn(frontier), strict=True)
    ]
    known = frontier.baseline
    now = (
        [] if known is None else [{"gap": frontier.tau_baseline * unit, "loss": _good(known.loss, accuracy)}]
    )
    reach = max(one["gap"] for one in (*now, points[-1])) or 1.0
    # Beyond the last breakpoint a larger gap buys nothing.
    flat = [*points, {"gap": 1.06 * reach, "loss": points[-1]["loss"]}]
    shown = values(points if len(points) <= 60 else [points[0], points[-1]])
    layers = [
        values(flat).mark_line(color=theme.accent, strokeWidth=2.5, strokeJoin="round"),
        shown.mark_circle(color=theme.accent, size=42, opacity=1),
    ]
    if now:
        baseline = values([{**now[0], "text": "baseline"}])
        text = baseline.mark_text(align="right", dx=-9, dy=13, fontWeight="bold").encode(text="text:N")
        layers += [_diamond(baseline, theme), text]
    chart = alt.layer(*(layer.encode(x=x, y=y) for layer in layers)).properties(
        width=width, height=0.5 * width
    )
    return themed(chart.properties(title="accuracy" if accuracy else "loss per person"), theme)


def _diamond(place: Chart, theme: Theme) -> Chart:
    """The mark of the baseline."""
    return place.mark_point(shape="diamond", filled=True, color=theme.ink, size=130, opacity=1)


def amounts_frontier(frontier: AmountFrontier, *, theme: Theme = LIGHT, width: int = 560) -> Chart:
    """The least loss of amounts for every allowed gap, on the fitted people; each dot was solved."""
    gaps, losses, along = frontier.drawn()
    rows = [{"gap": gap, "loss": loss} for gap, loss in zip(gaps, losses, strict=True)]
    x, y = _across("gap", clean(along, 60)), _up("loss").scale(zero=False)
    base = values(rows).encode(x=x, y=y)
    line = base.mark_line(color=theme.accent, strokeWidth=2.5, strokeJoin="round")
    chart = alt.layer(line, base.mark_circle(color=theme.accent, size=42, opacity=1))
    title = loss_title(frontier.fitted.policy.loss_name)
    return themed(chart.properties(width=width, height=0.5 * width, title=title), theme)


def lines(policy: AmountPolicy, *, theme: Theme = LIGHT, width: int = 560) -> Chart:
    """What a policy of amounts gives for which prediction, a line for every group; dashed: as predicted.

    Lines are drawn where 98 of 100 people of the group are that it was fitted on.
    """
    if not policy.lines:
        raise DataError(
            f"A policy of kind {policy.kind!r} looks at people themselves, so it has no lines.",
            "Read its sentences().",
        )
    names = _labels(policy.groups) if policy.sees_group else ["everybody"]
    rows = [
        {"group": name, "prediction": f, "amount": amount, "order": k}
        for name, line in zip(names, policy.lines, strict=True)
        for k, (f, amount) in enumerate(zip(*(part.tolist() for part in line.typical), strict=True))
    ]
    ends = [pick(row["prediction"] for row in rows) for pick in (min, max)]
    x = alt.X("prediction:Q", axis=alt.Axis(grid=False, tickCount=6), scale=alt.Scale(zero=False, nice=False))
    y = alt.Y("amount:Q", axis=alt.Axis(tickCount=6, domain=False, ticks=False), scale=alt.Scale(zero=False))
    legend = alt.Legend(symbolStrokeWidth=2.5, symbolSize=500)
    colour = _coloured("group", names, theme, legend=legend)
    dash = alt.StrokeDash("group:N", legend=legend).scale(domain=names)
    drawn = values(rows).mark_line(strokeWidth=2.5)
    drawn = drawn.encode(x=x, y=y, color=colour, strokeDash=dash, order="order:Q")
    same = values([{"prediction": end, "amount": end} for end in ends])
    same = same.mark_line(color=theme.muted, strokeDash=[4, 3], strokeWidth=1).encode(x=x, y=y)
    chart = alt.layer(same, drawn).properties(width=width, height=0.6 * width)
    return themed(chart.properties(title="Amount for every prediction; dashed: as predicted"), theme)


def policy(policy: Policy, *, theme: Theme = LIGHT, width: int = 560) -> Chart:
    """What the policy decides on whom.

    With a score and two classes: for every group the probability of the second class against the score (or the decision
    function of a model without probabilities), a step at each threshold, and the model's own boundary as a dashed line.
    With more classes, and with labels: of the people whom the model gives each label, how many get which decision; what
    is not as the label says stands out.
    """
    return steps(policy_steps(policy), theme=theme, width=width)


def policy_steps(policy: Policy) -> dict[str, Any]:
    """What a chart of the policy shows, as plain data.

    ``rows`` are stretches of scores that are treated alike: the group, the model's label, from which score to which,
    and the probability of every decision.
    """
    stretches = policy.stretches()
    if stretches is None:
        raise DataError(
            f"A policy of kind {type(policy).__name__} sees all of x, which no chart of signals shows.",
            "Read its sentences().",
        )
    names = _labels(policy.groups) if policy.sees_group else ["everybody"]
    decisions = _labels(policy.decisions.tolist())
    labels = _labels(policy.classes.tolist()) if policy.listed else decisions
    value, ends = stretches.scale()
    return {
        "groups": names,
        "decisions": decisions,
        "labels": labels,
        "shown": policy.best if policy.listed else 1,
        "signal": policy.kind,
        "boundary": value.get(stretches.boundary, stretches.boundary),
        "what": "decision function" if stretches.cuts else "score",
        "ends": list(ends),
        "rows": [
            {
                "group": names[z],
                "label": labels[owner],
                "low": value.get(low, low),
                "high": value.get(high, high),
                "q": q,
            }
            for z, owner, low, high, q in stretches.rows
        ],
    }


def steps(content: dict[str, Any], *, theme: Theme = LIGHT, width: int = 560) -> Chart:
    """Draw what :func:`policy_steps` found."""
    return (_by_class if content["boundary"] is None else _by_score)(content, theme, width)


def _by_score(content: dict[str, Any], theme: Theme, width: int) -> Chart:
    """Steps of the probability along the score, one row per group."""
    names, one, rows = content["groups"], content["shown"], []
    decision, label = content["decisions"][one], content["labels"][1]
    ends, what = content["ends"], content["what"]
    for row in content["rows"]:
        rows.append({"group": row["group"], "score": row["low"], "chance": row["q"][one]})
        if row["high"] == ends[1]:
            rows.append({"group": row["group"], "score": row["high"], "chance": row["q"][one]})
    x = _across("score", f"{what} for {label}")
    x = x.scale(domain=ends)
    y = alt.Y("chance:Q", title=None, scale=alt.Scale(domain=[0, 1]))
    y = y.axis(values=[0, 1], format="%", domain=False, ticks=False, gridDash=[1, 3])
    colour = _coloured("group", names, theme, legend=None)
    base = alt.Chart().encode(x=x, y=y, color=colour)
    area = base.mark_area(interpolate="step-after", opacity=0.25)
    line = base.mark_line(interpolate="step-after", strokeWidth=2)
    boundary = alt.Chart().mark_rule(color=theme.muted, strokeDash=[4, 3])
    boundary = boundary.encode(x=alt.XDatum(content["boundary"]))
    chart = alt.layer(area, line, boundary, data=alt.InlineData(values=rows)).properties(
        width=width, height=46
    )
    facet = chart.facet(row=_rows("group", names), spacing=12)
    title = f"Probability of being decided {decision}, by {what}; dashed: the model's own boundary"
    return themed(facet.properties(title=title), theme)


def _by_class(content: dict[str, Any], theme: Theme, width: int) -> Chart:
    """Shares of the decisions, groups down and the model's labels across; what is changed stands out.

    A score adds the probability of the label along each panel; a label by itself has nothing along it.
    """
    decisions, rows = content["decisions"], []
    for row in content["rows"]:
        tops = np.cumsum([0.0, *row["q"]]).tolist()
        rows += [
            {"group": row["group"], "label": row["label"], "low": row["low"], "high": row["high"],
             "decision": decision, "from": tops[d], "to": tops[d + 1],
             "strength": 0.2 if decision == row["label"] else 0.95}
            for d, decision in enumerate(decisions) if row["q"][d] > 0
        ]  # fmt: skip
    x = alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), title="probability of it", axis=None)
    if content["signal"] == "score":
        x = x.axis(grid=False, tickCount=3)
    y = alt.Y("from:Q", title=None, axis=None, scale=alt.Scale(domain=[0, 1]))
    legend = alt.Legend(title="decided", titleOrient="left")
    colour = _coloured("decision", decisions, theme, legend=legend)
    strength = alt.Opacity("strength:Q", scale=None, legend=None)
    chart = values(rows).mark_rect()
    chart = chart.encode(x=x, x2="high:Q", y=y, y2="to:Q", color=colour, opacity=strength)
    drawn = content["signal"] == "soft-label"
    title = (
        "a label drawn from the model's probabilities is ..." if drawn else "the model labels a person ..."
    )
    labels = content["labels"]
    column = alt.Column("label:N", sort=labels, title=title)
    chart = chart.properties(width=max(60, (width - 20 * len(labels)) // len(labels)), height=30)
    return themed(chart.facet(row=_rows("group", content["groups"]), column=column, spacing=6), theme)


def groups(
    audit: Audit,
    after: Audit | None = None,
    *,
    measure: str | None = None,
    ways: tuple[str, str] = ("baseline", "under the policy"),
    theme: Theme = LIGHT,
    width: int = 480,
) -> Chart:
    """Mean happiness of every group with its interval, of one audit or of two, before and after.

    Where hidden reasons leave a mean open, a broad bar shows between which numbers, without any error of sampling.

    Parameters
    ----------
    audit, after : Audit
        What was found; both of the same measures.
    measure : str, optional
        The one to draw; by default all, below each other.
    ways : two strings
        What to call the two audits.
    """
    charts: list[Any] = []
    one = None if measure is None else _place(measure, [found.measure for found in audit.measures])
    for j, found in enumerate(audit.measures):
        if one in (None, j):
            parts = [found] if after is None else [found, after[found.measure.name]]
            rows = [
                {"way": way, "group": group, "mean": mean.estimate, "low": mean.low, "high": mean.high}
                | ({} if mean.bounds is None else dict(zip(("least", "most"), mean.bounds, strict=True)))
                | {
                    "compared": found.gap is not None
                    and group not in audit.left_out.get(found.measure.name, ())
                }
                for way, part in zip(ways, parts, strict=False)
                for group, mean in part.means.items()
            ]
            title = title_of(found.measure)
            charts.append(_means(rows, title if found.measure.tells_who else f"mean {title}", theme, width))
    if len(charts) == 1:
        return themed(charts[0], theme)
    return themed(
        alt.vconcat(*charts, spacing=28).resolve_scale(color="independent", shape="independent"), theme
    )


def monitor(monitor: Monitor, *, measure: str | None = None, theme: Theme = LIGHT, width: int = 560) -> Chart:
    """The gap along the people who came: the estimate, both its ends, what is allowed, and when an alarm was raised.

    Parameters
    ----------
    monitor : Monitor
        Long ago is drawn at fewer times.
    measure : str, optional
        The one to draw; by default all, below each other.
    """
    parts = monitor.measures if measure is None else [monitor.measures[_place(measure, monitor.measures)]]
    times = monitor.along()
    charts = [_monitored(monitor, part, times, theme, width) for part in parts]
    return themed(charts[0] if len(charts) == 1 else alt.vconcat(*charts, spacing=28), theme)


#: What the lines of a monitor are: a number of an interval, its words, and how it is drawn.
_WATCHED = {
    "estimate": ("largest difference so far", [1, 0]),
    "high": ("on average at most", [5, 3]),
    "low": ("at some time more than", [2, 2]),
}


def _monitored(
    monitor: Monitor, part: Measure, times: list[tuple[int, dict[str, Interval]]], theme: Theme, width: int
) -> Chart:
    """One measure along the people who came."""
    allowed = monitor.allowed[part.name]
    seen = [(rows, gaps[part.name]) for rows, gaps in times if math.isfinite(gaps[part.name].estimate)]
    last = [] if not seen else [seen[-1][1].low, seen[-1][1].high]
    # Limits of the first few people reach so far that nothing else could be seen.
    top = (
        1.15 * max(n for n in [allowed, *last, *(gap.estimate for _, gap in seen)] if math.isfinite(n)) or 1.0
    )
    names = [words for words, _ in _WATCHED.values()]
    lines = [
        {"people": rows, "gap": getattr(gap, number), "what": words}
        for number, (words, _) in _WATCHED.items()
        for rows, gap in seen
        if math.isfinite(getattr(gap, number))
    ]
    x = _across("people", "people who came")
    x = x.scale(domain=[0, max(monitor.rows, 1)], nice=False)
    y = _up("gap")
    y = y.scale(domain=[0, top], nice=False)
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=400)
    colours = [theme.accent, theme.muted, theme.groups[3]]
    colour = alt.Color("what:N", sort=names, legend=legend, scale=alt.Scale(domain=names, range=colours))
    dash = alt.StrokeDash("what:N", sort=names, legend=legend)
    dash = dash.scale(domain=names, range=[drawn for _, drawn in _WATCHED.values()])
    line = values(lines).mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=colour, strokeDash=dash)
    limit = values([{"gap": allowed, "people": 0, "text": "allowed"}])
    rule = limit.mark_rule(color=theme.ink).encode(y=y)
    word = limit.mark_text(align="left", dx=4, dy=-7).encode(x=x, y=y, text="text:N")
    layers = [rule, word, line, *_alarm_mark(monitor, part, (x, y, top), theme)]
    chart = alt.layer(*layers).properties(width=width, height=0.42 * width)
    return chart.properties(title=f"gap of {title_of(part)}, limits at confidence {monitor.confidence:.6g}")


def _alarm_mark(monitor: Monitor, part: Measure, place: tuple[Any, Any, float], theme: Theme) -> list[Chart]:
    """Where the alarm was raised, if it was about this measure."""
    alarm, (x, y, top) = monitor.alarm, place
    if alarm is None or alarm.measure != part.name:
        return []
    late, colour = alarm.rows > 0.8 * monitor.rows, theme.groups[3]
    mark = values([{"people": alarm.rows, "gap": top, "text": "alarm"}])
    how = {"align": "right" if late else "left", "dx": -6 if late else 6, "dy": 8, "fontWeight": "bold"}
    text = mark.mark_text(color=colour, **how).encode(x=x, y=y, text="text:N")
    return [mark.mark_rule(color=colour, strokeWidth=2).encode(x=x), text]


def alternatives(
    alternatives: Alternatives, *, measure: str | None = None, theme: Theme = LIGHT, width: int = 480
) -> Chart:
    """How every candidate changes the gap (across) and the loss (up), with intervals; the baseline is a diamond.

    Dashed are no change of the gap, and the loss that is allowed.

    Parameters
    ----------
    alternatives : Alternatives
        Those that were not judged are left out. What is found is filled.
    measure : str, optional
        The measure whose gap is drawn; with several, by default the first.
    """
    parts = [part.measure for part in alternatives.baseline.measures if part.gap is not None]
    part = parts[0 if measure is None else _place(measure, parts)]
    judged = [row for row in alternatives.rows if row.loss_change is not None]
    if not judged:
        raise DataError(
            "No candidate was judged, so there is nothing to draw.", "Allow a larger loss_slack=."
        )
    data = []
    for row, name in zip(judged, _labels(row.name for row in judged), strict=True):
        ends = {"gap": row.gap_changes[part.name], "loss": row.loss_change}
        numbers = {
            f"{what}{end}": getattr(change, field)
            for what, change in ends.items()
            for end, field in (("", "estimate"), (" low", "low"), (" high", "high"))
        }
        finite = {name: number for name, number in numbers.items() if math.isfinite(number)}
        data.append({"name": name, "found": row.found, **finite})
    x = _across("gap", f"change of the gap in {title_of(part)}")
    y = alt.Y("loss:Q", title="change of the loss per person", axis=alt.Axis(grid=False, tickCount=5))
    line, rows = {"color": theme.muted, "strokeDash": [4, 3]}, values(data)
    filled = alt.condition("datum.found", alt.value(theme.accent), alt.value(theme.paper))
    layers = [
        values([{"gap": 0.0}]).mark_rule(**line).encode(x=x),
        values([{"loss": alternatives.slack}]).mark_rule(**line).encode(y=y),
        _diamond(values([{"gap": 0.0, "loss": 0.0}]), theme).encode(x=x, y=y),
        rows.mark_rule(color=theme.accent, opacity=0.6).encode(x="gap low:Q", x2="gap high:Q", y=y),
        rows.mark_rule(color=theme.accent, opacity=0.6).encode(y="loss low:Q", y2="loss high:Q", x=x),
        rows.mark_point(size=90, opacity=1, stroke=theme.accent).encode(x=x, y=y, fill=filled),
        rows.mark_text(align="left", dx=9, dy=-9).encode(x=x, y=y, text="name:N"),
    ]
    return themed(alt.layer(*layers).properties(width=width, height=0.6 * width), theme)


def steering(steering: Steering, *, theme: Theme = LIGHT, width: int = 560) -> Chart:
    """How a steered policy went: the controls of the groups above, the gap that is left below.

    Controls are drawn as thresholds of the score where there is one, else as they are; dashed is where each began. The
    gap is that of all people so far; a bound that holds whoever comes is shaded, and dashed is what is allowed.

    Parameters
    ----------
    steering : Steering
        With at least one person decided on.
    """
    content = steering_steps(steering)
    names = content["groups"]
    x = _across("people", "people decided on", format=",d")
    x = x.scale(domain=[0, content["people"]], nice=False)
    y = alt.Y("control:Q", title=None, scale=alt.Scale(zero=False, padding=6))
    y = y.axis(tickCount=5, domain=False, ticks=False, gridDash=[1, 3], format="~g")
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=3)
    colour = _coloured("group", names, theme, legend=legend)
    lines = values(content["controls"]).mark_line(strokeWidth=1.5, interpolate="step-after")
    start = values(content["start"]).mark_rule(strokeDash=[4, 3], strokeWidth=1.5)
    above = alt.layer(start.encode(y=y, color=colour), lines.encode(x=x.title(None), y=y, color=colour))
    above = above.properties(width=width, height=0.32 * width, title=content["what"])
    charts = [above] + ([_gap_left(content, x, theme, width)] if content["gaps"] else [])
    return themed(alt.vconcat(*charts, spacing=18), theme)


def _gap_left(content: dict[str, Any], x: Chart, theme: Theme, width: int) -> Chart:
    """The gap so far, with the bound as an area and what is allowed as a dashed line.

    Roots are drawn, so that a bound that is far away and a gap that is nearly closed are both seen.
    """
    rows, scale = content["gaps"], alt.Scale(type="sqrt", domain=[0, content["highest"]], nice=False)
    size = 10.0 ** math.floor(math.log10(content["highest"]))
    ticks = [part * size for part in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0) if part * size <= content["highest"]]
    axis = alt.Axis(values=ticks, domain=False, ticks=False, gridDash=[1, 3])
    y, most = (alt.Y(f"{field}:Q", title=None, scale=scale, axis=axis) for field in ("gap", "bound"))
    bound = values([row for row in rows if "bound" in row])
    layers = [
        bound.mark_area(color=theme.faint, opacity=0.7, clip=True).encode(x=x, y=most),
        values(rows).mark_line(color=theme.accent, strokeWidth=2, clip=True).encode(x=x, y=y),
    ]
    if content["allowed"] is not None:
        allowed = values([{"gap": content["allowed"]}])
        layers.append(allowed.mark_rule(color=theme.ink, strokeDash=[4, 3]).encode(y=y))
    return alt.layer(*layers).properties(width=width, height=0.28 * width, title=content["left"])


def steering_steps(steering: Steering) -> dict[str, Any]:
    """What a chart of a steering shows, as plain data."""
    points, measure = steering.history, steering.measure
    if not points:
        raise DataError("Nobody was decided on yet, so there is nothing to draw.", "Call its decide first.")
    names = _labels(steering.groups)
    controls = list(steering.controls.values())
    scored = controls[0].threshold is not None
    decision = clean(str(steering.steered.classes.tolist()[-1]), LONGEST)
    places = [steering.steered.groups.index(group) for group in steering.groups]
    unit = 1.0
    if steering.steered.sees_x:  # weights of dollars are small numbers: those of a million are not
        largest = max(abs(one.controls[z]) for one in points for z in places)
        unit = 10.0 ** max(0, math.ceil(-math.log10(largest or 1.0)))

    def shown(numbers: Sequence[float]) -> list[float]:
        if not scored:
            return [unit * numbers[z] for z in places]
        return [float(number) for number in steering.thresholds(numbers) if number is not None]

    fitted = [0.0] * len(steering.steered.groups)
    for z, control in zip(places, controls, strict=True):
        fitted[z] = control.fitted
    if scored:
        value = "decision function" if steering.steered.of_values else "score"
        what = f"{value} above which a person is decided {decision}; dashed: at first"
    elif steering.steered.sees_x:
        per = f", per {unit:,.0f} {clean(measure.unit, 16)}".rstrip() if unit > 1.0 or measure.unit else ""
        what = f"weight of {clean(measure.title, 48)} beside the loss{per}; dashed: at first"
    else:
        what = f"share of the fitted people who would be decided {decision}; dashed: at first"
    gaps = [
        {"people": one.people, "gap": one.gap} | ({} if one.bound is None else {"bound": one.bound})
        for one in points
        if one.gap is not None
    ]
    bounded = any("bound" in row for row in gaps)
    allowed = steering.allowed_gap
    words = f"gap in {title_of(measure)} of all people so far"
    words += "; dashed: allowed" if allowed is not None else ""
    words += "; shaded: what it cannot exceed" if bounded else ""
    return {
        "groups": names,
        "people": steering.total,
        "what": what,
        "left": words,
        "allowed": allowed,
        "controls": [
            {"people": one.people, "group": name, "control": number}
            for one in points
            for name, number in zip(names, shown(one.controls), strict=True)
        ],
        "start": [
            {"group": name, "control": number} for name, number in zip(names, shown(fitted), strict=True)
        ],
        "gaps": gaps,
        "highest": _highest(gaps, allowed),
    }


def _highest(gaps: Sequence[dict[str, float]], allowed: float | None) -> float:
    """Where the axis of the gap ends: the first people, of whom there are few, may go beyond it."""
    later = [row["gap"] for row in gaps[len(gaps) // 10 :]]
    half = gaps[len(gaps) // 2].get("bound", 0.0) if gaps else 0.0
    return max(*(1.25 * gap for gap in later), 1.5 * (allowed or 0.0), half, 1e-12)


def means(rows: Sequence[dict[str, Any]], *, title: str, theme: Theme = LIGHT, width: int = 480) -> Chart:
    """Group means under one or more ways of deciding: a block per way, a line per group, the gap as a band.

    Parameters
    ----------
    rows : list of dict
        ``way``, ``group``, ``mean`` and, where they are known, ``low`` and ``high``; in the order to be drawn. The band
        is that of the groups of which ``compared`` is not false.
    title : str
        What the means are means of, with the unit.
    """
    return themed(_means(rows, title, theme, width), theme)


def _means(rows: Sequence[dict[str, Any]], title: str, theme: Theme, width: int) -> Chart:
    ways, groups = _ordered(row["way"] for row in rows), _ordered(row["group"] for row in rows)
    way_names, names = (dict(zip(found, _labels(found), strict=True)) for found in (ways, groups))
    data, bands = [], []
    for way in ways:
        mine = [row for row in rows if row["way"] == way]
        compared = [row["mean"] for row in mine if row.get("compared", True)]
        for row in mine:
            ends = {end: row[end] for end in ("low", "high", "least", "most") if row.get(end) is not None}
            shown = {"way": way_names[way], "group": names[row["group"]], "mean": row["mean"]}
            data.append({**shown, **{end: value for end, value in ends.items() if math.isfinite(value)}})
        bands += [{"way": way_names[way], "from": min(compared), "to": max(compared)}] if compared else []
    shown_groups = [names[group] for group in groups]
    x = alt.X("mean:Q", title=clean(title, 90), scale=alt.Scale(zero=False, padding=14, nice=False))
    x = x.axis(tickCount=6, gridDash=[1, 3])
    y = alt.Y("group:N", sort=shown_groups, title=None, axis=alt.Axis(domain=False, ticks=False))
    colour = _coloured("group", shown_groups, theme, legend=None)
    shape = alt.Shape("group:N", legend=None)
    shape = shape.scale(domain=shown_groups, range=theme.forms(len(groups)))
    table = alt.InlineData(values=[*data, *bands])
    band = alt.Chart().mark_rect(color=theme.accent, opacity=0.1).encode(x=alt.X("from:Q"), x2="to:Q")
    whisker = (
        alt.Chart().mark_rule(strokeWidth=2, opacity=0.6).encode(x="low:Q", x2="high:Q", y=y, color=colour)
    )
    dot = alt.Chart().mark_point(size=95, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    parts = [band.transform_filter("isValid(datum.from)")]
    if any("least" in row for row in data):  # what hidden reasons leave open, without any error of sampling
        left = (
            alt.Chart()
            .mark_rule(strokeWidth=10, opacity=0.3)
            .encode(x="least:Q", x2="most:Q", y=y, color=colour)
        )
        parts.append(left.transform_filter("isValid(datum.least) && isValid(datum.most)"))
    parts += [
        whisker.transform_filter("isValid(datum.low) && isValid(datum.high)"),
        dot.transform_filter("isValid(datum.mean)"),
    ]
    chart = alt.layer(*parts, data=table).properties(width=width, height=alt.Step(22))
    return chart.facet(row=_rows("way", [way_names[way] for way in ways]), spacing=16)


# ---------------------------------------------------------------------------------------------------------
# Files


def svg(chart: Chart) -> str:
    """The chart as SVG text: the same chart always gives the same text."""
    return str(vl_convert.vegalite_to_svg(_specification(chart), vl_version=_vega_lite()))


def save(chart: Chart, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
    """Write a chart to a ``.png`` or ``.svg`` file, whole or not at all.

    Parameters
    ----------
    chart : Altair chart
    path : str or Path
    scale : float
        Pixels of a PNG per pixel of the chart.
    """
    kind = Path(path).suffix.lower()
    if kind == ".svg":
        write_whole(path, svg(chart))
    elif kind == ".png":
        picture = vl_convert.vegalite_to_png(_specification(chart), vl_version=_vega_lite(), scale=scale)
        write_whole(path, picture)
    else:
        raise DataError(
            f"A chart is not written as {kind!r} ({os.fspath(path)!r}).", "End the name in .png or .svg."
        )


def _specification(chart: Chart) -> dict[str, Any]:
    # Altair checked the parts when they were made; checking the whole takes longer than drawing it.
    return dict(chart.to_dict(validate=False))


def _vega_lite() -> str:
    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


# ---------------------------------------------------------------------------------------------------------
# What charts have in common


def _labels(values: Iterable[Any]) -> list[str]:
    """Names as short text, no two alike."""
    return short_labels(values, LONGEST)


def title_of(measure: Measure) -> str:
    """What a measure is called, with its unit."""
    return clean(measure.title, 48) + (f" ({clean(measure.unit, 16)})" if measure.unit else "")


def _ray(frontier: Frontier, measure: str | None) -> tuple[float, str]:
    """Size of one tau on the axis, and the axis' title."""
    ray = frontier.ray
    if measure is None and not np.isfinite(ray).any():
        return 1.0, "allowed gaps, in proportion to what was asked"
    if measure is None and len(ray) > 1:
        return 1.0, "allowed gaps, all measures in proportion"
    j = 0 if measure is None else _place(measure, frontier.measures)
    if not 0 < ray[j] < math.inf:
        raise DataError(
            f"The gap of {frontier.measures[j].name!r} is not part of this frontier.", "Name another measure."
        )
    return float(ray[j]), f"allowed gap in {title_of(frontier.measures[j])}"


def _place(measure: str, measures: Sequence[Measure]) -> int:
    """Position of the one measure that is named."""
    places = positions(measure, measures)
    if len(places) != 1:
        raise DataError(
            f"There is no measure {measure!r}.",
            f"Name one of {', '.join(repr(one.name) for one in measures)}.",
        )
    return places[0]


def _good(loss: float, accuracy: bool) -> float:
    return 1.0 - loss if accuracy else loss


def values(rows: list[dict[str, Any]]) -> Chart:
    """A chart of these rows, yet to be drawn."""
    return alt.Chart(alt.InlineData(values=rows))


def themed(chart: Chart, theme: Theme) -> Chart:
    """The chart with the theme's fonts and colours, that notebooks show without a network."""
    found = chart.properties(config=theme.config(), padding=4)
    kind = _offline(type(found).__name__.removeprefix(OFFLINE))
    object.__setattr__(found, "__class__", kind)  # Altair's own takes any attribute for a part of the chart
    return found


#: What notebooks that can draw charts themselves call the version of Vega-Lite that they bring along.
BUNDLED = 5


class Offline:
    """A chart that a notebook shows without a network: interactive where the notebook can draw it, else a picture.

    Altair's own way loads a script from a server, and shows nothing without it. Whoever enables another of its
    renderers gets that one: ``altair.renderers.enable("html")``.
    """

    def _repr_mimebundle_(self, *args: object, **options: object) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **options)  # type: ignore[misc]  # that of the chart
        schema = f"https://vega.github.io/schema/vega-lite/v{BUNDLED}.json"
        return {
            f"application/vnd.vegalite.v{BUNDLED}+json": _specification(self) | {"$schema": schema},
            "image/svg+xml": svg(self),
        }


@cache
def _offline(name: str) -> type:
    """A kind of Altair's charts that is shown without a network."""
    return type(OFFLINE + name, (Offline, getattr(alt, name)), {"__module__": __name__})


#: How such a kind is called, before what Altair calls it.
OFFLINE = "Offline"


def __getattr__(name: str) -> Any:
    """Where pickle finds the kind of a chart that was stored."""
    if name.startswith(OFFLINE) and name.endswith("Chart"):
        return _offline(name.removeprefix(OFFLINE))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _across(field: str, title: str, **axis: Any) -> Any:
    """Numbers from left to right."""
    return alt.X(f"{field}:Q", title=title, axis=alt.Axis(grid=False, tickCount=6, **axis))


def _up(field: str, **axis: Any) -> Any:
    """Numbers upwards; what they are is said above the chart."""
    return alt.Y(f"{field}:Q", title=None, axis=alt.Axis(tickCount=5, domain=False, ticks=False, **axis))


def _coloured(field: str, names: list[str], theme: Theme, *, legend: Any) -> Any:
    """A colour for each name."""
    return alt.Color(f"{field}:N", legend=legend).scale(domain=names, range=theme.colours(len(names)))


def _rows(field: str, names: list[str]) -> Any:
    """One row of charts for every name, which stands to its left."""
    row = alt.Row(f"{field}:N", sort=names, title=None)
    return row.header(labelAngle=0, labelAlign="left", labelAnchor="middle", labelPadding=14)


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Distinct values in the order of their first appearance."""
    return list(dict.fromkeys(values))
