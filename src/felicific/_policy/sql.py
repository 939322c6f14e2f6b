r"""SQL: a policy that sees a signal as one ``CASE`` expression, with the very numbers and the very lottery of Python.

A score is compared with the edges of the fine bins: :math:`\lceil 4096 s \rceil \ge b` is :math:`s > (b - 1) / 4096`,
and both sides are exact. The lottery is the same hash, so the same person gets the same decision inside a database.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from felicific._people.checks import PROBABILITY_TOLERANCE
from felicific._policy.lines import slopes_of
from felicific._policy.lottery import cumulate
from felicific._tables.dialect import Dialect, kind_of, kinds_alike
from felicific._typing import Floats
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy
    from felicific._policy.numeric import AmountPolicy


# ---------------------------------------------------------------------------------------------------------
# What the SQL of every policy has in common: who may be decided on, which group somebody is of, and errors.


#: What each of several columns of groups must hold to be written in SQL as Python writes it.
SEVERAL = ("whole", "text")

#: What messages call what a column holds.
WORDS = {"bool": "truth values", "whole": "whole numbers", "real": "numbers", "text": "text"}

#: Columns, what they must hold, and what messages call it.
Used = tuple[tuple[str, ...], tuple[str, ...], str]

#: A condition, and what follows on it.
Branch = tuple[str, str]


class SqlExpression(ABC):
    """A policy as one expression of a database.

    Unknown groups, impossible numbers and missing keys raise inside the database; they never fall into an ``ELSE``.
    """

    def __init__(
        self, policy: CellPolicy | AmountPolicy, dialect: Dialect, group: tuple[str, ...], key: str | None
    ) -> None:
        self.sight, self.dialect, self.group, self.key = policy, dialect, group, key
        if policy.sees_group and not group:
            raise DataError("This policy sees the group.", "Name its column in sensitive_features=.")

    @abstractmethod
    def _kind(self) -> str:
        """What the expression returns."""

    def whole(
        self, guards: list[Branch], shown: str, rules: Callable[[int, str, str], Sequence[Branch]]
    ) -> str:
        """Guards, then for every group its ``rules``; these get its position, what is for nobody, and an indent."""
        group = self._group()
        # A column, also where no row can come here: some databases compute constants before they read a row.
        never = self._raise(
            "The group or the prediction is none of those that were fitted: ",
            group or shown,
            "Fit on data that holds every group, or decide on those people in another way.",
        )
        if not self.sight.sees_group:
            return case_of([*guards, *rules(0, never, "  ")], never)
        branches = list(guards)
        for z, name in enumerate(self.sight.groups):
            branches.append((self._is(group, name), case_of(rules(z, never, "    "), never, "    ")))
        return case_of(branches, never)

    # -----------------------------------------------------------------------------------------------------
    # Rows about which nothing may be decided

    def type_guards(self, used: Sequence[Used]) -> list[Branch]:
        """Columns of other types than Python takes: a database would cast them, and 1 be the group '01'."""
        wanted = list(used)
        if self.sight.sees_group:
            kinds = self._kinds(self.sight.groups, "group") if len(self.group) == 1 else SEVERAL
            wanted.append((self.group, kinds, "group"))
        if self.key is not None and self.sight.randomize:
            wanted.append(((self.key,), ("whole", "text"), "key"))
        return [
            (
                " OR ".join(self.dialect.holds_other(name, kinds) for name in columns),
                self._raise(
                    f"The {what} is of another type than it was fitted with: ",
                    columns[0],
                    f"Cast the column; it must hold {' or '.join(WORDS[kind] for kind in kinds)}.",
                ),
            )
            for columns, kinds, what in wanted
        ]

    def group_guards(self) -> list[Branch]:
        """People one of whose several groups is missing."""
        if not self.sight.sees_group or len(self.group) < 2:
            return []
        # One alone that is missing equals no group; text that is joined with it may.
        remedy = "Fill it in, give those people a group of their own, or leave the rows out."
        return [
            (f"{name} IS NULL", self._raise("The group is missing: ", name, remedy)) for name in self.group
        ]

    def finite_guard(self, value: str, what: str, shown: str, remedy: str) -> Branch:
        """People whose number is none."""
        # Missing values are nothing, and what is no number, or infinite, is larger than any number.
        finite = f"abs({value}) <= {self.number(sys.float_info.max)}"
        words = f"{what} is missing, infinite or no number: "
        return f"NOT coalesce({finite}, FALSE)", self._raise(words, shown, remedy)

    def key_guard(self) -> Branch:
        """People without a key, where the lottery draws."""
        if self.key is None:
            raise DataError(
                "The policy decides some people by lottery, and there is no key.",
                "Name the column that identifies a person in key=.",
            )
        remedy = "Give every person an identifier, or leave those rows out."
        return f"{self.key} IS NULL", self._raise("The key is missing: ", self.key, remedy)

    def _kinds(self, values: Sequence[object], what: str) -> tuple[str, ...]:
        kinds = kinds_alike(values)
        if not kinds:
            raise DataError(
                f"Some {what} of {list(values)[:5]} has no SQL literal here, or they are of different types.",
                "Use strings, integers, finite floats or booleans as classes and groups.",
            )
        return kinds

    def _raise(self, words: str, shown: str, remedy: str) -> str:
        """An error that shows a value, and the key of the person it is the value of."""

        def as_shown(column: str) -> str:
            return f"coalesce({self.dialect.as_text(column)}, 'NULL')"

        parts = [self._value(f"felicific: {words}"), as_shown(shown)]
        if self.key not in (None, shown):
            parts += [self._value(" (key "), as_shown(str(self.key)), self._value(")")]
        return self.dialect.raise_error([*parts, self._value(f". {remedy}")], self._kind())

    # -----------------------------------------------------------------------------------------------------
    # Values and groups

    def _value(self, value: object) -> str:
        return self.dialect.quote_value(value)

    def _is(self, column: str, value: object) -> str:
        """Condition that a column holds a value, as Python compares them."""
        return f"{self.dialect.as_exact(column) if isinstance(value, str) else column} = {self._value(value)}"

    def number(self, value: float) -> str:
        """A 64-bit float."""
        return self.dialect.write_number(value)

    def _group(self) -> str:
        """The group; of several columns the name of their intersection, escaped as Python escapes it."""
        if not self.sight.sees_group or len(self.group) == 1:
            return self.group[0] if self.group else ""
        back, text = "chr(92)", self.dialect.as_text
        parts = [
            f"replace(replace({text(name)}, {back}, concat({back}, {back})), '&', concat({back}, '&'))"
            for name in self.group
        ]
        joined = ", ' & ', ".join(parts)
        return f"concat({joined})"


def case_of(branches: Sequence[Branch], otherwise: str, indent: str = "") -> str:
    """An expression of conditions and what follows on each; the first without a condition is for all others."""
    lines = []
    for condition, decision in branches:
        if not condition:
            otherwise = decision
            break
        lines.append(f"WHEN {condition} THEN {decision}")
    if not lines:
        return otherwise
    between, end = " " if indent and len(lines) == 1 else f"\n{indent}  ", " " if indent else "\n"
    return between.join(["CASE", *lines, f"ELSE {otherwise}"]) + f"{end}END"


# ---------------------------------------------------------------------------------------------------------
# One CASE of a policy of cells.


@dataclass(frozen=True)
class Names:
    """Columns of a policy as SQL text: quoted names, or positions.

    Attributes
    ----------
    score : tuple of str, or None
        One column for every class.
    predicted : str or None
        The model's own decision.
    group : tuple of str
        Columns of the group; none for a policy that does not see it.
    key : str or None
        What identifies a person in the lottery.
    shares : tuple of str
        Columns of the probabilities divided by their sum, where these were computed ahead.
    """

    score: tuple[str, ...] | None
    predicted: str | None
    group: tuple[str, ...]
    key: str | None
    shares: tuple[str, ...] = ()


def case_expression(
    policy: CellPolicy, dialect: Dialect, names: Names, probabilities_of: int | None = None
) -> str:
    """The decision of a policy as one expression; or the probabilities that people have of one of its decisions.

    Unknown groups, impossible probabilities and missing keys raise inside the database; they never fall into an
    ``ELSE``.
    """
    if probabilities_of is not None:
        return _Odds(policy, dialect, names, probabilities_of).text()
    return _Case(policy, dialect, names).text()


class _Case(SqlExpression):
    def __init__(self, policy: CellPolicy, dialect: Dialect, names: Names) -> None:
        super().__init__(policy, dialect, names.group, names.key)
        self.policy, self.names = policy, names
        self.signal = policy.signal
        self.classes, self.decisions = policy.classes.tolist(), policy.decisions.tolist()
        self.k = len(self.classes)
        if self.signal.needs_proba and names.score is None:
            raise DataError(f"The policy sees {policy.applied_to}.", "Name their columns in score=.")
        if names.score is None and names.predicted is None:
            raise DataError(
                "There are neither probabilities nor predictions.", "Name them in score= or predicted=."
            )

    # -----------------------------------------------------------------------------------------------------
    # The whole

    def text(self) -> str:
        shown = self.names.predicted or (self.names.score or ("''",))[0]
        return self.whole(self._guards(), shown, self._rules)

    def _guards(self) -> list[Branch]:
        """Rows about which nothing may be decided."""
        found = self.type_guards(self._used()) + self.group_guards()
        if self.signal.of_values:
            shown = (self.names.score or ("''",))[0]
            remedy = "Pass what decision_function returns."
            found.append(self.finite_guard(self.value, "The decision function", shown, remedy))
        elif self._uses_proba():
            score = self.names.score or ()
            numbers = [self.dialect.as_real(p) for p in score]
            right = [f"{p} >= 0" for p in numbers]
            total = f"abs({self._total()} - 1) <= {self.number(PROBABILITY_TOLERANCE)}"
            right.append(f"{numbers[0]} <= 1" if len(score) == 1 else total)
            shown = score[0] if len(score) == 1 else score[1]
            found.append(
                (
                    f"NOT coalesce({' AND '.join(right)}, FALSE)",
                    self._raise(
                        "The probabilities are missing, or do not sum to one: ",
                        shown,
                        "Pass what predict_proba returns, every class included.",
                    ),
                )
            )
        return [*found, self.key_guard()] if self.policy.randomize and self._has_lottery() else found

    def _used(self) -> list[Used]:
        """What the policy reads besides the group and the key."""
        if self._uses_proba():
            what = "decision function" if self.signal.of_values else "probability"
            return [(self.names.score or (), ("whole", "real"), what)]
        if self.names.predicted is None:
            return []
        return [((self.names.predicted,), self._kinds(self.classes, "class"), "prediction")]

    def _kind(self) -> str:
        """What the expression returns."""
        return kind_of(self.decisions)

    # -----------------------------------------------------------------------------------------------------
    # What is decided

    def _rules(self, z: int, never: str, indent: str) -> list[Branch]:
        """Conditions on the signal and decisions, for one group; each is for people whom none before it is about.

        The last condition may be empty; a run of several stretches is an expression of its own.
        """
        if self.signal.drawn:
            return [("", self._soft(z))]
        runs, found = self.signal.runs(self.k), []
        for r, run in enumerate(runs):
            stretches = [
                (self.signal.sql_up_to(last, r, self.k, self), self._drawn(self.policy.q[z, last]))
                for last in self._ends(z, run)
            ]
            if len(runs) == 1:
                return stretches
            found.append((self.signal.sql_run(r, self.k, self), case_of(stretches, never, f"{indent}  ")))
        return found

    def _ends(self, z: int, run: range) -> list[int]:
        """The last signal of every stretch with exactly the same probabilities."""
        q = self.policy.q[z, run.start : run.stop]
        return [*(run.start + np.flatnonzero((q[1:] != q[:-1]).any(axis=1))).tolist(), run.stop - 1]

    def _drawn(self, q: Floats) -> str:
        """The decision of a fixed distribution."""
        possible = np.flatnonzero(q)
        if len(possible) == 1 or not self.policy.randomize:
            return self._value(self.decisions[int(q.argmax())])
        edges = cumulate(q[None])[0]
        return self._lottery([self.number(edge) for edge in edges])

    def _lottery(self, edges: list[str]) -> str:
        u = self.dialect.uniform(self.policy.salt, str(self.names.key))
        lines = [
            f"WHEN {u} < {edge} THEN {self._value(choice)}"
            for edge, choice in zip(edges[:-1], self.decisions, strict=False)
        ]
        return f"CASE {' '.join(lines)} ELSE {self._value(self.decisions[-1])} END"

    def _soft(self, z: int) -> str:
        """A distribution that depends on the person: probabilities of the labels times what follows on each."""
        probabilities = self._soft_probabilities(z)
        if not self.policy.randomize:
            return self._likeliest(probabilities)
        cumulative, edges = probabilities[0], []
        for d in range(len(self.decisions)):
            cumulative = probabilities[0] if d == 0 else f"({cumulative} + {probabilities[d]})"
            after = probabilities[-1]
            for e in range(len(self.decisions) - 2, d - 1, -1):
                after = f"({after} + {probabilities[e]})"
            edges.append(
                f"CASE WHEN {after} - {probabilities[d]} <= 0 THEN {self.number(1.0)} ELSE {cumulative} END"
            )
        open_to_more = " + ".join(f"CASE WHEN {p} > 0 THEN 1 ELSE 0 END" for p in probabilities)
        return f"CASE WHEN {open_to_more} > 1 THEN {self._lottery(edges)} ELSE {self._likeliest(probabilities)} END"

    def _soft_probabilities(self, z: int) -> list[str]:
        """The probability of every decision."""
        shares, q = self.shares, self.policy.q[z]
        probabilities = []
        for d in range(len(self.decisions)):
            terms = [f"{share} * {self.number(q[s, d])}" for s, share in enumerate(shares)]
            probabilities.append(f"({self.number(0.0)} + {' + '.join(terms)})")
        return probabilities

    def _likeliest(self, probabilities: list[str]) -> str:
        most = f"greatest({', '.join(probabilities)})"
        lines = [
            f"WHEN {p} >= {most} THEN {self._said(choice)}" for choice, p in enumerate(probabilities[:-1])
        ]
        return f"CASE {' '.join(lines)} ELSE {self._said(len(self.decisions) - 1)} END"

    def _said(self, choice: int) -> str:
        """What is written where this decision is taken for sure."""
        return self._value(self.decisions[choice])

    def _has_lottery(self) -> bool:
        if self.signal.drawn:
            return True
        q = self.policy.q if self.policy.sees_group else self.policy.q[:1]
        return bool(((q > 0).sum(axis=2) > 1).any())

    # -----------------------------------------------------------------------------------------------------
    # The signal

    def _uses_proba(self) -> bool:
        return self.names.score is not None and (self.signal.needs_proba or self.names.predicted is None)

    @property
    def _columns(self) -> list[str]:
        """One column of probabilities for every class; of the first of two, what the second leaves."""
        score = [self.dialect.as_real(p) for p in self.names.score or ()]
        return [f"({self.number(1.0)} - {score[0]})", *score] if len(score) == 1 else score

    def _total(self) -> str:
        return "(" + " + ".join(self._columns) + ")"

    @property
    def value(self) -> str:
        """The value of a decision function."""
        return self.dialect.as_real((self.names.score or ())[0])

    @property
    def shares(self) -> list[str]:
        """Probabilities that sum to one; one column alone and what it leaves do so already, rounded as they are."""
        if self.names.shares:
            return list(self.names.shares)
        if len(self.names.score or ()) == 1:
            return self._columns
        total = self._total()
        return [f"({p} / {total})" for p in self._columns]

    def labelled(self, s: int) -> str:
        """Condition that the model's label is this class, for people with none before it."""
        if self.names.predicted is not None:
            return self._is(self.names.predicted, self.classes[s])
        return self.top_is(s)

    def top_is(self, k: int) -> str:
        """Condition that the class is the most probable one, for people of whom none before it is; empty: it is."""
        shares = self.shares
        return " AND ".join(f"{shares[k]} >= {share}" for share in shares[k + 1 :])


