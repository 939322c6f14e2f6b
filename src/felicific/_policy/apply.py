"""Decisions: what a policy decides on every row of a table, as one more column; lazy where the table is lazy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import PROBABILITY_TOLERANCE, as_amounts
from felicific._people.roles import Roles, ordered_columns, ordered_groups, stacked
from felicific._policy.lottery import checked_keys, cumulate, draw, faces_lottery, uniforms
from felicific._policy.sql import SEVERAL, Names, amount_expression
from felicific._program.bins import CHUNK, bins_of_many, bins_of_two, fine_per_class
from felicific._tables.dialect import Dialect, kinds_alike
from felicific._tables.engine import Decisions, Engine, find_engine
from felicific._tables.groups import UNDECIDED, encode_groups, resolve_groups
from felicific._tables.memory import (
    Entries,
    add_column,
    column_names,
    count_rows,
    refuse_missing_columns,
    row_argmax,
    take_column,
)
from felicific._typing import Array, Codes, Floats, ProbaColumns, Table, Truths
from felicific.exceptions import DataError, GroupError

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy
    from felicific._policy.numeric import AmountPolicy
    from felicific._policy.policy import Policy


@dataclass(frozen=True)
class SeenColumns:
    """What the columns of a table are to a policy."""

    score: tuple[str, ...] | None
    predicted: str | None
    group: tuple[str, ...]
    key: str | None
    group_proba: tuple[str, ...] | None = None

    @classmethod
    def of(cls, policy: Policy | AmountPolicy, named: Roles) -> SeenColumns:
        """Check the names, with those that the policy remembers, against what it sees."""
        named = with_remembered(policy, named)
        group = tuple(named.group_names)
        if policy.sees_group and not group:
            raise GroupError("This policy sees the group.", "Name its column in sensitive_features=.")
        policy.check_group_proba(named.group_proba)
        roles = cls(
            None if named.score is None else _ordered(named.score, policy.labels_seen),
            named.predicted,
            group if policy.sees_group else (),
            named.key,
            None if named.group_proba is None else ordered_groups(named.group_proba, policy.groups),
        )
        wrong = [name for name in roles.names if not isinstance(name, str)]
        if wrong:
            raise DataError(
                f"{type(wrong[0]).__name__} {str(wrong[0])[:40]!r} names no column.",
                "Name columns of the table in score=, predicted=, sensitive_features=, key= and group_proba=.",
            )
        if roles.score is None and (policy.needs_proba or roles.predicted is None):
            raise DataError(
                f"The policy sees {policy.applied_to}.", "Name their columns in score= (or predicted=)."
            )
        if policy.of_values:
            refuse_several(roles.score or ())
        return roles

    @property
    def by_argument(self) -> dict[str, tuple[str, ...]]:
        """The columns that have a role, by the argument that names them."""
        return {
            "score=": self.score or (),
            "predicted=": () if self.predicted is None else (self.predicted,),
            "key=": () if self.key is None else (self.key,),
            "sensitive_features=": self.group,
            "group_proba=": self.group_proba or (),
        }

    @property
    def names(self) -> list[str]:
        """All columns that have a role."""
        return [name for named in self.by_argument.values() for name in named]

    def kinds(self, policy: Policy | AmountPolicy) -> dict[str, tuple[str, ...]]:
        """What the columns must hold for SQL to mean the same as Python."""
        groups = kinds_alike(policy.groups) if len(self.group) == 1 else SEVERAL
        if self.predicted is None or policy.needs_proba:
            seen: dict[str, tuple[str, ...]] = dict.fromkeys(self.score or (), ("whole", "real"))
        else:
            numbers = ("whole", "real") if policy.of_amounts else kinds_alike(policy.labels_seen)
            seen = {self.predicted: numbers}
        return seen | dict.fromkeys(self.group, groups)

    def placed(self, place: Callable[[str], str]) -> Names:
        """The columns as SQL text."""
        return Names(
            score=None if self.score is None else tuple(map(place, self.score)),
            predicted=None if self.predicted is None else place(self.predicted),
            group=tuple(map(place, self.group)),
            key=None if self.key is None else place(self.key),
        )


def with_remembered(policy: Policy | AmountPolicy, named: Roles) -> Roles:
    """With the columns that the policy remembers, of what it needs to decide and nobody names now."""
    own, roles = policy.roles, {}
    if named.score is None and (policy.needs_proba or named.predicted is None):
        role = "score" if policy.needs_proba or own.predicted is None else "predicted"
        roles[role] = getattr(own, role)
    if named.group is None and policy.sees_group:
        roles["group"] = own.group
    if named.key is None and policy.is_randomized:
        roles["key"] = own.key
    if named.group_proba is None and policy.infers_group:
        roles["group_proba"] = own.group_proba
    return replace(named, **roles)


def refuse_several(columns: ProbaColumns | Array) -> None:
    """Refuse probabilities of every class where a policy sees the one value of a decision function."""
    if isinstance(columns, Mapping):
        several = len(columns)
    elif isinstance(columns, np.ndarray):
        several = columns.shape[1] if columns.ndim == 2 else 1
    else:  # names of columns; a list of numbers holds a value of everybody
        several = sum(isinstance(name, str) for name in columns) if not isinstance(columns, str) else 1
    if several > 1:
        raise DataError(
            f"The policy sees the decision function, which is one number, and score= has {several} columns.",
            "Name the column that holds what the model's decision_function returns.",
        )


def _ordered(score: Any, classes: list[Any]) -> tuple[str, ...]:
    score = ordered_columns(score, classes)
    if not isinstance(score, list | tuple) or (
        len(score) != len(classes) and (len(score), len(classes)) != (1, 2)
    ):
        raise DataError(
            f"score names {score!r}, and the classes are {classes}.", "Name one column for every class."
        )
    return tuple(score)


@dataclass(frozen=True)
class _PolicyDecisions(Decisions):
    """The decisions of a policy about a table whose columns have these roles."""

    policy: Policy
    roles: SeenColumns

    @property
    def classes(self) -> Array:
        return self.policy.decisions

    @property
    def sees_x(self) -> bool:
        return self.policy.sees_x

    def decide(self, rows: Table) -> Array:
        known = self._looked_up(rows)
        return self.taken(self.probabilities(rows), rows) if known is None else known

    def taken(self, probabilities: Floats, rows: Table) -> Array:
        """The decisions about rows in memory that have these probabilities."""
        policy = self.policy
        if not self._draws:
            return np.asarray(policy.decisions[probabilities.argmax(axis=1)])
        return np.asarray(
            policy.decisions[draw(probabilities, checked_keys(rows, str(self.roles.key)), policy.salt)]
        )

    @property
    def _draws(self) -> bool:
        """Whether keys are looked at; without them nothing is drawn."""
        return self.policy.randomize and self.roles.key is not None

    @cached_property
    def _lookup(self) -> Lookup | None:
        return self.policy.lookup()

    def _looked_up(self, rows: Table) -> Array | None:
        """The decisions by the table of the policy; None where there is none, or a number is wrong."""
        policy, names = self.policy, self.roles.score
        if names is None or count_rows(rows) < LEAST or self._lookup is None:
            return None
        scores = [take_column(rows, name, "score") for name in names]
        if any(column.dtype.kind not in "biuf" for column in scores):
            return None
        group = encode_groups(self._groups(rows), policy.groups) if policy.sees_group else None
        return self._lookup.decide(scores, group, partial(self._numbers, rows))

    def _numbers(self, rows: Table, some: Codes) -> Floats:
        """The draws of some people; everybody's key is checked, also where nobody needs one."""
        keys = checked_keys(rows, str(self.roles.key)) if self._draws else None
        return np.empty(0) if keys is None or not len(some) else uniforms(self.policy.salt, keys(some))

    def probabilities(self, rows: Table) -> Floats:
        """Probability of every decision about rows in memory."""
        policy, roles = self.policy, self.roles
        if policy.needs_proba or roles.predicted is None:
            scores = np.column_stack([take_column(rows, name, "score") for name in roles.score or ()])
        else:
            scores = take_column(rows, roles.predicted, "predicted")
        group = None
        if policy.sees_group:
            group = self._groups(rows)
        chances = None if roles.group_proba is None else stacked(rows, roles.group_proba)
        return policy.probabilities(scores, group, rows, chances)

    def _groups(self, rows: Table) -> Entries:
        """The groups of rows in memory."""
        named = list(self.roles.group)
        return resolve_groups(rows, named, columns_only=True, remedy=UNDECIDED)

    def ahead(self, dialect: Dialect, place: Callable[[str], str]) -> tuple[str, ...]:
        score = [dialect.as_real(place(name)) for name in self.roles.score or ()]
        total = " + ".join(score)
        return tuple(f"{one} / ({total})" for one in score) if len(score) > 2 else ()

    def sql(
        self, engine: Engine, dialect: Dialect, place: Callable[[str], str], ahead: tuple[str, ...] = ()
    ) -> str | None:
        return self.written(engine, dialect, place, ahead)

    def written(
        self,
        engine: Engine,
        dialect: Dialect,
        place: Callable[[str], str],
        ahead: tuple[str, ...],
        probabilities_of: int | None = None,
    ) -> str | None:
        """As an expression: the decision, or the probabilities of one."""
        write = self.policy.sql_writer()
        wanted = self.roles.kinds(self.policy)
        if write is None or not all(engine.kind(name, "the policy") in wanted[name] for name in wanted):
            return None
        return write(dialect, replace(self.roles.placed(place), shares=ahead), probabilities_of)

    def columns(self, engine: Engine) -> tuple[str, ...] | None:
        seen = self.policy.columns_seen(engine, self.roles.group)
        return None if seen is None else (*self.roles.names, *seen)


