"""The report's own chart: the choice to be made, with a marker that the page moves."""

from __future__ import annotations

from typing import Any

from felicific.plots import Chart, Theme, themed, values

#: Colours as the page names them, so that one picture serves light and dark.
PAGE = Theme(
    ink="var(--ink)",
    muted="var(--muted)",
    faint="var(--faint)",
    accent="var(--accent)",
    paper="transparent",
    halo="var(--paper)",
    groups=tuple(f"var(--group-{i})" for i in range(7)),
)


def choice(
    content: dict[str, Any], *, theme: Theme, start: int = 0, width: int = 720, height: int = 200
) -> tuple[Chart, list[list[float]]]:
    """The choice to be made: for every allowed gap what is got right or lost, and the gap on other people.

    Two charts on one axis: the gap allowed on the people the policies were fitted on.

    Parameters
    ----------
    content : dict
        ``rows`` with ``allowed``, ``good``, ``gap`` and, where they are known, ``good_low``, ``good_high``,
        ``gap_low``, ``gap_high``, and as ``good_fitted`` and ``gap_fitted`` what they are on the people the
        policies were fitted on; ``today`` with ``allowed``, ``good``, ``gap``; ``titles`` of the three axes;
        ``percent``: which of the three are shares.

    Returns
    -------
    chart : Altair chart
    places : list of [x, y above, y below]
        Where each row lies, in pixels of the two charts; views named ``above`` and ``below`` mark ``start``.
    """
    import altair as alt

    rows, today = content["rows"], content["today"]
    # Between two that do not mix, the tighter one is the best that is known.
    between = {} if content["mixes"] else {"interpolate": "step-after"}
    reach = max([today["allowed"], *(row["allowed"] for row in rows)]) or 1.0
    sides = [-0.015 * reach, 1.03 * reach]
    across = [width * (row["allowed"] - sides[0]) / (sides[1] - sides[0]) for row in rows]
    bases, place = (values(rows), values([{**today, "text": "today"}])), values([rows[start]])
    panels, heights = [], []
    for which, name in (("good", "above"), ("gap", "below")):
        ends = _domain([*rows, today], which, zero=which == "gap")
        x = alt.X("allowed:Q", scale=alt.Scale(domain=sides, nice=False)).axis(None)
        if which == "gap":
            form = "%" if "allowed" in content["percent"] else alt.Undefined
            x = x.title(content["titles"]["allowed"]).axis(grid=False, tickCount=6, format=form)
        y = alt.Y(f"{which}:Q", title=None, scale=alt.Scale(domain=ends, nice=False))
        form = "%" if which in content["percent"] else alt.Undefined
        y = y.axis(tickCount=4, domain=False, ticks=False, format=form)
        layers = _panel(bases, rows, today, which, x, y, theme, between)
        marker = place.mark_point(filled=True, color=theme.accent, size=150, opacity=1)
        layers.append(marker.encode(x=x, y=y).properties(name=name))
        title = content["titles"][which]
        panels.append(alt.layer(*layers).properties(width=width, height=height, title=title))
        heights.append([height * (ends[1] - row[which]) / (ends[1] - ends[0]) for row in rows])
    places = [[round(number, 2) for number in place] for place in zip(across, *heights, strict=True)]
    return themed(alt.vconcat(*panels, spacing=18), theme), places


def _panel(
    bases: tuple[Chart, Chart],
    rows: list[dict[str, Any]],
    today: dict[str, Any],
    which: str,
    x: Any,
    y: Any,
    theme: Theme,
    between: dict[str, str],
) -> list[Chart]:
    """Band, line as fitted, line on these people, and today; ``bases`` are charts of the rows and of today."""
    import altair as alt

    (base, now), layers = bases, []
    if f"{which}_high" in rows[0]:
        band = base.mark_area(color=theme.accent, opacity=0.13)
        low, high = y.copy(), f"{which}_high:Q"
        low.shorthand = f"{which}_low:Q"
        layers.append(band.encode(x=x, y=low, y2=high))
    fitted = y.copy()
    fitted.shorthand = f"{which}_fitted:Q"
    layers.append(base.mark_line(color=theme.muted, strokeDash=[2, 4], **between).encode(x=x, y=fitted))
    line = base.mark_line(color=theme.accent, strokeWidth=2.5, strokeJoin="round", **between)
    point = now.mark_point(shape="diamond", filled=True, color=theme.ink, size=120, opacity=1)
    text = now.encode(x=x, y=y, text=alt.Text("text:N"))
    left = today["allowed"] > 0.8 * max(row["allowed"] for row in rows)
    style: Any = {"align": "right" if left else "left", "dx": -10 if left else 10, "fontWeight": "bold"}
    # The word stands on the side of the point where the line is not.
    near = min(rows, key=lambda row: abs(row["allowed"] - today["allowed"]))
    style["dy"] = 14 if today[which] < near[which] else -11
    halo = text.mark_text(stroke=theme.halo, strokeWidth=4, **style)
    word = text.mark_text(**style)
    return [*layers, line.encode(x=x, y=y), point.encode(x=x, y=y), halo, word]


def _domain(rows: list[dict[str, Any]], which: str, *, zero: bool) -> list[float]:
    """Least and largest value to be shown, with some room."""
    found = [
        row[f"{which}{end}"]
        for row in rows
        for end in ("", "_low", "_high", "_fitted")
        if f"{which}{end}" in row
    ]
    low, high = min(found), max(found)
    room = 0.06 * (high - low) or 0.01 * abs(high) or 1.0
    return [0.0 if zero else low - room, high + room]
