r"""Worth: what every decision is worth to every person. The one loop that everything else is made of.

For every person i of a batch, every decision d and every measure j

.. math:: c(d; i), \qquad \eta_j(d; i), \qquad a_j(i) \in \{0, 1\}

the loss, the happiness and who is counted, each one finite number, within the bounds that were stated, and not so large
that sums of it overflow. Aggregates, individual policies and audits all ask here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from felicific._people.aligned import called_with
from felicific._people.wrapping import SMALL, may_wrap, unwrapped
from felicific._problem.expressions import Expression
from felicific._problem.happiness import ARGUMENTS, Happiness, Loses, arguments_of
from felicific._problem.loss import Loss
from felicific._problem.problem import Problem
from felicific._tables.codes import Entries
from felicific._tables.memory import ArrayRows, UnreadColumn, slice_rows, take_rows
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError, FelicificError, HappinessError

#: Rows per batch: the happiness of a batch stays in the processor's cache (five times faster than all at once).
BATCH = 16_384

#: Rows that a typical value of each measure is taken from.
TYPICAL = 1024

#: Sums from here on could overflow when they are added up over cells and groups.
LARGEST = 1e300

#: Numbers of one person that differ by less, relative to the largest, are the same but for rounding.
ALIKE = 1e-9

#: Values may leave their bounds by this much of the range, for rounding.
SLACK = 1e-9


@dataclass(frozen=True)
class Batch:
    """Some people, as a happiness function sees them.

    Attributes
    ----------
    x : table
        Their rows, in the user's own library.
    y : array of shape (n,), or None
        Labels.
    labels : array of shape (n,), or None
        Their positions among the classes.
    group : entries of shape (n,)
        Groups, of text by their codes.
    rows : array of shape (n,)
        Numbers in the user's table, for messages.
    baseline : array of shape (n,), or None
        The baseline, where somebody asks for it.
    supposed : set of str
        Which of ``y`` and ``group`` are supposed, and not known: bounds speak of real people.
    amounts : array of shape (n,), or None
        What is decided on each, where it is an amount: then there is one decision, everybody's own.
    """

    x: Table
    y: Array | None
    labels: Codes | None
    group: Entries
    rows: Codes
    baseline: Array | None = None
    supposed: frozenset[str] = frozenset()
    amounts: Floats | None = None

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def wrapping(self) -> frozenset[str]:
        """Which of ``x``, ``y``, ``group`` and ``baseline`` hold whole numbers that could wrap around."""
        return may_wrap({"x": self.x, "y": self.y, "group": self.group, "baseline": self.baseline})

    def row(self, position: int) -> str:
        """Name one row and its group in a message."""
        return f"row {self.rows[position]} (group {self.group[position : position + 1].tolist()[0]!r})"

    def part(self, some: slice) -> Batch:
        """Some of these people."""
        x = None if self.x is None else slice_rows(self.x, some.start, some.stop)
        y = None if self.y is None else self.y[some]
        labels = None if self.labels is None else self.labels[some]
        baseline = None if self.baseline is None else self.baseline[some]
        amounts = None if self.amounts is None else self.amounts[some]
        return Batch(x, y, labels, self.group[some], self.rows[some], baseline, self.supposed, amounts)

    def take(self, positions: Codes) -> Batch:
        """Those at some positions."""
        x = None if self.x is None else take_rows(self.x, positions)
        names = ("y", "labels", "group", "rows", "baseline", "amounts")
        parts: dict[str, Any] = {name: getattr(self, name) for name in names}
        kept: dict[str, Any] = {
            name: None if part is None else part[positions] for name, part in parts.items()
        }
        return Batch(x, supposed=self.supposed, **kept)


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
        if cost.size and not max(-cost.min(), cost.max()) < LARGEST:
            raise DataError("The loss is so large that its sum overflows.", _LARGER_UNIT)
        return cost

    def counted(self, happiness: Happiness, decision: Any = None) -> Truths | None:
        """Who is counted by a measure, by a fraction if this is decided; None for everybody."""
        if happiness.among is None:
            return None
        what = f"`among` of the happiness {happiness.name!r}"
        return _members(evaluate(happiness.among, what, self.batch, decision), what)

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
        some = self.batch.part(slice(0, TYPICAL))
        assert some.amounts is not None, "amounts are decided"
        low, high = some.amounts.min(initial=np.inf), some.amounts.max(initial=-np.inf)
        far = high - low + 1.0
        own = values[0, :TYPICAL]
        for other in (
            np.roll(some.amounts, 1),
            *(np.full(len(some), one) for one in (low - far, high + far)),
        ):
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
        if values.size and not max(-values.min(), values.max()) < LARGEST:
            raise too_large(str(happiness.name))
        return values, None if over else inside[0]


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
        Its function gets ``decision`` as an array of floats; see :mod:`felicific._people.aligned`.
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
        counted = _members(evaluate_amounts(happiness.among, what, batch, amounts), what)
    values = evaluate_amounts(
        happiness.function, f"The happiness {happiness.name!r}", batch, amounts, counted
    )
    if not batch.supposed & happiness.asks:
        check_bounds(happiness, values[None], counted, batch, amounts)
    if values.size and not max(-values.min(), values.max()) < LARGEST:
        raise too_large(str(happiness.name))
    return values, None if happiness.over else counted


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
    cost = evaluate_amounts(loss.function, "The loss", batch, amounts)
    if cost.size and not max(-cost.min(), cost.max()) < LARGEST:
        raise DataError("The loss is so large that its sum overflows.", _LARGER_UNIT)
    return cost


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


def no_baseline(what: str) -> HappinessError:
    """The error of what is compared with the baseline's decisions, where there are none."""
    return HappinessError(
        f"{what} looks at the baseline, and there is none.",
        "Pass baseline=, or what the model says about these people.",
    )