@dataclass(frozen=True)
class _PolicyOdds(_PolicyDecisions):
    """The chance that everybody had of one of the decisions."""

    position: int

    @property
    def classes(self) -> Array:
        return np.array([0.0, 1.0])  # the column holds numbers

    def decide(self, rows: Table) -> Array:
        return np.ascontiguousarray(self.probabilities(rows)[:, self.position])

    def sql(
        self, engine: Engine, dialect: Dialect, place: Callable[[str], str], ahead: tuple[str, ...] = ()
    ) -> str | None:
        return self.written(engine, dialect, place, ahead, self.position)


@dataclass(frozen=True)
class _Amounts(Decisions):
    """The amounts that a policy gives to a table whose columns have these roles."""

    policy: AmountPolicy
    roles: SeenColumns

    @property
    def classes(self) -> Array:
        return np.array(self.policy.bounds)  # the column holds numbers

    @property
    def sees_x(self) -> bool:
        return False

    def decide(self, rows: Table) -> Array:
        policy, roles = self.policy, self.roles
        prediction = as_amounts(take_column(rows, str(roles.predicted), "prediction"), "prediction")
        group = np.zeros(count_rows(rows), dtype=np.intp)
        if policy.sees_group:
            named = resolve_groups(rows, list(roles.group), columns_only=True, remedy=UNDECIDED)
            group = encode_groups(named, policy.groups)
        keys = checked_keys(rows, str(roles.key)) if policy.is_randomized else None
        return policy.given(prediction, np.asarray(group, dtype=np.intp), keys)

    def sql(
        self, engine: Engine, dialect: Dialect, place: Callable[[str], str], ahead: tuple[str, ...] = ()
    ) -> str | None:
        wanted = self.roles.kinds(self.policy)
        if not all(engine.kind(name, "the policy") in wanted[name] for name in wanted):
            return None
        return amount_expression(self.policy, dialect, self.roles.placed(place))

    def columns(self, engine: Engine) -> tuple[str, ...]:
        return tuple(self.roles.names)


