r"""Worth: what every decision is worth to every person. The one loop that everything else is made of.

For every person i of a batch, every decision d and every measure j

.. math:: c(d; i), \qquad \eta_j(d; i), \qquad a_j(i) \in \{0, 1\}

the loss, the happiness and who is counted, each one finite number, within the bounds that were stated, and not so large
that sums of it overflow. Aggregates, individual policies and audits all ask here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.user_functions import Batch, evaluate, evaluate_amounts, members, no_baseline
from felicific._problem.happiness import Happiness, Loses
from felicific._problem.loss import Loss
from felicific._problem.problem import Problem
from felicific._typing import Floats, Truths
from felicific.exceptions import DataError, FelicificError, HappinessError

#: Rows per batch: the happiness of a batch stays in the processor's cache (five times faster than all at once).
BATCH = 16_384

#: Rows that a typical value of each measure is taken from.
TYPICAL = 1024

#: Sums from here on could overflow when they are added up over cells and groups.
LARGEST = 1e300

#: Values may leave their bounds by this much of the range, for rounding.
SLACK = 1e-9


@dataclass(frozen=True)
class Worth:
    """What every decision is worth to the people of a batch."""

    problem: Problem
    batch: Batch

    @cached_property
    def knows_cost(self) -> bool:
        """Whether the loss can be known: it does not look at labels, or there are some."""
        return self.batch.y is not None or not self.problem.loss.looks_at_y

    @cached_property
    def cost(self) -> Floats:
        """Loss of every decision, of shape (D, n); of amounts that of everybody's own, of shape (1, n)."""
        loss, batch = self.problem.loss, self.batch
        if batch.amounts is not None:
            return loss_of_amounts(loss, batch, batch.amounts)[None]
        if loss.matrix is not None:
            assert batch.labels is not None, "a cost matrix looks at labels"
            return np.ascontiguousarray(loss.matrix[batch.labels].T)
        assert loss.function is not None, "a loss is a matrix or a function"
        decisions = self.problem.decisions.tolist()
        cost = np.stack([evaluate(loss.function, "The loss", batch, decision) for decision in decisions])
        return _not_too_large(cost)

    def counted(self, happiness: Happiness, decision: Any = None) -> Truths | None:
        """Who is counted by a measure, by a fraction if this is decided; None for everybody."""
        if happiness.among is None:
            return None
        what = f"`among` of the happiness {happiness.name!r}"
        return members(evaluate(happiness.among, what, self.batch, decision, sees_missing=True), what)

    def values(self, j: int) -> tuple[Floats, Truths | None]:
        """Happiness of every decision, of shape (D, n), and who is counted; 0 for those who are not.

        Of amounts it is that of everybody's own, of shape (1, n).

        Of a fraction it is what each decision adds to the numerator, and everybody is counted.
        """
        return self._valued(self.problem.happiness[j])

    def _valued(self, happiness: Happiness) -> tuple[Floats, Truths | None]:
        if self.batch.amounts is not None:
            values, counted = worth_of_amounts(happiness, self.batch, self.batch.amounts)
            return values[None], counted
        if isinstance(happiness.function, Loses):
            return self._lost(happiness.function), None
        if happiness not in self.problem.compared:
            return self._evaluated(happiness)
        name, kept = str(happiness.name), self._kept
        if name not in kept:
            kept[name] = self._evaluated(happiness)
        values, counted = kept[name]
        return values.copy(), counted

    def _lost(self, function: Loses) -> Floats:
        """Who gets less by each decision than from the baseline's."""
        if self.batch.baseline is None:
            raise no_baseline("Who loses")
        parts = [self._valued(part) for part in function.parts]
        now = [self.batch.baseline == decision for decision in self.problem.decisions.tolist()]
        return np.stack(function.lost([part[0] for part in parts], [part[1] for part in parts], now))

    def moves(self, j: int, values: Floats) -> bool:
        """Whether some decision is worth something else to somebody, by the values of a measure.

        Of amounts, whether another person's, or one that nobody gets, would be.
        """
        if self.batch.amounts is None:
            return differs(values)
        happiness = self.problem.happiness[j]
        if "decision" not in happiness.asks:
            return False
        some = self.batch.take(slice(0, TYPICAL))
        assert some.amounts is not None, "amounts are decided"
        low, high = some.amounts.min(initial=np.inf), some.amounts.max(initial=-np.inf)
        far, own = high - low + 1.0, values[0, :TYPICAL]
        nobodys = (np.full(len(some), one) for one in (low - far, high + far))
        for other in (np.roll(some.amounts, 1), *nobodys):
            try:
                if (worth_of_amounts(happiness, some, other)[0] != own).any():
                    return True
            except HappinessError:
                return True  # to some an amount is worth a number, and another one none
        return False

    def of_one_amount(self, j: int) -> Floats:
        """What one and the same amount would be worth to everybody, by which people are recognised; or nothing."""
        try:
            return worth_of_amounts(self.problem.happiness[j], self.batch, np.ones(len(self.batch)))[0]
        except HappinessError:
            return np.empty(0)  # where it is worth no number, something else tells people apart

    @cached_property
    def _kept(self) -> dict[str, tuple[Floats, Truths | None]]:
        return {}

    def _evaluated(self, happiness: Happiness) -> tuple[Floats, Truths | None]:
        what = f"The happiness {happiness.name!r}"
        decisions = self.problem.decisions.tolist()
        over = happiness.over
        if over:
            inside = [self.counted(happiness, decision) for decision in decisions]
        else:
            inside = [self.counted(happiness)] * len(decisions)
        values = np.stack(
            [
                evaluate(happiness.function, what, self.batch, decision, counted)
                for decision, counted in zip(decisions, inside, strict=True)
            ]
        )
        if not self.batch.supposed & happiness.asks:
            counted = None if happiness.among is None else np.array(inside)
            check_bounds(happiness, values, counted, self.batch, decisions)
        return _not_too_large(values, str(happiness.name)), None if over else inside[0]