_LARGER_UNIT = "Use a larger unit (thousands of dollars, say)."


def too_large(name: str) -> HappinessError:
    """The error of a happiness whose sums a computer cannot hold."""
    return HappinessError(f"The happiness {name!r} is so large that its sum overflows.", _LARGER_UNIT)


def refuse_overflow(problem: Problem, value: Floats, loss: Floats) -> None:
    """Refuse sums (measures last) that are infinite, or would be once they are added up or subtracted.

    All of them together, so that it does not depend on how many cells people are counted in.
    """
    with np.errstate(over="ignore"):
        sizes = np.abs(value).sum(axis=tuple(range(value.ndim - 1)))
        lost = np.abs(loss).sum()
    for measure, size in zip(problem.happiness, sizes, strict=True):
        if not size < LARGEST:
            raise too_large(str(measure.name))
    if not lost < LARGEST:
        raise DataError("The loss is so large that its sum overflows.", _LARGER_UNIT)


# ---------------------------------------------------------------------------------------------------------
# Calling the user's functions


def _members(numbers: Floats, what: str) -> Truths:
    """Who is counted, of what `among` returned."""
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise HappinessError(
            f"{what} returned numbers other than 0 and 1.", "Return True for the people who are counted."
        )
    return np.asarray(numbers == 1.0)