def proba_columns(policy: Policy) -> dict[str, int]:
    """Names of the columns of probabilities, and the decision of each: of two the best one alone."""
    known = policy.decisions.tolist()
    if len(known) == 2:
        return {"proba": policy.best}
    return {f"proba_{choice}": position for position, choice in enumerate(known)}


def refuse_taken(names: Sequence[Any], column: str, remedy: str, *, ignores_case: bool = False) -> None:
    """Refuse a new column whose name is that of another."""
    for name in names:
        if name == column or (ignores_case and str(name).lower() == column.lower()):
            raise DataError(f"The table has a column {name!r} already.", remedy)


def decide_table(
    table: Table, policy: Policy, roles: SeenColumns, column: str, *, with_proba: bool = False
) -> Table:
    """The table with the decisions as one more column, and their probabilities as others; a lazy table stays lazy."""
    engine, names = _checked(table, policy, roles, column)
    ignores_case = engine is not None and engine.ignores_case
    positions = proba_columns(policy) if with_proba else {}
    for name in positions:
        refuse_taken(
            [*names, column], name, "Rename it, or leave with_proba= out.", ignores_case=ignores_case
        )
    decisions = _PolicyDecisions(policy, roles)
    if engine is None and not positions:
        return add_column(table, column, decisions.decide(table))
    if engine is None:
        chances = decisions.probabilities(table)
        table = add_column(table, column, decisions.taken(chances, table))
        for name, position in positions.items():
            table = add_column(table, name, np.ascontiguousarray(chances[:, position]))
        return table
    table = engine.with_decisions(decisions, column)
    for name, position in positions.items():
        more = find_engine(table)
        assert more is not None, "a lazy table stays lazy"
        table = more.with_decisions(_PolicyOdds(policy, roles, position), name)
    return table


