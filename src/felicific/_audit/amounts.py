"""Amounts in an audit: when decisions are taken for them, and how far apart their distributions are."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from felicific._audit.measured import Measured
from felicific._audit.result import Audit, GapTest, Interval, MeasureAudit, verdict_of
from felicific._people.roles import Roles
from felicific._problem.happiness import written
from felicific._problem.numeric import NumericProblem, asks_for_parity, is_loss_of_amounts, parity_measure
from felicific._problem.unions import compared_groups
from felicific._statistics.distributions import Distributions
from felicific._tables.engine import NUMERIC, BatchPlace, Engine
from felicific._tables.memory import null_rows, take_column
from felicific._typing import Array, Codes, Table
from felicific.exceptions import DataError

#: More different numbers than this are not classes.
MOST_CLASSES = 20

#: How intervals of distances between distributions are made.
METHOD = "Dvoretzky-Kiefer-Wolfowitz (distribution-free)"

#: What is said after it where people do not count alike.
EFFECTIVE = ", at the effective number of people"


def range_of_amounts(decisions: Any) -> tuple[float, float] | None:
    """Between which numbers all amounts lie, where a tuple of two numbers says so; None where decisions are listed."""
    if not (isinstance(decisions, tuple) and len(decisions) == 2):
        return None
    low, high = decisions
    if not all(isinstance(one, Real) and not isinstance(one, bool | np.bool_) for one in decisions):
        return None
    if not (low < high and math.isfinite(low) == math.isfinite(high)):
        raise DataError(
            f"decisions is {decisions!r}, which is not a range of amounts.",
            "Say decisions=(low, high), two finite numbers, the lower one first; (-math.inf, math.inf) for any amount; "
            "or list decisions: [deny, approve].",
        )
    return float(low), float(high)


def reason_for_amounts(happiness: Any, loss: Any) -> str:
    """Why numbers are taken for amounts, by what is asked of them; empty where nothing says it."""
    if asks_for_parity(happiness):
        return "distributional parity is asked of them"
    return f"the loss {loss!r} is asked of them" if is_loss_of_amounts(loss) else ""


def reason_in_numbers(values: Array, y: Array | None) -> str:
    """Why decisions are taken for amounts, by themselves; empty where they may be classes.

    Fractions between 0 and 1 beside labels of two classes are taken for neither: they look like what a model believes.
    """
    held = np.delete(values, null_rows(values))
    if held.dtype.kind == "O" and all(isinstance(value, int | float) for value in held.tolist()):
        held = np.array(held.tolist())
    if held.dtype.kind not in "iuf":
        return ""
    finite = held[np.isfinite(held)] if held.dtype.kind == "f" else held
    fractions = bool((finite != np.rint(finite)).any())
    two = y is not None and (y.dtype.kind in "bOU" or len(np.unique(y)) <= 2)
    if fractions and two and finite.min() >= 0.0 and finite.max() <= 1.0:
        raise DataError(
            "The decisions are fractions, as what a model believes is, and the labels are classes.",
            "Pass what is decided; probabilities of decisions have one column per class; of amounts, say "
            "decisions=(low, high).",
        )
    return _reason(fractions, len(np.unique(finite[:1_000_000])))


def _reason(fractions: bool, distinct: int) -> str:
    if fractions:
        return "some are no whole numbers"
    return f"there are more than {MOST_CLASSES} different ones" if distinct > MOST_CLASSES else ""


def are_numbers(values: Array) -> bool:
    """Whether decisions are numbers, so that they can be amounts."""
    if values.ndim != 1 or values.dtype.kind != "O":
        return values.ndim == 1 and values.dtype.kind in "iuf"
    held = np.delete(values, null_rows(values)).tolist()
    return bool(held) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in held
    )


def reason_on_engine(engine: Engine, columns: Roles) -> tuple[str, int]:
    """The same of a column of numbers that is not in memory, which is looked through once, and how many there are."""
    name, weight = str(columns.decided), columns.weight
    names = [name] if weight is None else [name, weight]
    seen = engine.fold(partial(_seen_in, name, weight), _seen_in_both, names)
    return ("", 0) if seen is None else (_reason(seen[0], len(seen[1])), len(seen[1]))


#: Whether there are fractions, and the first different numbers.
_Seen: TypeAlias = tuple[bool, frozenset[float]]


def _seen_in(name: str, weight: str | None, table: Table, place: BatchPlace) -> _Seen:
    values = take_column(table, name, "the decisions")
    if weight is not None:
        values = values[np.asarray(take_column(table, weight, "sample_weight") != 0, dtype=bool)]
    held = np.delete(values, null_rows(values))
    numbers = np.array(held.tolist(), dtype=np.float64) if held.dtype.kind == "O" else held
    finite = numbers[np.isfinite(numbers)]
    few = np.unique(finite)[: MOST_CLASSES + 1].tolist()
    return bool((finite != np.rint(finite)).any()), frozenset(few)


def _seen_in_both(one: _Seen, other: _Seen) -> _Seen:
    return one[0] or other[0], frozenset(sorted(one[1] | other[1])[: MOST_CLASSES + 1])


def note_of(reason: str) -> str:
    """What is said where nobody said that decisions are amounts."""
    return f"The decisions are numbers, and {reason}: they are audited as amounts. Else list them: decisions=[...]."


def note_of_classes(distinct: int) -> tuple[str, ...]:
    """The same of few whole numbers, which may be amounts; of two nobody doubts what they are."""
    if distinct <= 2:
        return ()
    counted = f"The decisions are {distinct} different whole numbers: they are audited as decisions, the largest best."
    return (f"{counted} Of amounts, say decisions=(low, high).",)


# ---------------------------------------------------------------------------------------------------------
# Distributional parity


def with_parity(found: Audit, problem: NumericProblem) -> Audit:
    """The audit with how far apart the distributions of the amounts are, after its measures, if that is asked."""
    if not problem.parity:
        return found
    distributions = found.persons.distributions
    assert distributions is not None, "amounts were audited"
    together = 1.0 - found.confidence
    part = parity_audit(found.persons, distributions, problem.parity, problem.parity_gap, together)
    notes = []
    if (
        part.test is not None
        and part.test.at_most == 0.0
        and not any(_exactly_none(one) for one in found.measures)
    ):
        notes.append("A gap of exactly 0 can be refuted and never shown.")
    return replace(found, measures=(*found.measures, part), notes=(*found.notes, *notes))


def _exactly_none(part: MeasureAudit) -> bool:
    return part.test is not None and part.test.at_most == 0.0


def parity_audit(
    persons: Measured, distributions: Distributions, name: str, allowed: float, alpha: float
) -> MeasureAudit:
    """Shares of the groups above the amount where they are furthest apart, and how far that is.

    The intervals of the shares hold for every amount at once, so at the one that the data chose too.
    """
    known = compared_groups(persons.left_out, name, persons.groups)
    measure, compared = parity_measure(name), distributions.only(known)
    at = compared.furthest
    method = METHOD if persons.countable else METHOD + EFFECTIVE
    shares = _shares(persons, distributions, at.at, alpha, known, method)
    if len(known) < 2:
        gap = Interval(math.nan, 0.0, 1.0, float(compared.n.min()), "none", "one group only")
        test = GapTest(allowed, 1.0, 1.0, "undecided") if math.isfinite(allowed) else None
        return MeasureAudit(measure, shares, gap, math.nan, test)
    low, high = compared.interval(alpha)
    gap = Interval(at.distance, low, high, float(compared.n.min()), method)
    test = None
    if math.isfinite(allowed):
        p = compared.p_values(allowed)
        test = GapTest(allowed, *p, verdict_of(*p, alpha))
    more, less = (persons.groups[known[z]] for z in (at.more, at.less))
    return MeasureAudit(
        measure,
        shares,
        gap,
        compared.expected,
        test,
        remark=f"Shares of people who get more than {written(at.at, 6)}, where the distributions are furthest apart: "
        f"more of {more!r}, fewer of {less!r}.",
        at=at.at,
    )


def _shares(
    persons: Measured, distributions: Distributions, at: float, alpha: float, known: Codes, method: str
) -> dict[Any, Interval]:
    """Every group's share above an amount."""
    t = int(np.searchsorted(distributions.amounts, at))
    margins = np.ones(len(persons.groups))
    margins[known] = distributions.only(known).margins(alpha)
    strange = np.setdiff1d(np.arange(len(persons.groups)), known)
    for z in strange.tolist():
        margins[z] = distributions.only(np.array([z])).margins(alpha)[0]
    found = {}
    for z, group in enumerate(persons.groups):
        share, margin = float(distributions.above[z, t]), float(margins[z])
        note = "not compared" if z in strange else ""
        low, high = max(share - margin, 0.0), min(share + margin, 1.0)
        found[group] = Interval(share, low, high, float(distributions.n[z]), method, note)
    return found