def worth_of(problem: Problem, batch: Batch) -> Worth:
    """What every decision is worth to some people; evaluated measure by measure, when it is asked for."""
    return Worth(problem, batch)


def check_bounds(
    happiness: Happiness, values: Floats, counted: Truths | None, batch: Batch, decisions: list[Any] | Floats
) -> None:
    """Refuse values outside the bounds that were stated, but for rounding.

    Of values of shape (D, n) of so many decisions; or of shape (1, n) of everybody's own amount.
    """
    if happiness.bounds is None or not values.size:
        return
    low, high = happiness.bounds
    slack = SLACK * (high - low)
    if happiness.rate:
        wrong = (values != low) & (values != high)
    elif values.min() >= low - slack and values.max() <= high + slack:
        return
    else:
        wrong = (values < low - slack) | (values > high + slack)
    if counted is not None:
        wrong &= counted
    if wrong.any():
        d, i = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        which = f"decision {decisions[d]!r}" if isinstance(decisions, list) else f"amount {decisions[i]:.6g}"
        raise HappinessError(
            f"The happiness {happiness.name!r} of the {which} is {values[d, i]:.6g} in {batch.row(int(i))}, "
            + ("and a rate is 0 or 1." if happiness.rate else f"outside its bounds {low:.6g} to {high:.6g}."),
            "Leave rate= out, or return True and False."
            if happiness.rate
            else "Widen bounds=, or leave it out: what relies on wrong bounds is wrong.",
        )


def worth_of_amounts(happiness: Happiness, batch: Batch, amounts: Floats) -> tuple[Floats, Truths | None]:
    r"""What everybody's own amount is worth to them, :math:`\eta(a_i; i)`, and who is counted (None: everybody).

    Of those who are not counted it is 0. Of a fraction, whose ``among`` looks at the amount, it is what each adds to
    the numerator, and everybody is counted.

    Parameters
    ----------
    happiness : Happiness
        Its function gets ``decision`` as an array of floats; see :mod:`felicific._people.user_functions`.
    batch : Batch
        The people.
    amounts : array of shape (n,)
        Finite numbers.
    """
    if isinstance(happiness.function, Loses):
        return _lost_amounts(happiness.function, batch, amounts), None
    counted = None
    if happiness.among is not None:
        what = f"`among` of the happiness {happiness.name!r}"
        counted = members(evaluate_amounts(happiness.among, what, batch, amounts, sees_missing=True), what)
    values = evaluate_amounts(
        happiness.function, f"The happiness {happiness.name!r}", batch, amounts, counted
    )
    if not batch.supposed & happiness.asks:
        check_bounds(happiness, values[None], counted, batch, amounts)
    return _not_too_large(values, str(happiness.name)), None if happiness.over else counted


def _lost_amounts(function: Loses, batch: Batch, amounts: Floats) -> Floats:
    """Who gets less by their amount than from the baseline's."""
    if batch.baseline is None:
        raise no_baseline("Who loses")
    everybody, nobody = (np.full(len(batch), truth) for truth in (True, False))
    parts = [
        [worth_of_amounts(part, batch, some) for some in (batch.baseline, amounts)] for part in function.parts
    ]
    values = [[was[0], now[0]] for was, now in parts]
    return np.asarray(function.lost(values, [was[1] for was, _ in parts], [everybody, nobody])[1])


