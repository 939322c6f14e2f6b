"""The file of a monitor: settings, sums, and the rows of a block that is not full; read back with suspicion."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from felicific._audit.monitor import monitored_of
from felicific._audit.monitored import DIGEST, REMEMBERED, Alarm, Monitor, own_happiness
from felicific._files import (
    MONITOR,
    check_distinct,
    check_shape,
    plain,
    read_classes,
    read_decisions,
    read_document,
    read_number,
    read_numbers,
    read_values,
    read_whole,
    refused,
    write_classes,
    write_decisions,
    write_document,
)
from felicific._people.roles import Roles
from felicific._problem.happiness import (
    HappinessLike,
    function_from_json,
    function_to_json,
    read_measure,
    resolve_happiness,
)
from felicific._problem.problem import Problem
from felicific._problem.unions import read_attributes
from felicific._statistics.intervals import check_confidence
from felicific._statistics.sequences import BETS, BLOCK, BLOCKS, Buckets, Terms
from felicific._statistics.stream import BurnIn, Rows, Scale, Stream
from felicific._typing import Array, Floats
from felicific.exceptions import DataError, FelicificError, PolicyFileError


def written(monitor: Monitor) -> str:
    """All of it as text."""
    problem, alarm = monitor.problem, monitor.alarm
    own = own_happiness(problem)
    return write_document(
        {
            "classes": write_classes(problem.decisions),
            **write_decisions(problem.decisions, problem.order, None),
            "groups": plain(list(monitor.groups), "group"),
            "measures": [asdict(part.measure) for part in own],
            "functions": [function_to_json(part) for part in own],
            "allowed": [[name, gap] for name, gap in (problem.gaps or {}).items() if name in problem.closed],
            "roles": monitor.columns.remembered().to_json(),
            "attributes": list(monitor.attributes),
            "listed": monitor.listed,
            "confidence": monitor.confidence,
            "stream": _write_stream(monitor.stream),
            "digests": list(monitor.digests),
            "alarm": None if alarm is None else _write_alarm(alarm),
        },
        MONITOR,
        indent=None,
    )


def _write_alarm(alarm: Alarm) -> dict[str, Any]:
    """An alarm as data; evidence beyond counting is None."""
    above, below = plain([alarm.above, alarm.below], "group")
    evidence = None if math.isinf(alarm.evidence) else alarm.evidence
    return asdict(alarm) | {"above": above, "below": below, "evidence": evidence}


def _write_stream(stream: Stream) -> dict[str, Any]:
    buckets, rows = stream.buckets, stream.open
    return {
        "scales": [_write_scale(scale) for scale in stream.scales],
        "before": stream.before.tolist(),
        "sizes": buckets.sizes.tolist(),
        "rows": buckets.rows.tolist(),
        "buckets": [part.tolist() for part in buckets.terms],
        "period": [part.tolist() for part in stream.period],
        "blocks": stream.blocks,
        "held": stream.held,
        "open": [rows.codes.tolist(), rows.values.tolist(), rows.inside.astype(int).tolist()],
        "people": stream.rows,
    }


def _write_scale(scale: Scale | BurnIn) -> dict[str, Any]:
    if isinstance(scale, Scale):
        return asdict(scale) | {"bets": scale.bets.tolist()}
    return {
        "first": None if math.isnan(scale.origin) else scale.origin,
        "powers": scale.powers.tolist(),
        "common": [[[value, count] for value, count in held.items()] for held in scale.common],
    }


# ---------------------------------------------------------------------------------------------------------
# Reading


def read(text: str, happiness: HappinessLike | None) -> Monitor:
    """Read what :func:`written` wrote, refusing whatever is not exactly that."""
    try:
        return _read(read_document(text, MONITOR), happiness)
    except PolicyFileError as error:
        problem = error.problem.replace("This is no policy file", "This is no file of a monitor")
        raise PolicyFileError(problem.replace("policy file", "file of a monitor"), error.remedy) from error
    except FelicificError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise PolicyFileError(
            f"This is no file of a monitor: a part is missing or of another type ({error!r}).",
            "Get the file again from where it was saved.",
        ) from error


def _read(content: dict[str, Any], happiness: HappinessLike | None) -> Monitor:
    classes, groups = read_classes(content["classes"]), tuple(read_values(content["groups"], "group"))
    check_distinct(classes=classes.tolist(), groups=groups)
    problem = _read_problem(content, classes, happiness)
    if type(content["listed"]) is not bool:
        raise refused("it does not say whether its groups were listed")
    monitored = monitored_of(problem)
    digests = content["digests"]
    if not isinstance(digests, list) or len(digests) > REMEMBERED or not all(map(_is_digest, digests)):
        raise refused("its list of rows that were counted is none")
    return Monitor(
        problem,
        monitored,
        groups,
        Roles.from_json(content["roles"]),
        read_attributes(content["attributes"]),
        content["listed"],
        _read_confidence(content["confidence"]),
        _read_stream(content["stream"], problem, monitored, len(groups)),
        tuple(digests),
        _read_alarm(content["alarm"], groups, [problem.measures[j].name for j in monitored]),
    )


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _read_confidence(value: object) -> float:
    try:
        return check_confidence(read_number(value, "confidence"))
    except DataError as error:
        raise refused(error.problem.rstrip(".")) from error


def _read_problem(content: dict[str, Any], classes: Array, happiness: HappinessLike | None) -> Problem:
    """What is asked, with functions out of the file or as they are given."""
    given = {}
    if happiness is not None:
        given = {str(part.name): part for part in resolve_happiness(happiness, classes.tolist())}
    parts = [read_measure(part) for part in content["measures"]]
    own = [
        function_from_json(part, stored, given)
        for part, stored in zip(parts, content["functions"], strict=True)
    ]
    for part, one in zip(parts, own, strict=True):
        said = given.get(part.name, one)
        if one.measure != part or function_to_json(said) != function_to_json(one):
            raise PolicyFileError(
                f"The happiness {part.name!r} that is given is not the one that is monitored.",
                "Pass the happiness, with its unit and bounds, with which the monitor began.",
            )
    gaps = {str(name): read_number(gap, "an allowed gap") for name, gap in content["allowed"]}
    order = read_decisions(content, classes).get("order", ())
    return Problem.of(classes, own, gap=gaps, order=order)


def _read_stream(
    content: dict[str, Any], problem: Problem, monitored: tuple[int, ...], groups: int
) -> Stream:
    j, p = len(monitored), groups * (groups - 1) // 2
    scales = [
        _read_scale(one, problem.measures[place].bounds, groups)
        for one, place in zip(content["scales"], monitored, strict=True)
    ]
    sizes, rows = (read_whole(content[name], name, 1) for name in ("sizes", "rows"))
    b = len(sizes)
    buckets = Buckets(sizes.astype(np.intp), rows.astype(np.intp), _read_terms(content["buckets"], (b, j, p)))
    if len(rows) != b:
        raise refused("its buckets have no rows")
    blocks, held, people = (int(read_whole(content[name], name)) for name in ("blocks", "held", "people"))
    waiting = _read_rows(content["open"], j, groups)
    if blocks >= BLOCKS or people != int(rows.sum()) + held + len(waiting):
        raise refused("its rows do not add up")
    return Stream(
        groups,
        tuple(scales),
        check_shape("before", read_numbers(content["before"], "before"), (j, 2, groups)),
        buckets,
        _read_terms(content["period"], (j, p)),
        blocks,
        held,
        waiting,
        people,
    )


def _read_terms(content: Any, shape: tuple[int, ...]) -> Terms:
    c, x, log = content
    if shape[0] == 0:
        return Terms.none(shape)
    found = Terms(*(read_numbers(part, name) for part, name in ((c, "c"), (x, "x"), (log, "log"))))
    check_shape("c", found.c, shape)
    check_shape("x", found.x, shape)
    check_shape("log", found.log, (*shape, 2, BETS))
    if (found.c < 0).any():
        raise refused("a weight is negative")
    return found


def _read_rows(content: Any, measures: int, groups: int) -> Rows:
    if content[0] == []:
        return Rows.none(measures)
    codes = read_whole(content[0], "open", -1).astype(np.intp)
    if len(codes) >= BLOCK or codes.max() >= groups:
        raise refused("its last rows are no part of a block")
    values: Floats = check_shape("open", read_numbers(content[1], "open"), (len(codes), measures))
    inside = check_shape("open", read_numbers(content[2], "open"), (len(codes), measures))
    return Rows(codes, values, inside == 1.0)


def _read_scale(content: dict[str, Any], bounds: tuple[float, float] | None, groups: int) -> Scale | BurnIn:
    if "powers" in content:
        first = content["first"]
        common = tuple(
            {read_number(value, "a value"): int(read_whole(count, "a count", 1)) for value, count in held}
            for held in content["common"]
        )
        powers = check_shape("powers", read_numbers(content["powers"], "powers"), (groups, 4))
        if bounds is not None or len(common) != groups:
            raise refused("a measure with bounds needs nothing to be seen before")
        return BurnIn(math.nan if first is None else read_number(first, "first"), powers, common)
    bets = check_shape("bets", read_numbers(content["bets"], "bets"), (BETS,))
    origin, width = (read_number(content[name], name) for name in ("origin", "width"))
    if not width > 0 or (bets <= 0).any() or type(content["bounded"]) is not bool:
        raise refused("a scale is none")
    scale = Scale(origin, width, bets, content["bounded"])
    known = None if bounds is None else Scale.between(*bounds)
    if (known is not None) != scale.bounded or (
        known is not None and (known.origin, known.width) != (origin, width)
    ):
        raise refused("a scale is not that of the bounds")
    return scale


def _read_alarm(content: Any, groups: tuple[Any, ...], measures: list[str]) -> Alarm | None:
    if content is None:
        return None
    alarm = Alarm(**content)
    known = alarm.above in groups and alarm.below in groups and alarm.measure in measures
    if not known or type(alarm.shown) is not bool:
        raise refused("its alarm is about somebody else")
    numbers = {name: read_number(getattr(alarm, name), name) for name in ("since", "rows", "at_least")}
    evidence = math.inf if alarm.evidence is None else read_number(alarm.evidence, "evidence")
    return Alarm(
        alarm.measure,
        alarm.above,
        alarm.below,
        alarm.shown,
        int(numbers["since"]),
        int(numbers["rows"]),
        numbers["at_least"],
        evidence,
    )
