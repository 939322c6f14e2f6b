"""A policy: q(decision given signal, group), with what it does to the people it was fitted on."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np

from felicific._documents import (
    check_shape,
    plain,
    read_classes,
    read_document,
    read_number,
    read_numbers,
    read_prices,
    read_values,
    refused,
    write_classes,
    write_document,
)
from felicific._files import write_whole
from felicific._policy.apply import Roles, decide_table
from felicific._policy.lottery import check_keys, draw, keys_as_text, make_salt
from felicific._policy.sql import Names, case_expression
from felicific._problem.happiness import Component, read_component, written
from felicific._problem.requirements import Budget, Floor
from felicific._program.moments import Moments, Outcome
from felicific._program.signals import SIGNALS, Signal, SoftLabel, signal_from_json, signal_to_json
from felicific._program.solution import solve_program
from felicific._program.summing import KEY_BATCH, check_proba, encode_labels
from felicific._tables.dialect import Dialect
from felicific._tables.engine import Engine, dialect_of, find_engine
from felicific._tables.groups import encode_groups
from felicific._tables.memory import as_vector
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import ConstraintError, DataError, GroupError, PolicyFileError


@dataclass(frozen=True, eq=False, kw_only=True)
class Policy(ABC):
    """What is decided about a person, and what that does to the people it was fitted on.

    Attributes
    ----------
    classes : array of shape (K,)
        The decisions.
    groups : tuple
        The groups.
    components : tuple of Component
        What was measured.
    outcome : Outcome
        Loss, group means and gaps on the fitted people.
    prices : dict
        Loss given up per unit by which each gap (by component) or other requirement (by its words) is
        tightened.
    salt : str
        128 bits of the lottery, as hexadecimal text.
    randomize : bool
        False when each person gets the most probable decision instead of a draw.
    see_group : bool
        False when the policy does not need the group to decide.
    expected : bool
        True when the outcome is what is expected of people without labels, not what was measured.
    """

    classes: Array
    groups: tuple[Any, ...]
    components: tuple[Component, ...]
    outcome: Outcome
    prices: dict[str, float]
    salt: str
    randomize: bool = True
    see_group: bool = True
    expected: bool = False

    #: Kinds of policy by the name that files give them.
    kinds: ClassVar[dict[str, type[Policy]]] = {}

    @property
    def needs_proba(self) -> bool:
        """Whether it is applied to probabilities, or else to predicted labels."""
        return True

    @abstractmethod
    def _mixed(self, scores: Array, group: Codes | None, x: Table) -> Floats:
        """Probability of every decision, before any rounding."""

    @abstractmethod
    def rules(self, digits: int = 12) -> list[str]:
        """Sentences that say what is decided about whom, with numbers of so many digits."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """What a file holds of this kind of policy alone."""

    @classmethod
    @abstractmethod
    def _parsed(cls, content: dict[str, Any], common: dict[str, Any], **functions: Any) -> Policy:
        """Read what :meth:`_content` wrote."""

    @property
    def loss(self) -> float:
        """Expected loss per person on the fitted people."""
        return self.outcome.loss

    @property
    def gaps(self) -> dict[str, float]:
        """Gap of every component on the fitted people, in its unit."""
        names = [component.name for component in self.components]
        return dict(zip(names, self.outcome.gaps.tolist(), strict=True))

    @property
    def gap(self) -> float:
        """The gap, when there is one component."""
        if len(self.components) != 1:
            raise ConstraintError(
                f"There are {len(self.components)} components, so there is no single gap.", "Read .gaps."
            )
        return float(self.outcome.gaps[0])

    @property
    def means(self) -> dict[str, dict[Any, float]]:
        """Mean happiness, by component and group."""
        return {
            component.name: dict(zip(self.groups, self.outcome.means[:, j].tolist(), strict=True))
            for j, component in enumerate(self.components)
        }

    # -----------------------------------------------------------------------------------------------------
    # Use

    @overload
    def apply(self, scores: Any, group: Any = None, x: Table = None) -> Floats: ...

    @overload
    def apply(
        self,
        scores: Any,
        group: None = None,
        x: None = None,
        *,
        proba: Any,
        predicted: str | None = ...,
        sensitive_features: Any = ...,
        key: str | None = ...,
        column: str = ...,
    ) -> Any: ...

    @overload
    def apply(
        self,
        scores: Any,
        group: None = None,
        x: None = None,
        *,
        predicted: str,
        sensitive_features: Any = ...,
        key: str | None = ...,
        column: str = ...,
    ) -> Any: ...

    def apply(
        self,
        scores: Any,
        group: Any = None,
        x: Table = None,
        *,
        proba: Any = None,
        predicted: str | None = None,
        sensitive_features: Any = None,
        key: str | None = None,
        column: str = "decision",
    ) -> Any:
        """Probability of every decision for every person; or a table with the decisions as one more column.

        With ``proba=`` or ``predicted=``, the first argument is a table (in memory, lazy, or the path of Parquet
        files) and the keywords name its columns. What returns is the table with the column ``column``; a lazy table
        stays lazy, and draws the same lots as Python, whatever its engine.

        Parameters
        ----------
        scores : array of shape (n, K), or (n,) for a label policy
            The model's probabilities, columns in the order of ``classes``; or its predicted labels. An individual
            policy that does not see the group takes p(label, group), of shape (n, K x groups), label by label.
        group : array of shape (n,)
            The groups; one that was never fitted is an error. Not needed by a policy that does not see them.
        x : table of n rows
            The people; only an individual policy looks at them.
        proba, predicted : {class: column} or list of columns, column
            Where the model's probabilities, or its own decisions, are.
        sensitive_features, key : column(s), column
            Where the groups are, and what identifies a person (strings or integers).
        column : str
            How the column of decisions is called.
        """
        if proba is not None or predicted is not None:
            roles = Roles.of(self, proba, predicted, sensitive_features, key)
            return decide_table(scores, self, roles, column)
        if sensitive_features is not None or key is not None or find_engine(scores) is not None:
            raise DataError(
                "The columns of the table that hold the model's scores are not named.",
                "Name them: policy.apply(table, proba={class: column}, sensitive_features=..., key=...).",
            )
        array = scores.to_numpy() if hasattr(scores, "to_numpy") else np.asarray(scores)
        codes = None
        if self.see_group:
            if group is None:
                raise GroupError("This policy sees the group, and none was given.", "Pass group=.")
            vector = as_vector(group, "group")
            if len(vector) != len(array):
                raise DataError(
                    f"There are {len(vector)} groups for {len(array)} scores.",
                    "Pass one group for every row.",
                )
            codes = encode_groups(vector, self.groups)
        return self.rounded(self._mixed(array, codes, x))

    def rounded(self, decisions: Floats) -> Floats:
        """Decision probabilities as they are, or the most probable decision when the policy draws no lots."""
        if self.randomize:
            return decisions
        return np.asarray(np.eye(len(self.classes))[decisions.argmax(axis=1)])

    def decide(self, scores: Any, group: Any = None, key: Any = None, x: Table = None) -> Array:
        """Decide about every person: the same key always draws the same lot.

        Parameters
        ----------
        scores, group, x : as in :meth:`apply`
        key : array of shape (n,)
            Strings or integers that identify the people.
        """
        if key is None:
            raise DataError("There are no keys.", "Pass key=, one string or integer per person.")
        keys, proba = check_keys(key), self.apply(scores, group, x)
        if len(keys) != len(proba):
            raise DataError(
                f"There are {len(keys)} keys for {len(proba)} people.", "Pass one key per person."
            )
        codes = draw(proba, lambda rows: keys_as_text(keys[rows]), self.salt)
        return np.asarray(self.classes[codes])

    def to_sql(
        self,
        dialect: str = "duckdb",
        *,
        proba: Any = None,
        predicted: str | None = None,
        sensitive_features: Any = None,
        key: str | None = None,
    ) -> str:
        """Write the policy as one SQL ``CASE`` expression that draws the same lots, for DuckDB or Spark.

        ``SELECT *, <the expression> AS decision FROM people``. The arguments name columns as in :meth:`apply`; names
        and values are quoted, whatever they hold. A row about which nothing may be decided (an unknown group,
        impossible probabilities, no key) raises inside the database. Several group columns must be text or whole
        numbers. Only for policies that see a signal.
        """
        write = self.sql_writer()
        if write is None:
            raise DataError(
                "This policy decides by functions of x, which have no SQL.", "Use policy.apply(table, ...)."
            )
        roles = Roles.of(self, proba, predicted, sensitive_features, key)
        spoken = dialect_of(dialect)
        return write(spoken, roles.placed(spoken.quote_name))

    def sql_writer(self) -> Callable[[Dialect, Names], str] | None:
        """How the policy is written as SQL, with columns as they are called there; None where functions of x decide."""
        return None

    def columns_seen(self, engine: Engine, sensitive_features: Any) -> tuple[str, ...] | None:
        """Columns that functions of x look at, besides those of scores and groups.

        None when a function cannot be written as an expression of columns, and must see the library's own rows.
        """
        return ()

    # -----------------------------------------------------------------------------------------------------
    # Words

    def sentences(self, digits: int = 12) -> list[str]:
        """Spell the whole policy out in plain sentences, thresholds with so many digits, and what it achieved."""
        return self.rules(digits) + self._achieved()

    def _achieved(self) -> list[str]:
        whom = (
            "On the people it was recalibrated for, the expected"
            if self.expected
            else "On the people it was fitted on, the"
        )
        found = [f"{whom} loss per person is {written(self.loss, 6)}."]
        for j, component in enumerate(self.components):
            means = ", ".join(
                f"{component.quantity(self.outcome.means[z, j])} in group {group!r}"
                for z, group in enumerate(self.groups)
            )
            # What is left of an exact zero after rounding is zero to a reader.
            negligible = self.outcome.gaps[j] <= 1e-12 * np.abs(self.outcome.means[:, j]).max()
            gap = component.quantity(0.0 if negligible else float(self.outcome.gaps[j]))
            mean = "Expected mean" if self.expected else "Mean"
            found.append(f"{mean} {component.name!r} is {means}: a gap of {gap}.")
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences(digits=4))

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> str:
        """Write the policy as text that :meth:`from_json` reads; it holds no code and no person's data."""
        return write_document(self._everything())

    def _everything(self) -> dict[str, Any]:
        return {
            "classes": write_classes(self.classes),
            "groups": plain(list(self.groups), "group"),
            "components": [asdict(component) for component in self.components],
            "loss": self.outcome.loss,
            "means": self.outcome.means.tolist(),
            "gaps": self.outcome.gaps.tolist(),
            "prices": [[name, price] for name, price in self.prices.items()],
            "salt": self.salt,
            "randomize": self.randomize,
            "see_group": self.see_group,
            "expected": self.expected,
            **self._content(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file, whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, happiness: Any = None, loss: Any = None) -> Policy:
        """Read a policy from a file; see :meth:`from_json`."""
        try:
            text = Path(path).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise refused(f"{os.fspath(path)!r} is not text") from error
        return cls.from_json(text, happiness=happiness, loss=loss)

    @classmethod
    def from_json(cls, text: str, *, happiness: Any = None, loss: Any = None) -> Policy:
        """Read a policy, refusing whatever is not exactly one.

        ``happiness`` and ``loss`` are the Python functions of an individual policy, which a file cannot hold.
        """
        content = read_document(text)
        try:
            kind = cls.kinds[content["policy"]["kind"]]
            policy = kind._parsed(content, _common(content), happiness=happiness, loss=loss)
            policy._validate()
            extra = set(content) - set(policy._everything())
        except PolicyFileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise refused(f"a part is missing or of another type ({error!r})") from error
        if extra:
            raise refused(f"it holds {sorted(extra)}, which no policy has")
        return policy

    def _validate(self) -> None:
        """Refuse a policy whose parts do not fit together."""
        g, k, j = len(self.groups), len(self.classes), len(self.components)
        check_shape("means", self.outcome.means, (g, j))
        check_shape("gaps", self.outcome.gaps, (j,))
        names = [component.name for component in self.components]
        for what, values in (("class", self.classes.tolist()), ("group", self.groups), ("component", names)):
            if len(set(values)) < len(values) or not values:
                raise refused(f"a {what} occurs twice, or there is none")
        if k < 2:
            raise refused("it has fewer than two classes")
        if not isinstance(self.salt, str) or not re.fullmatch("[0-9a-f]{32}", self.salt):
            raise refused("its salt is not 32 hexadecimal digits")
        if not all(isinstance(flag, bool) for flag in (self.randomize, self.see_group, self.expected)):
            raise refused("randomize, see_group or expected is neither true nor false")


@dataclass(frozen=True, eq=False, kw_only=True)
class CellPolicy(Policy):
    """A policy that sees a signal: q(decision given signal, group).

    Attributes
    ----------
    signal : Signal
        What the policy sees besides the group.
    q : array of shape (groups, signals, K)
        Probability of each decision.
    mass : array of shape (groups, signals)
        Weight of the fitted people in each cell.
    """

    signal: Signal
    q: Floats
    mass: Floats

    @property
    def needs_proba(self) -> bool:
        """Whether the signal is made of probabilities."""
        return self.signal.needs_proba

    def _mixed(self, scores: Array, group: Codes | None, x: Table) -> Floats:
        g, size, k = self.q.shape
        table = self.q.reshape(g * size, k)
        rows = np.arange(len(scores))
        labels = scores.ndim == 1 and not self.signal.needs_proba
        coded = encode_labels(scores, self.classes, "prediction", rows) if labels else None
        decisions = np.zeros((len(scores), k))
        for start in range(0, len(scores), KEY_BATCH):  # what stays in the processor's cache is faster
            part = slice(start, start + KEY_BATCH)
            proba = None if labels else check_proba(scores[part], k, rows[part])
            for cell, share in self.signal.spread(proba, None if coded is None else coded[part]):
                place = cell if group is None else group[part] * size + cell
                if share is None:
                    table.take(place, axis=0, out=decisions[part], mode="clip")
                else:
                    decisions[part] += share[:, None] * table.take(place, axis=0)
        return decisions

    def sql_writer(self) -> Callable[[Dialect, Names], str]:
        """One ``CASE`` expression."""
        return partial(case_expression, self)

    def rules(self, digits: int = 12) -> list[str]:
        """One sentence for every group and stretch of signals that is treated alike."""
        classes = self.classes.tolist()
        today = self.signal.today(len(classes))
        found = []
        for z, group in enumerate(self.groups if self.see_group else ["anyone"]):
            mass = self.mass[z] if self.see_group else self.mass.sum(axis=0)
            who = f"In group {group!r}" if self.see_group else "In any group"
            weight = mass.sum()
            for first, last in self._alike(z):
                here = mass[first : last + 1].sum()
                whole = "of the group" if self.see_group else "of all"
                share = f"{here / weight:.1%} {whole}" if weight > 0 else "nobody"
                found.append(
                    f"{who}, {self._person(first, last, digits)} ({share}) "
                    f"{self._treatment(self.q[z, first], today[first : last + 1])}."
                )
        return found

    def _person(self, first: int, last: int, digits: int) -> str:
        if not self.randomize and isinstance(self.signal, SoftLabel):
            label = self.classes.tolist()[first]
            return f"the part of a person's probabilities that is for the label {label!r}"
        return self.signal.describe(first, last, self.classes.tolist(), digits)

    def _alike(self, z: int) -> list[tuple[int, int]]:
        """First and last signal of every stretch that is treated alike."""
        found = []
        for run in self.signal.runs(len(self.classes)):
            if not run:
                continue
            rows = self.q[z, run.start : run.stop]
            changes = np.flatnonzero((np.abs(rows[1:] - rows[:-1]) > 1e-9).any(axis=1)) + 1
            starts = [0, *changes.tolist(), len(run)]
            found += [(run.start + a, run.start + b - 1) for a, b in pairwise(starts)]
        return found

    def _treatment(self, q: Floats, today: Codes) -> str:
        classes = self.classes.tolist()
        if q.max() == 1.0:
            d = int(q.argmax())
            note = ", not as the label says" if (today != d).all() else ""
            return f"is always decided {classes[d]!r}{note}"
        odds = [f"{classes[d]!r} with probability {q[d]:.2%}" for d in np.flatnonzero(q)]
        how = "by lottery" if self.randomize else "rounded to the most probable one"
        return f"is decided {' and '.join(odds)}, {how}"

    def _content(self) -> dict[str, Any]:
        return {"policy": signal_to_json(self.signal), "q": self.q.tolist(), "mass": self.mass.tolist()}

    @classmethod
    def _parsed(cls, content: dict[str, Any], common: dict[str, Any], **functions: Any) -> Policy:
        try:
            signal = signal_from_json(content["policy"])
        except ValueError as error:
            raise refused(str(error)) from error
        return cls(
            signal=signal,
            q=read_numbers(content["q"], "q"),
            mass=read_numbers(content["mass"], "mass"),
            **common,
        )

    def _validate(self) -> None:
        super()._validate()
        g, k = len(self.groups), len(self.classes)
        s = self.signal.size(k)
        check_shape("q", self.q, (g, s, k))
        check_shape("mass", self.mass, (g, s))
        if not (self.q >= 0).all() or not (np.abs(self.q.sum(axis=2) - 1.0) <= 1e-9).all():
            raise refused("some probabilities of q are negative or do not sum to one")
        if (self.mass < 0).any():
            raise refused("some mass is negative")
        self.signal.check(k)
        for chain, decision in self.signal.chains(k):
            if (np.diff(self.q[:, chain.start : chain.stop, decision], axis=1) < -1e-9).any():
                raise refused("a probability falls where the score rises")


Policy.kinds.update(dict.fromkeys(SIGNALS, CellPolicy))


def solve(
    moments: Moments,
    *,
    gap: Any = 0.0,
    constraints: Iterable[Floor | Budget] = (),
    see_group: bool = True,
    random_state: Any = None,
) -> CellPolicy:
    """Find the policy of least loss that meets every requirement: one linear program.

    Parameters
    ----------
    moments : Moments
        The sums over the labelled people; see :func:`felicific.moments`.
    gap : number, or dict of component or criterion to number
        Largest allowed gap, in the unit of happiness. None asks for nothing.
    constraints : sequence of Floor and Budget
        Further requirements.
    see_group : bool
        False for a policy that decides alike in all groups, because the group is not known when it decides.
    random_state : None, int or NumPy generator
        Where the lottery's salt comes from.

    Raises
    ------
    InfeasibleError
        When no policy meets the requirements, with the least reachable gap or the conflict.
    """
    Moments.check(moments)
    moments.check_complete()
    moments = moments.joined()
    solution = solve_program(moments, gap, constraints, see_group=see_group)
    return CellPolicy(
        classes=moments.classes,
        groups=moments.groups,
        signal=moments.signal,
        q=solution.q,
        mass=moments.mass,
        components=moments.components,
        outcome=solution.outcome,
        prices=solution.prices,
        salt=make_salt(random_state),
        see_group=see_group,
    )


def _common(content: dict[str, Any]) -> dict[str, Any]:
    """What every kind of policy has."""
    components = content["components"]
    if not isinstance(components, list):
        raise refused("its components are no list")
    means, gaps = read_numbers(content["means"], "means"), read_numbers(content["gaps"], "gaps")
    return {
        "classes": read_classes(content["classes"]),
        "groups": tuple(read_values(content["groups"], "group")),
        "components": tuple(read_component(component) for component in components),
        "outcome": Outcome(read_number(content["loss"], "loss"), means, gaps),
        "prices": read_prices(content["prices"]),
        "salt": content["salt"],
        "randomize": content["randomize"],
        "see_group": content["see_group"],
        "expected": content["expected"],
    }
