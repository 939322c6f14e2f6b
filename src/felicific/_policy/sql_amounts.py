r"""SQL of amounts: a policy of broken lines as one ``CASE`` expression, with the numbers and the draws of Python.

Between two knots the amount is :math:`slope (f - x) + y` of the lower one, operation by operation what
:func:`felicific._policy.lines.along` computes. A line may have some thousand knots, so that conditions are not listed
one after the other but nested, each halving what is left: no row is compared more than a dozen times. A database that
finds a place in a list by itself (PostgreSQL, BigQuery) gets lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from felicific._policy.expression import Branch, SqlExpression
from felicific._policy.lines import slopes_of
from felicific._tables.dialect import Dialect
from felicific._typing import Floats

if TYPE_CHECKING:
    from felicific._policy.amounts import AmountPolicy


@dataclass(frozen=True)
class AmountNames:
    """Columns of a policy of amounts as SQL text: quoted names, or positions.

    Attributes
    ----------
    prediction : str
        What the model predicts.
    group : tuple of str
        Columns of the group; none for a policy that does not see it.
    key : str or None
        What identifies a person in the lottery.
    """

    prediction: str
    group: tuple[str, ...]
    key: str | None


def amount_expression(policy: AmountPolicy, dialect: Dialect, names: AmountNames) -> str:
    """What people get as one expression."""
    return _Amounts(policy, dialect, names).text()


#: Knots from which on a database that finds a place in a list does so: PostgreSQL compiles thousands of conditions for
#: longer than it computes them.
MANY = 32


class _Amounts(SqlExpression):
    def __init__(self, policy: AmountPolicy, dialect: Dialect, names: AmountNames) -> None:
        super().__init__(policy, dialect, names.group, names.key)
        self.policy, self.column = policy, names.prediction
        self.prediction = dialect.as_real(names.prediction)

    def text(self) -> str:
        guards = self.type_guards([((self.column,), ("whole", "real"), "prediction")]) + self.group_guards()
        remedy = "Correct it, or leave the row out: an amount is a number."
        guards.append(self.finite_guard(self.prediction, "The prediction", self.column, remedy))
        if self.policy.is_randomized:
            guards.append(self.key_guard())
        return self.whole(guards, self.column, self._rules)

    def _kind(self) -> str:
        return "real"

    def _rules(self, z: int, never: str, indent: str) -> list[Branch]:
        """Who draws, and the line of a group for all others; nobody is left over."""
        line, branches = self.policy.lines[z], []
        for atom in reversed(
            line.atoms if self.policy.randomize else ()
        ):  # of two the later counts, as in Python
            within = f"{self.prediction} > {self.number(atom.low)} AND {self.prediction} <= {self.number(atom.high)}"
            draw = f"({self.dialect.uniform(self.policy.salt, str(self.key))})"
            branches.append((within, self._line(draw, atom.draws, atom.amounts)))
        return [*branches, ("", self._line(self.prediction, line.prediction, line.amount))]

    def _line(self, at: str, x: Floats, y: Floats) -> str:
        """A broken line somewhere: of every knot that stands twice, what comes after it."""
        last = np.append(np.diff(x) > 0, True)
        slopes, knots, heights = (part[last].tolist() for part in (slopes_of(x, y), x, y))
        below = self.number(float(y[0]))
        if len(knots) >= MANY and self.dialect.bucket:
            found = self._found(at, slopes, knots, heights)
            return f"CASE WHEN {at} < {self.number(knots[0])} THEN {below} ELSE {found} END"
        pieces = [self._piece(at, *knot) for knot in zip(slopes, knots, heights, strict=True)]
        return self._nested(at, knots, [below, *pieces])

    def _found(self, at: str, slopes: list[float], knots: list[float], heights: list[float]) -> str:
        """The piece of a line whose place a function finds in the list of knots."""
        place = self.dialect.bucket.format(at=at, edges=self.dialect.write_numbers(knots))
        slope, knot, height = (
            self.dialect.element.format(list=self.dialect.write_numbers(numbers), place=place)
            for numbers in (slopes, knots, heights)
        )
        return f"{slope} * ({at} - {knot}) + {height}"

    def _piece(self, at: str, slope: float, knot: float, height: float) -> str:
        """A straight piece of a line."""
        if slope == 0.0:
            return self.number(height)
        return f"{self.number(slope)} * ({at} - {self.number(knot)}) + {self.number(height)}"

    def _nested(self, at: str, knots: list[float], pieces: list[str]) -> str:
        """Conditions that halve what is left; neighbours that say the same are one."""
        kept = [0, *(i for i in range(1, len(pieces)) if pieces[i] != pieces[i - 1])]
        return self._halved(at, [knots[i - 1] for i in kept[1:]], [pieces[i] for i in kept])

    def _halved(self, at: str, knots: list[float], pieces: list[str]) -> str:
        if not knots:
            return pieces[0]
        middle = len(knots) // 2
        below = self._halved(at, knots[:middle], pieces[: middle + 1])
        above = self._halved(at, knots[middle + 1 :], pieces[middle + 1 :])
        return f"CASE WHEN {at} < {self.number(knots[middle])} THEN {below}\nELSE {above} END"
