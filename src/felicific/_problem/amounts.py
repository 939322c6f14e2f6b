"""Amounts: what is asked where the decision is any number, such as hours of care, a limit or a rate.

There is no list of decisions then: everybody has an amount of their own, and what is measured is a function of it.
Criteria count decisions, so none of them can be asked for but distributional parity, which compares the distributions
of the amounts as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._problem.constraints import check_gaps, check_one_unit, requirements_of
from felicific._problem.criteria import CRITERIA
from felicific._problem.expressions import Expression
from felicific._problem.happiness import SHARE, Happiness, Measure, with_counted
from felicific._problem.loss import Loss
from felicific._problem.problem import Problem
from felicific.exceptions import DataError, HappinessError

#: The criterion that compares the distributions of amounts.
PARITY = "distributional_parity"

#: What the mean amount is called that is shown beside it.
MEAN_AMOUNT = "mean amount"

#: Losses of amounts that have a name, as expressions; a quantile is told by its number.
_LOSSES = {"squared": "(decision - y)**2", "absolute": "abs(decision - y)", "changes": "decision != baseline"}
_QUANTILE = "quantile:"


@dataclass(frozen=True, eq=False)
class AmountsProblem(Problem):
    """What is asked of amounts: a problem without a list of decisions or of labels.

    Attributes
    ----------
    parity : str
        What distributional parity is called, where it is asked for; else nothing.
    parity_gap : float
        The distance that is allowed between the distributions; infinite where none was said.
    amount_bounds : (low, high), or None
        Between which all amounts lie, where it was said.
    """

    parity: str = ""
    parity_gap: float = math.inf
    amount_bounds: tuple[float, float] | None = None

    @classmethod
    def build(
        cls,
        happiness: Any,
        *,
        loss: Any = None,
        gap: Any = None,
        extra: Sequence[Happiness] = (),
        bounds: tuple[float, float] | None = None,
    ) -> AmountsProblem:
        """Read what the user wrote.

        Parameters
        ----------
        happiness, gap :
            As for an audit; criteria but distributional parity are refused.
        loss : optional
            See :func:`amount_loss`; by default squared, which is measured where there are labels.
        extra : sequence of Happiness
            What is measured and not asked for.
        bounds : (low, high), optional
            Between which all amounts are known to lie; so does the mean amount.
        """
        parts, parity = amount_parts(happiness)
        # Beside a distance between distributions, a reader wants to know who gets more.
        added = () if parts or extra else (Happiness("decision", name=MEAN_AMOUNT),)
        own = tuple(_within(part, bounds) for part in parts)
        every = with_counted((*own, *(_within(part, bounds) for part in (*extra, *added))))
        names = tuple(str(part.name) for part in own)
        none = np.empty(0, dtype=object)
        made = cls(none, none, every, amount_loss(loss), closed=names)
        measures = made.measures[: len(own)] + ((parity_measure(parity),) if parity else ())
        allowed = gap
        if gap is not None and not isinstance(gap, Mapping):
            check_one_unit(gap, "gap", measures)
            allowed = {measure.name: gap for measure in measures}
        check_gaps(allowed, (), measures)
        gaps = {name: width for name, width in (allowed or {}).items() if name != parity}
        width = (allowed or {}).get(parity, math.inf) if parity else math.inf
        needs = requirements_of(gaps or None, (), made.measures)
        return replace(made, requirements=needs, parity=parity, parity_gap=float(width), amount_bounds=bounds)


def parity_measure(name: str = PARITY) -> Measure:
    """Distributional parity as an entry of an audit: means are shares above one amount, the gap is the distance."""
    return Measure(name, "share", name, looks_at_y=False, bounds=SHARE)


def amount_loss(loss: Any = None) -> Loss:
    r"""What an amount costs: "squared" (by default), "absolute", "quantile:0.9", "changes", or what the user wrote.

    That of a quantile q, :math:`\max(q (y - a), (1 - q)(a - y))`, is least in expectation where a share q of the
    labels is below the amount.
    """
    loss = "squared" if loss is None else loss
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _LOSSES:
        return Loss(loss, loss, function=Expression(_LOSSES[loss]))
    if isinstance(loss, str) and loss.partition(":")[0] == "quantile":
        q = _quantile(loss)
        text = f"max({q!r} * (y - decision), {1.0 - q!r} * (decision - y))"
        return Loss(loss, loss, function=Expression(text))
    if (isinstance(loss, str) and loss == "error") or not (
        isinstance(loss, str | Expression) or callable(loss)
    ):
        raise DataError(
            f"The loss {loss!r} compares classes, and the decisions are amounts.",
            "Use 'squared', 'absolute', 'quantile:0.9', or a function or an expression of decision and y.",
        )
    # Names, expressions and functions are read as they are for classes.
    return Loss.of(loss, np.empty(0, dtype=object))


def _quantile(loss: str) -> float:
    try:
        q = float(loss.removeprefix(_QUANTILE))
    except ValueError:
        q = math.nan
    if not 0.0 < q < 1.0:
        raise DataError(
            f"The loss {loss!r} is of no quantile.", "Give a number between 0 and 1: 'quantile:0.9'."
        )
    return q


def is_loss_of_amounts(loss: Any) -> bool:
    """Whether a loss is one that only numbers can have, by its name."""
    return isinstance(loss, str) and (loss in ("squared", "absolute") or loss.startswith(_QUANTILE))


def asks_for_parity(happiness: Any) -> bool:
    """Whether distributional parity is among what is asked for."""
    return any(isinstance(item, str) and item == PARITY for _, item in _listed(happiness))


def _listed(happiness: Any) -> list[tuple[str | None, Any]]:
    """Every item, with its name where it has one."""
    if isinstance(happiness, Mapping):
        return [(str(name), item) for name, item in happiness.items()]
    return [(None, item) for item in (happiness if isinstance(happiness, list | tuple) else [happiness])]


def amount_parts(happiness: Any) -> tuple[tuple[Happiness, ...], str]:
    """The measures that are means, and what distributional parity is called, if it is asked for."""
    if happiness is None:
        raise HappinessError(
            "No happiness was given.",
            "Pass happiness=: 'decision' for the mean amount, 'distributional_parity' for the whole distribution, or "
            "a function such as `lambda decision, x: decision * x['months']`.",
        )
    parts: list[Happiness] = []
    names: list[str] = []
    for name, item in _listed(happiness):
        if isinstance(item, str) and item == PARITY:
            names.append(name or PARITY)
        elif isinstance(item, str) and item in CRITERIA:
            raise HappinessError(
                f"The criterion {item!r} counts decisions that are classes, and the decisions are amounts.",
                f"Ask for {PARITY!r}, or for a share: 'decision >= 40', say.",
            )
        elif isinstance(item, Happiness):
            parts.append(item if name is None else replace(item, name=name, family=name))
        else:
            parts.append(Happiness(item, name=name))
    called = [*(str(part.name) for part in parts), *names]
    repeated = next((name for name in called if called.count(name) > 1), None)
    if not called or repeated is not None:
        raise HappinessError(
            "The list of happiness measures is empty."
            if repeated is None
            else f"Two happiness measures are both called {repeated!r}.",
            "Pass at least one function." if repeated is None else "Name them: {'name': function, ...}.",
        )
    return tuple(parts), names[0] if names else ""


def _within(part: Happiness, bounds: tuple[float, float] | None) -> Happiness:
    """The amount itself lies where all amounts do."""
    applies = bounds is not None and part.bounds is None
    return replace(part, bounds=bounds) if applies and is_plain_amount(part) else part


def is_plain_amount(part: Happiness) -> bool:
    """Whether a happiness is the amount itself."""
    return isinstance(part.function, Expression) and part.function.text.strip() == "decision"