def give_amounts(table: Table, policy: AmountPolicy, roles: SeenColumns, column: str) -> Table:
    """The table with the amounts as one more column; a lazy table stays lazy."""
    engine, _ = _checked(table, policy, roles, column)
    amounts = _Amounts(policy, roles)
    return (
        add_column(table, column, amounts.decide(table))
        if engine is None
        else engine.with_decisions(amounts, column)
    )


def _checked(
    table: Table, policy: Policy | AmountPolicy, roles: SeenColumns, column: str
) -> tuple[Engine | None, Sequence[Any]]:
    """Where a table is and the names of its columns, once it has all that the policy sees, and lacks the new one."""
    engine = find_engine(table)
    names = column_names(table) if engine is None else engine.names
    for argument, named in roles.by_argument.items():
        refuse_missing_columns(names, named, argument)
    if policy.is_randomized and roles.key is None:
        raise DataError(
            "The policy decides by lottery, and there is no key.",
            "Name the column that identifies a person in key=.",
        )
    ignores_case = engine is not None and engine.ignores_case
    refuse_taken(names, column, "Choose another name in column=.", ignores_case=ignores_case)
    if engine is not None:
        _check_kinds(engine, roles, of_amounts=policy.of_amounts)
    return engine, names


def _check_kinds(engine: Engine, roles: SeenColumns, *, of_amounts: bool) -> None:
    numbers = {"score": roles.score, "group_proba": roles.group_proba}
    predicted = () if roles.predicted is None or not of_amounts else (roles.predicted,)
    for what, names in (*numbers.items(), ("predicted", predicted)):
        for name in names or ():
            if engine.kind(name, what) not in ("bool", "whole", "real"):
                raise DataError(f"The column {name!r}, needed for {what}, holds no numbers.", "Name another.")
    _check_keys_on(engine, roles.key)


def _check_keys_on(engine: Engine, key: str | None) -> None:
    """Refuse keys of an engine that are neither text nor whole numbers."""
    if key is not None and engine.kind(key, "key") not in ("whole", "text"):
        raise DataError(
            f"The keys in {key!r} are neither strings nor integers.",
            "Floats change their text from one system to the next: use the person's identifier.",
        )


# ---------------------------------------------------------------------------------------------------------
# Decisions by looking up: what is decided in a group at a fine bin of the score is known before anybody
# comes.
#
# A policy that sees a score is a table; nobody's probabilities have to be written down to decide, and only
# those who face a lottery need a draw. The decisions are those of the probabilities, bit by bit; where
# anything is wrong with the numbers there are none, and whoever asked goes the long way, on which the row is
# named.


#: Fewer rows than this are as quick by their probabilities.
LEAST = 4096

