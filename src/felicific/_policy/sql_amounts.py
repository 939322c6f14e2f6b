r"""SQL of amounts: a policy of broken lines as one ``CASE`` expression, with the numbers and the lots of Python.

Between two knots the amount is :math:`slope (f - x) + y` of the lower one, operation by operation what
:func:`felicific._policy.lines.along` computes. A line may have some thousand knots, so that conditions are not listed
one after the other but nested, each halving what is left: no row is compared more than a dozen times.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from felicific._policy.expression import Branch, Expression
from felicific._policy.lines import Atom, Line, slopes_of
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


#: Where a piece of a line ends: at a number, which is a part of it or not.
_End = tuple[float, bool]


class _Amounts(Expression):
    def __init__(self, policy: AmountPolicy, dialect: Dialect, names: AmountNames) -> None:
        super().__init__(policy, dialect, names.group, names.key)
        self.policy, self.column = policy, names.prediction
        self.prediction = dialect.as_real(names.prediction)

    def text(self) -> str:
        guards = self.type_guards([((self.column,), ("whole", "real"), "prediction")]) + self.group_guards()
        remedy = "Correct it, or leave the row out: an amount is a number."
        guards.append(self.finite_guard(self.prediction, "The prediction", self.column, remedy))
        if self.policy.draws_lots:
            guards.append(self.key_guard())
        return self.whole(guards, self.column, self._rules)

    def _kind(self) -> str:
        return "real"

    def _rules(self, z: int, never: str, indent: str) -> list[Branch]:
        """The one expression of a group; nobody is left over."""
        line = self.policy.lines[z]
        atoms = line.atoms if self.policy.randomize else ()
        ends: set[_End] = {(x, False) for x in line.prediction.tolist()}
        for atom in atoms:
            ends |= {(atom.low, True), (atom.high, True)}
        ordered = sorted(ends)
        pieces = [self._piece(line, atoms, end) for end in (None, *ordered)]
        return [("", self._nested(self.prediction, ordered, pieces))]

    def _piece(self, line: Line, atoms: tuple[Atom, ...], start: _End | None) -> str:
        """The amount from where a piece starts; None for what lies below all of them."""
        for atom in reversed(atoms):  # of two the later counts, as in Python
            if start is not None and (atom.low, True) <= start < (atom.high, True):
                return self._drawn(atom)
        return self._straight(self.prediction, line.prediction, line.amount, start)

    def _drawn(self, atom: Atom) -> str:
        """The amount that somebody's lot draws."""
        lot = f"({self.dialect.uniform(self.policy.salt, str(self.key))})"
        ends = sorted({(x, False) for x in atom.lots.tolist()})
        pieces = [self._straight(lot, atom.lots, atom.amounts, end) for end in (None, *ends)]
        return self._nested(lot, ends, pieces)

    def _straight(self, at: str, x: Floats, y: Floats, start: _End | None) -> str:
        """A piece of a broken line: that of the last knot that is not beyond its start."""
        if start is None:
            return self.number(float(y[0]))
        knot = max(bisect_right(x.tolist(), start[0]) - 1, 0)
        slope, height = float(slopes_of(x, y)[knot]), self.number(float(y[knot]))
        if slope == 0.0 or start[0] < x[0]:
            return height
        return f"{self.number(slope)} * ({at} - {self.number(float(x[knot]))}) + {height}"

    def _nested(self, at: str, ends: list[_End], pieces: list[str]) -> str:
        """Conditions that halve what is left; neighbours that say the same are one."""
        kept = [0, *(i for i in range(1, len(pieces)) if pieces[i] != pieces[i - 1])]
        return self._halved(at, [ends[i - 1] for i in kept[1:]], [pieces[i] for i in kept])

    def _halved(self, at: str, ends: list[_End], pieces: list[str]) -> str:
        if not ends:
            return pieces[0]
        middle = len(ends) // 2
        number, within = ends[middle]
        below = self._halved(at, ends[:middle], pieces[: middle + 1])
        above = self._halved(at, ends[middle + 1 :], pieces[middle + 1 :])
        sign = "<=" if within else "<"
        return f"CASE WHEN {at} {sign} {self.number(number)} THEN {below}\nELSE {above} END"
