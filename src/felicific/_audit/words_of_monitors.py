"""What a monitor says in words: whether there is an alarm, how large gaps are, and what to beware of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from felicific._audit.result import Interval
from felicific._problem.happiness import Measure, written
from felicific._statistics.sequences import BLOCK
from felicific._statistics.stream import DIFFERENT, ENOUGH, SEEN, BurnIn

if TYPE_CHECKING:
    from felicific._audit.monitored import Alarm, Monitor

#: Fewer people of a group than this share of all are said to be few; told from so many people on.
FEW, TOLD = 0.005, 1_000

LABELS = (
    "What is monitored looks at the label: give rows when the time has passed in which the outcome of all who came "
    "then becomes known, not each when its own does. Bad outcomes are often known early, and would show a gap where "
    "there is none; nothing in the rows can tell that."
)


def sentences_of(monitor: Monitor) -> list[str]:
    """What it shows, the most important first."""
    parts = {part.name: part for part in monitor.measures}
    alarm = monitor.alarm
    if alarm is None:
        found = [f"No alarm: {monitor.rows:,} people of {len(range(len(monitor.groups)))} groups came."]
    else:
        found = _alarm_words(monitor, alarm, parts[alarm.measure])
    evidence = "beyond counting" if math.isinf(monitor.evidence) else written(monitor.evidence, 3)
    now = f"{'Now the' if alarm else 'The'} evidence that a gap is more than allowed is {evidence}"
    found.append(f"{now}; an alarm is raised at {written(monitor.needed, 3)}.")
    found += [_gap_words(monitor, parts[name], gap) for name, gap in monitor.gaps.items()]
    large = [part for part in monitor.measures if part.bounds is None]
    found.append(
        f"At confidence {monitor.confidence:.6g}{', in large samples,' if large else ','} each of these limits holds "
        "at all times together, and a system that always keeps to what is allowed ever raises an alarm with a "
        f"probability of at most {written(100 * (1 - monitor.confidence), 3)} %, however often one looks."
    )
    waiting = len(monitor.stream.open)
    if waiting:
        found.append(f"The last {waiting} of them wait until there are {BLOCK} to be compared.")
    return found


def _alarm_words(monitor: Monitor, alarm: Alarm, part: Measure) -> list[str]:
    """When it was raised, and what it is about."""
    allowed = part.quantity(monitor.allowed[part.name])
    pair = f"group {alarm.above!r} above group {alarm.below!r}"
    since = "from the beginning" if not alarm.since else f"since person {alarm.since + 1:,}"
    when = f"Alarm, raised when {alarm.rows:,} people had come"
    about = [part] if alarm.shown else monitor.measures
    large = " (in large samples)" if any(one.bounds is None for one in about) else ""
    if alarm.shown:
        more = f" At some time it was more than {part.short(alarm.at_least, -1)}."
        return [
            f"{when}: the gap of {part.name!r} is shown to be more than the allowed {allowed}{large}: {pair}.",
            f"Most of the evidence is of the time {since}.{more}",
        ]
    return [
        f"{when}: some gap is shown to be more than allowed{large}, by all comparisons together.",
        f"Most of the evidence is that of {part.name!r}, {pair}, {since}; that pair alone is not enough to name it.",
    ]


def _gap_words(monitor: Monitor, part: Measure, gap: Interval) -> str:
    """How large the gap of one measure is."""
    if math.isnan(gap.estimate):
        return f"{part.name!r}: nobody was compared yet."
    among = "" if math.isinf(gap.high) else f", on average over all of them at most {part.short(gap.high, 1)}"
    ever = f", at some time more than {part.short(gap.low, -1)}" if gap.low > 0 else ""
    return (
        f"{part.name!r}: the largest difference between groups is {part.short(gap.estimate)} among those who came "
        f"at about the same time{ever}{among} (allowed: {part.quantity(monitor.allowed[part.name])})."
    )


# ---------------------------------------------------------------------------------------------------------
# What to beware of


def notes_of(monitor: Monitor) -> list[tuple[str, str]]:
    """What to beware of, by its kind."""
    found = []
    for part, scale in zip(monitor.measures, monitor.stream.scales, strict=True):
        if part.bounds is None:
            found.append((f"bounds {part.name}", _unbounded(part)))
        if isinstance(scale, BurnIn):
            found.append((f"burning {part.name}", _burning(monitor, part, scale)))
    if any(part.looks_at_y for part in monitor.measures):
        found.append(("labels", LABELS))
    return found + _few(monitor)


def _unbounded(part: Measure) -> str:
    return (
        f"No bounds of {part.name!r} are known, so what is said of it holds in large samples alone: rare large values "
        "that nobody has seen yet could undo it. State its bounds if you know the range."
    )


def _burning(monitor: Monitor, part: Measure, seen: BurnIn) -> str:
    """Of whom more has to be seen before there can be an alarm."""
    names = [monitor.groups[z] for z in range(len(monitor.groups))]
    who = ", ".join(f"{names[z]!r} ({int(seen.powers[z, 0]):,} so far)" for z in seen.missing[:5])
    return (
        f"There can be no alarm for {part.name!r} yet: without bounds, {SEEN} people of every group have to be seen, "
        f"of whom {DIFFERENT} do not have its commonest value, or {ENOUGH:,} people. Missing: {who}."
    )


def _few(monitor: Monitor) -> list[tuple[str, str]]:
    """Groups of which hardly anybody comes."""
    rows = monitor.rows - len(monitor.stream.open)
    if rows < TOLD:
        return []
    counts = np.max([_counted(monitor, j) for j in range(len(monitor.measures))], axis=0)
    found = []
    for z, count in zip(range(len(monitor.groups)), counts.tolist(), strict=True):
        if count < FEW * rows:
            text = (
                f"Of group {monitor.groups[z]!r} there are {int(count):,} among {rows:,} people, fewer than 5 in "
                "1,000: a gap between it and others will be seen late, if at all."
            )
            found.append((f"few {monitor.groups[z]!r}", text))
    return found


def _counted(monitor: Monitor, j: int) -> list[float]:
    """How many people of every group that is compared were counted by a measure."""
    scale = monitor.stream.scales[j]
    numbers = scale.powers[:, 0] if isinstance(scale, BurnIn) else monitor.stream.before[j, 0]
    return [float(number) for number in numbers]