class _Odds(_Case):
    """The probabilities of one of the decisions instead of the decision."""

    def __init__(self, policy: CellPolicy, dialect: Dialect, names: Names, probabilities_of: int) -> None:
        super().__init__(policy, dialect, names)
        self.probabilities_of = probabilities_of

    def _kind(self) -> str:
        return "real"

    def _drawn(self, q: Floats) -> str:
        return self.number(float(self.policy.rounded(q)[self.probabilities_of]))

    def _soft(self, z: int) -> str:
        probabilities = self._soft_probabilities(z)
        return (
            probabilities[self.probabilities_of] if self.policy.randomize else self._likeliest(probabilities)
        )

    def _said(self, choice: int) -> str:
        return self.number(float(choice == self.probabilities_of))


# ---------------------------------------------------------------------------------------------------------
# A policy of broken lines as one ``CASE`` expression, with the numbers and the draws of Python.
#
# Between two knots the amount is :math:`slope (f - x) + y` of the lower one, operation by operation what
# :func:`felicific._policy.lines.along` computes. A line may have some thousand knots, so that conditions are
# not listed one after the other but nested, each halving what is left: no row is compared more than a dozen
# times. A database that finds a place in a list by itself (PostgreSQL, BigQuery) gets lists.


def amount_expression(policy: AmountPolicy, dialect: Dialect, names: Names) -> str:
    """What people get as one expression."""
    return _AmountExpression(policy, dialect, names).text()


#: Knots from which on a database that finds a place in a list does so: PostgreSQL compiles thousands of conditions for
#: longer than it computes them.
MANY = 32


class _AmountExpression(SqlExpression):
    def __init__(self, policy: AmountPolicy, dialect: Dialect, names: Names) -> None:
        super().__init__(policy, dialect, names.group, names.key)
        self.policy, self.column = policy, str(names.predicted)
        self.prediction = dialect.as_real(self.column)

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