def evaluate(
    function: Callable[..., Any],
    what: str,
    batch: Batch,
    decision: Any = None,
    counted: Truths | None = None,
) -> Floats:
    """Call a function of the user's on a batch and insist on one finite real number per row, whatever the other rows.

    Of rows that are not ``counted`` anything is taken, and zero is returned.
    """
    asked = _asked(function, what, batch, ARGUMENTS if decision is not None else ARGUMENTS[1:])
    case = what if decision is None else f"{what}, for the decision {decision!r},"
    numbers = _numbers(function, case, asked, batch, decision, counted)
    n = len(numbers)
    # Once in a table: its first batch begins before as many rows as it has.
    if n > 1 and batch.rows[0] < n and not isinstance(function, Expression):
        some = slice(n // 2, n // 2 + max(1, n // 8))
        seen = None if counted is None else counted[some]
        try:
            alone = _numbers(function, case, asked, batch.part(some), decision, seen)
        except HappinessError:
            return numbers  # what fails on fewer rows is told when there are fewer
        _refuse_others(case, batch, numbers, alone, some)
    return numbers


def evaluate_amounts(
    function: Callable[..., Any],
    what: str,
    batch: Batch,
    amounts: Floats,
    counted: Truths | None = None,
) -> Floats:
    """Call a function of the user's with everybody's own amount; see :func:`evaluate`."""
    asked = _asked(function, what, batch, ARGUMENTS)

    def call(rows: Codes | None, amount: Any) -> Floats:
        return _raw_numbers(function, what, asked, batch if rows is None else batch.take(rows), amount)

    numbers = called_with(call, amounts, what, trusted=isinstance(function, Expression))
    return _finite(numbers, what, batch, counted)


def _asked(function: Callable[..., Any], what: str, batch: Batch, allowed: tuple[str, ...]) -> frozenset[str]:
    """Arguments that a function asks for; an error where there is none of them."""
    asked = arguments_of(function, what, allowed)
    if "y" in asked and batch.y is None:
        raise HappinessError(f"{what} looks at the label y, and there is none.", "Pass y.")
    if "baseline" in asked and batch.baseline is None:
        raise no_baseline(what)
    return asked


def _refuse_others(case: str, batch: Batch, numbers: Floats, alone: Floats, some: slice) -> None:
    """Raise if some rows, ``alone``, get other numbers than among all rows of the batch."""
    apart = np.abs(alone - numbers[some])
    if apart.max() <= ALIKE * np.abs(numbers).max():
        return
    i = int(apart.argmax())
    raise HappinessError(
        f"{case} is {numbers[some.start + i]:.6g} in {batch.row(some.start + i)} among {len(numbers)} rows, and "
        f"{alone[i]:.6g} among {len(alone)} of them: it depends on other people's rows, or on chance.",
        "It sees some rows at a time: compute means, ranks and the like beforehand, as a column or a number.",
    )


def _numbers(
    function: Callable[..., Any],
    case: str,
    asked: frozenset[str],
    batch: Batch,
    decision: Any,
    counted: Truths | None,
) -> Floats:
    """One finite real number per row."""
    return _finite(_raw_numbers(function, case, asked, batch, decision), case, batch, counted)


def _raw_numbers(
    function: Callable[..., Any], case: str, asked: frozenset[str], batch: Batch, decision: Any
) -> Floats:
    """One real number per row, which need not be finite."""
    offered = {
        "decision": decision,
        "x": batch.x,
        "y": batch.y,
        "group": np.asarray(batch.group) if "group" in asked else None,
        "baseline": batch.baseline,
    }
    given = {name: offered[name] for name in asked}
    with np.errstate(all="ignore"):  # what is not finite is refused by name
        numbers = _returned(function, case, given)
        large = isinstance(decision, int) and abs(decision) >= SMALL and asked - {"decision"}
        if not isinstance(function, Expression) and (large or asked & batch.wrapping):
            numbers = unwrapped(partial(_returned, function, case), given, numbers, case)
    n = len(batch.group)
    if numbers.shape not in {(), (n,)}:
        raise HappinessError(
            f"{case} returned shape {numbers.shape} for {n} rows.",
            "Return one number per row, or one number; several measures are a list of functions.",
        )
    return np.broadcast_to(numbers, (n,))


def _finite(numbers: Floats, case: str, batch: Batch, counted: Truths | None) -> Floats:
    """The numbers, 0 for those who are not counted; what is not finite is refused by its row."""
    if counted is not None:
        numbers = np.where(counted, numbers, 0.0)
    finite = np.isfinite(numbers)
    if not finite.all():
        position = int(np.argmin(finite))
        raise HappinessError(
            f"{case} is {numbers[position]} in {batch.row(position)}.",
            "Repair that row of the table, or leave such people out with `among`.",
        )
    return numbers


def _returned(function: Callable[..., Any], case: str, given: dict[str, Any]) -> Floats:
    """What a function of the user's returns, as numbers."""
    result = _call(function, case, given)
    if result is None:
        raise HappinessError(f"{case} returned None.", "Return one number per row; is a `return` missing?")
    if "Int128" in str(getattr(result, "dtype", "")):  # which NumPy has not
        result = np.array(result.to_list(), dtype=object)
    array = result.to_numpy() if hasattr(result, "to_numpy") else np.asarray(result)
    return _as_numbers(array, case)


def _call(function: Callable[..., Any], case: str, arguments: dict[str, Any]) -> Any:
    """Call a function of the user's; what it raises becomes an error of ours."""
    library = type(arguments.get("x")).__module__.split(".")[0]
    if library == "pyarrow":
        # Arrow's own columns know no arithmetic: most functions want arrays, and the others want Arrow.
        with contextlib.suppress(Exception):
            return function(**arguments | {"x": ArrayRows(arguments["x"])})
    try:
        return function(**arguments)
    except UnreadColumn:
        raise  # the table is read again, with that column
    except FelicificError as error:
        if isinstance(function, Expression):
            raise  # its errors point at the part that is wrong
        raise HappinessError(
            f"{case} raised {type(error).__name__}: {error.problem}", error.remedy
        ) from error
    except Exception as error:
        if library in ("pandas", "polars"):
            # Polars, and PyArrow in pandas, know no product of truth values and numbers; arrays do.
            with contextlib.suppress(Exception):
                return function(**arguments | {"x": ArrayRows(arguments["x"])})
        raise HappinessError(
            f"{case} raised {type(error).__name__}: {error}.",
            "Try the function on a few rows of your own table; a column may be missing, or a decision no number.",
        ) from error


def _as_numbers(array: Array, case: str) -> Floats:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    text = array.dtype.kind == "U"
    if array.dtype.kind == "O":
        try:
            # A missing value of a nullable column becomes NaN, and is then reported with its row.
            plain = [
                np.nan if type(value).__name__ == "NAType" else value for value in array.ravel().tolist()
            ]
            text = any(isinstance(value, str) for value in plain)
            if not text and not any(isinstance(value, complex) for value in plain):
                return np.array(plain, dtype=np.float64).reshape(array.shape)
        except (TypeError, ValueError):
            pass
    raise HappinessError(
        f"{case} returned {'text' if text else f'{array.dtype} values'}, not real numbers.",
        "Return one finite real number per row.",
    )