def change_of_parity(before: Audit, after: Audit, alpha: float) -> Interval:
    """The distance afterwards minus that before: what the limits of both leave, each with half of the error."""
    limits, distances, n = [], [], math.inf
    for one in (before, after):
        distributions = one.persons.distributions
        assert distributions is not None, "amounts were audited"
        name = one.measures[-1].measure.name
        compared = distributions.only(compared_groups(one.persons.left_out, name, one.groups))
        limits.append(compared.interval(alpha / 2.0) if len(compared.n) > 1 else (0.0, 1.0))
        distances.append(compared.furthest.distance)
        n = min(n, float(compared.n.min()))
    (least, most), (lower, upper) = limits
    method = METHOD if after.persons.countable else METHOD + EFFECTIVE
    return Interval(distances[1] - distances[0], lower - most, upper - least, n, f"{method}, of both")


def numeric_kind(engine: Engine, columns: Roles) -> None:
    """Refuse a column of decisions that holds no numbers."""
    name = str(columns.decided)
    kind = engine.kind(name, "the decisions")
    if kind not in NUMERIC or kind == "bool":
        holds = "text" if kind == "text" else "truth values" if kind == "bool" else "no numbers"
        raise DataError(f"The column {name!r} of the decisions holds {holds}.", "Amounts are finite numbers.")