def loss_of_amounts(loss: Loss, batch: Batch, amounts: Floats) -> Floats:
    """What everybody's own amount costs the decision maker, of shape (n,); of a loss that is a function."""
    assert loss.function is not None, "the loss of an amount is a function"
    return _not_too_large(evaluate_amounts(loss.function, "The loss", batch, amounts))


def typical(values: Floats, counted: Truths | None) -> float | None:
    """A typical value of a measure, to which sums are kept relative; None when nobody is counted."""
    seen = values if counted is None else values[:, counted]
    if not seen.size:
        return None
    # A value that occurs, not the middle between two: subtracted from a rate, it leaves 0, 1 or -1.
    middle = (seen[:, :TYPICAL].size - 1) // 2
    return float(np.partition(seen[:, :TYPICAL], middle, axis=None)[middle])


def differs(values: Floats) -> bool:
    """Whether some decision is worth something else to somebody; of values of shape (D, n), not counted ones alike."""
    return bool((values != values[:1]).any())


def idle(name: str, decisions: list[Any]) -> HappinessError:
    """The error of a happiness that no decision changes for anybody: whatever is measured of it means nothing."""
    return HappinessError(
        f"No decision changes the happiness {name!r} of anybody; the classes are {decisions}.",
        f"Make it depend on the decision, as (decision == {decisions[-1]!r}) * loan does.",
    )


def _too_large(name: str | None) -> FelicificError:
    """The error of a happiness, or of the loss, whose sums a computer cannot hold."""
    remedy = "Use a larger unit (thousands of dollars, say)."
    if name is None:
        return DataError("The loss is so large that its sum overflows.", remedy)
    return HappinessError(f"The happiness {name!r} is so large that its sum overflows.", remedy)


def _not_too_large(values: Floats, name: str | None = None) -> Floats:
    """The values of a happiness, or of the loss, none of which is so large that sums overflow."""
    if values.size and not max(-values.min(), values.max()) < LARGEST:
        raise _too_large(name)
    return values


def refuse_overflow(problem: Problem, value: Floats, loss: Floats) -> None:
    """Refuse sums (measures last) that are infinite, or would be once they are added up or subtracted.

    All of them together, so that it does not depend on how many cells people are counted in.
    """
    with np.errstate(over="ignore"):
        sizes = np.abs(value).sum(axis=tuple(range(value.ndim - 1)))
        lost = np.abs(loss).sum()
    for measure, size in zip(problem.happiness, sizes, strict=True):
        if not size < LARGEST:
            raise _too_large(str(measure.name))
    if not lost < LARGEST:
        raise _too_large(None)


# ---------------------------------------------------------------------------------------------------------
# Straight happiness: of a straight line of the amount two numbers of everybody say all there is

#: A happiness is straight if it is off the line by no more than this share of its size.
STRAIGHT = 1e-9

#: Where it is tested, as shares of the way from the least amount to the largest.
TESTED = (1.0 / 3.0, 0.7853)


@dataclass(frozen=True, eq=False)
class Straight:
    """Of everybody, the worth of the amount 0, of one more unit, and who is counted (None: everybody)."""

    start: Floats
    slope: Floats
    counted: Truths | None


def straight_worth(happiness: Happiness, batch: Batch, bounds: tuple[float, float]) -> Straight:
    """What amounts between two bounds are worth to some people; an error where that is no straight line."""
    line, bent = _tried(happiness, batch, bounds)
    if bent is not None:
        raise HappinessError(
            f"The happiness {happiness.name!r} is no straight line of the amount in {batch.row(bent)}, and an "
            "individual policy of amounts has to know what one more unit is worth.",
            "Use policy='score', or a happiness such as 'decision * months'.",
        )
    return line


def is_straight(happiness: Iterable[Happiness], batch: Batch, bounds: tuple[float, float]) -> bool:
    """Whether amounts between two bounds are worth a straight line to each of some people."""
    return all(_tried(one, batch, bounds)[1] is None for one in happiness)


def _tried(happiness: Happiness, batch: Batch, bounds: tuple[float, float]) -> tuple[Straight, int | None]:
    """The line through the ends of everybody's worth; and the position of somebody whose worth is not on it."""
    low, high = bounds

    def worth(share: float) -> tuple[Floats, Truths | None]:
        return worth_of_amounts(happiness, batch, np.full(len(batch), low + share * (high - low)))

    (first, counted), (last, _) = worth(0.0), worth(1.0)
    bent = None
    for share in TESTED:
        here = worth(share)[0]
        off = np.abs(here - (first + share * (last - first)))
        size = sum(np.abs(part).max(initial=0.0) for part in (first, last, here))
        if off.max(initial=0.0) > STRAIGHT * size:
            bent = int(off.argmax())
    slope = (last - first) / (high - low)
    return Straight(first - slope * low, slope, counted), bent