NOBODY = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Lookup:
    """What a policy decides, by group and fine bin.

    Attributes
    ----------
    cells : array of shape (bins,)
        The signal of every fine bin.
    likeliest : array of shape (groups * signals,)
        The most probable decision.
    drawn : array of shape (groups * signals,), or None
        Whether draws decide; None where they decide on nobody.
    edges : array of shape (groups * signals, K)
        Where the stretch of each decision ends, for draws.
    classes : array of shape (K,)
        The decisions.
    boundary : float
        The model's own, of two classes.
    """

    cells: Codes
    likeliest: Array
    drawn: Truths | None
    edges: Floats
    decisions: Array
    boundary: float
    n_classes: int

    @classmethod
    def of(cls, policy: CellPolicy) -> Lookup | None:
        """The table of a policy; None of one that does not see a score."""
        k = len(policy.classes)
        cells = policy.signal.of_bins(k)
        if cells is None:
            return None
        decisions = policy.decisions
        q = policy.q.reshape(-1, len(decisions))
        drawn = faces_lottery(q) if policy.is_randomized else None
        line = policy.signal.line(k) or 0.0
        return cls(cells, decisions[row_argmax(q)], drawn, cumulate(q), decisions, line, k)

    def decide(
        self, scores: Sequence[Array], group: Codes | None, draws: Callable[[Codes], Floats]
    ) -> Array | None:
        """The decision about everybody; None where some probabilities are none.

        Parameters
        ----------
        scores : sequence of arrays of shape (n,)
            The probabilities of every class; of two that of the second alone will do.
        group : array of shape (n,), or None
            Positions of the groups.
        draws : callable
            The draws of those people, by their positions, who face a lottery; asked for once, also of nobody.
        """
        k, n, size = self.n_classes, len(scores[0]), int(self.cells[-1]) + 1
        decided, people, places = np.empty(n, dtype=self.decisions.dtype), [NOBODY], [NOBODY]
        for start in range(0, n, CHUNK):
            part = slice(start, start + CHUNK)
            bins = _bins([column[part].astype(np.float64, copy=False) for column in scores], self.boundary, k)
            if bins is None:
                return None
            place = self.cells.take(bins)
            if group is not None:
                place += np.multiply(group[part], size, dtype=np.intp)
            self.likeliest.take(place, out=decided[part], mode="clip")
            if self.drawn is not None:
                some = np.flatnonzero(self.drawn.take(place))
                people.append(some + start)
                places.append(place[some])
        rows, edges = np.concatenate(people), self.edges[np.concatenate(places)]
        decided[rows] = self.decisions[(draws(rows)[:, None] >= edges[:, :-1]).sum(axis=1)]
        return decided


def cells_and_labels(score: Floats, cells: Codes, boundary: float) -> tuple[Codes, Codes] | None:
    """The cell of every row, by that of its fine bin, and the model's label; None where some probabilities are none."""
    k, fine = score.shape[1], fine_per_class(score.shape[1])
    cell, label = np.empty(len(score), dtype=np.intp), np.empty(len(score), dtype=np.intp)
    for start in range(0, len(score), CHUNK):
        part = slice(start, start + CHUNK)
        scores = list(score[part].T)
        bins = _bins(scores, boundary, k)
        if bins is None:
            return None
        cells.take(bins, out=cell[part], mode="clip")
        if k == 2:
            total = scores[0] + scores[1]
            label[part] = scores[1] / total > scores[0] / total
        else:
            np.floor_divide(bins, fine + 1, out=label[part])
    return cell, label


def _bins(scores: list[Floats], boundary: float, k: int) -> Codes | None:
    """The fine bin of every row, by the very operations of checking, dividing by the sum and binning; None if wrong."""
    with np.errstate(invalid="ignore"):
        if len(scores) == 1:
            # What it leaves of one, and it, add up to one exactly: they are divided by 1.
            score = scores[0]
            return bins_of_two(score, boundary) if score.min() >= 0.0 and score.max() <= 1.0 else None
        total = scores[0] + scores[1]
        for column in scores[2:]:
            total += column
        off = max(abs(float(total.min()) - 1.0), abs(float(total.max()) - 1.0))
        if not (off <= PROBABILITY_TOLERANCE and min(float(column.min()) for column in scores) >= 0.0):
            return None
    if k == 2:
        return bins_of_two(scores[1] / total, boundary)
    return bins_of_many(column / total for column in scores)
