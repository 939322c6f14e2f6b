"""Aligned: calling a function of the user's with a number for every person, where it may be written for one decision.

A happiness is written for one decision at a time, ``100 if decision > 3 else 0``; amounts are as many as people. It is
called once, with the amounts as an array; some rows of what it returns are then compared with what it returns for that
one person. Where that fails or differs, it is called once for every different amount.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from felicific._typing import Codes, Floats
from felicific.exceptions import HappinessError

#: Rows that are compared with what the function returns for that one person.
COMPARED = 32

#: Different amounts that a function is called for one by one at most.
DISTINCT = 4096

#: Numbers that differ by less, relative to the largest, are the same but for rounding.
ALIKE = 1e-9

#: Calls a function for some rows (None: all), with one amount or one for each of them.
Call = Callable[[Codes | None, Any], Floats]


def called_with(call: Call, amounts: Floats, case: str, *, trusted: bool = False) -> Floats:
    """What a function returns for everybody's own amount.

    Parameters
    ----------
    call : callable
        From some rows, and the amount of each or one for all, to one number for each of them, finite or not. Raises a
        HappinessError where it cannot.
    amounts : array of shape (n,)
    case : str
        What messages call the function.
    trusted : bool
        Whether it is an expression, which works row by row.
    """
    if trusted or not len(amounts):
        return call(None, amounts)
    some = _some_rows(amounts)
    try:
        numbers = call(None, amounts)
        problem = (
            "" if _alike(numbers, some, _alone(call, some, amounts)) else "it gives one person another number"
        )
    except HappinessError as error:
        problem = error.problem
    if not problem:
        return numbers
    numbers = _one_by_one(call, amounts, case, problem)
    alone = _alone(call, some, amounts)
    if not _alike(numbers, some, alone):
        i = int(np.argmax(np.abs(numbers[some] - alone)))
        raise HappinessError(
            f"{case} is {numbers[some[i]]:.6g} for the amount {amounts[some[i]]:.6g} among people of that amount, and "
            f"{alone[i]:.6g} for one of them alone: it depends on other people's rows, or on chance.",
            "It sees some rows at a time: compute means, ranks and the like beforehand, as a column or a number.",
        )
    return numbers


def _some_rows(amounts: Floats) -> Codes:
    """The rows of the least and the largest amount, and others in between, in the order of amounts and of rows."""
    n = len(amounts)
    if n <= COMPARED:
        return np.arange(n)
    half = COMPARED // 2
    order = np.argsort(amounts, kind="stable")[np.linspace(0, n - 1, half).astype(np.intp)]
    return np.unique(np.concatenate([order, np.linspace(0, n - 1, half).astype(np.intp)]))


def _alone(call: Call, some: Codes, amounts: Floats) -> Floats:
    """What some people get, each alone, by a single number; or where a function wants an array, by an array of one."""
    found = np.empty(len(some))
    for k, i in enumerate(some.tolist()):
        row = np.array([i])
        try:
            found[k] = call(row, float(amounts[i]))[0]
        except HappinessError:
            found[k] = call(row, amounts[row])[0]
    return found


def _alike(numbers: Floats, some: Codes, alone: Floats) -> bool:
    """Whether some people get the same numbers alone; what is no number, or infinite, is the same as itself."""
    scale = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
    return bool(np.allclose(numbers[some], alone, rtol=0.0, atol=ALIKE * scale, equal_nan=True))


def _one_by_one(call: Call, amounts: Floats, case: str, problem: str) -> Floats:
    """What a function returns that is called for every different amount, with those who get it."""
    distinct, place = np.unique(amounts, return_inverse=True)
    if len(distinct) > DISTINCT:
        call(np.array([0]), float(amounts[0]))  # what fails of one person alone is said as it is
        raise HappinessError(
            f"{case} cannot be called with the amounts as an array ({problem.rstrip('.')}), and there are "
            f"{len(distinct):,} different amounts, more than {DISTINCT:,}.",
            "Write it for an array: np.where(decision > 3, 100, 0) in place of `100 if decision > 3 else 0`, and "
            "np.maximum in place of max; or round the amounts.",
        )
    order = np.argsort(place, kind="stable")
    numbers = np.empty(len(amounts))
    for amount, rows in zip(
        distinct.tolist(), np.split(order, np.cumsum(np.bincount(place))[:-1]), strict=True
    ):
        numbers[rows] = call(rows, amount)
    return numbers
