"""A policy of amounts: for every group a broken line from the prediction to what a person gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from felicific._files import (
    check_distinct,
    plain,
    read_document,
    read_number,
    read_prices,
    read_values,
    refused,
)
from felicific._people.checks import as_amounts
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._policy.apply import SeenColumns, give_amounts
from felicific._policy.basis import read_left_out, write_left_out
from felicific._policy.lines import Line
from felicific._policy.lottery import (
    SaltedPolicy,
    check_keys,
    keys_as_text,
    uniforms,
)
from felicific._policy.numeric_outcome import AmountOutcome
from felicific._policy.sql import amount_expression
from felicific._policy.words import LANES, LETTERS, achieved, headline, impact, rules
from felicific._problem.happiness import Measure, read_measure, written
from felicific._problem.unions import Attribute, LeftOutBy, read_attributes, whom_left_out
from felicific._shown.drawing import curves
from felicific._shown.parts import GROUPS, Displayed, Lines, Part, Picture, extremes, more_groups, short
from felicific._tables.dialect import Dialect, SqlDialect, dialect_of
from felicific._tables.groups import UNDECIDED, encode_groups, without_null
from felicific._tables.memory import as_entries
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import ConstraintError, DataError, GroupError, PolicyFileError


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AmountPolicy(SaltedPolicy, Displayed):
    """What a person gets, and what that does to the people it was fitted on.

    Attributes
    ----------
    groups : tuple
        The groups.
    lines : tuple of Line
        Of every group, the amount at every prediction; one for all where the group is not seen.
    measures : tuple of Measure
        What was measured.
    outcome : AmountOutcome
        Loss, group means, gaps and distance on the fitted people.
    baseline, unconstrained : AmountOutcome
        The same of the baseline's amounts, and of the amounts of least loss without requirements.
    prices : dict
        Loss given up per unit by which each gap or other requirement is tightened.
    asked : dict
        The gaps that were asked for.
    bounds : pair of float
        The least and the largest amount.
    listed : tuple of float, or None
        The only amounts there are, where these were listed.
    loss_name : str
        What is minimised.
    parity : str
        What distributional parity is called, where it is measured.
    salt, randomize :
        Of the lottery among people who are predicted the same; without it, they get the amount in their middle.
    sees_group : bool
        False when the policy does not need the group.
    expected : bool
        True when the outcome is what is expected of people without labels.
    share_randomized : float
        Share of the fitted people whose amount is drawn.
    out_of_fold : bool
        Whether predictions came from models that were not fitted on these people.
    notes : tuple of str
        What whoever fitted it should know, the worst first.
    roles : Roles
        The names of its columns, as far as columns were named: where a table has them, nobody has to name them again.
    """

    groups: tuple[Any, ...]
    lines: tuple[Line, ...]
    measures: tuple[Measure, ...]
    outcome: AmountOutcome
    baseline: AmountOutcome
    unconstrained: AmountOutcome
    prices: dict[str, float]
    asked: dict[str, float]
    bounds: tuple[float, float]
    listed: tuple[float, ...] | None
    loss_name: str
    parity: str
    salt: str = field(repr=False)
    randomize: bool = True
    sees_group: bool = True
    expected: bool = False
    share_randomized: float = 0.0
    out_of_fold: bool = False
    attributes: tuple[Attribute, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it

    kind: ClassVar[str] = "amounts"
    sees_x: ClassVar[bool] = False
    of_amounts: ClassVar[bool] = True
    needs_proba: ClassVar[bool] = False
    of_values: ClassVar[bool] = False
    applied_to: ClassVar[str] = "what the model predicts"
    labels_seen: ClassVar[list[Any]] = []
    kinds: ClassVar[dict[str, type[AmountPolicy]]] = {}
    _whole: ClassVar[str] = "sentences() says all of it."

    # -----------------------------------------------------------------------------------------------------
    # What it does to the fitted people

    @property
    def loss(self) -> float:
        """Mean loss per person on the fitted people."""
        return self.outcome.loss

    @property
    def gaps(self) -> dict[str, float]:
        """Gap of every measure on the fitted people; of distributions, how far they are apart."""
        return self.gaps_in(self.outcome)

    def gaps_in(self, outcome: AmountOutcome) -> dict[str, float]:
        """Gaps of an outcome by name."""
        names = [measure.name for measure in self.measures]
        gaps = dict(zip(names, outcome.gaps.tolist(), strict=True))
        return gaps if outcome.distance is None else {self.parity: outcome.distance.value} | gaps

    @property
    def gap(self) -> float:
        """The gap, when there is one."""
        own = self.gaps
        if len(own) != 1:
            raise ConstraintError(f"There are {len(own)} gaps, so there is no single one.", "Read .gaps.")
        return next(iter(own.values()))

    @property
    def means(self) -> dict[str, dict[Any, float]]:
        """Mean happiness, by measure and group."""
        return {
            measure.name: dict(zip(self.groups, self.outcome.means[:, j].tolist(), strict=True))
            for j, measure in enumerate(self.measures)
        }

    @property
    def outcomes(self) -> dict[str, AmountOutcome]:
        """What is done to the fitted people ``"baseline"``, ``"unconstrained"`` and as ``"proposed"``."""
        return {"baseline": self.baseline, "unconstrained": self.unconstrained, "proposed": self.outcome}

    @property
    def infers_group(self) -> bool:
        """Whether amounts go by how likely a person is of each group."""
        return self.sees_x and not self.sees_group

    @property
    def is_randomized(self) -> bool:
        """Whether anybody draws an amount."""
        return self.randomize and any(line.atoms for line in self.lines)

    # -----------------------------------------------------------------------------------------------------
    # Use

    def amounts(self, prediction: Any, group: Any = None, key: Any = None) -> Floats:
        """What people get, from arrays.

        Parameters
        ----------
        prediction : array of shape (n,)
            What the model predicts.
        group : array of shape (n,)
            The groups; one that was never fitted is an error. Not needed by a policy that does not see them.
        key : array of shape (n,), optional
            Strings or integers that identify people; needed where somebody draws an amount.
        """
        f = as_amounts(prediction, "prediction")
        return self.given(f, self._codes(group, len(f)), None if key is None else check_keys(key))

    def apply(
        self,
        table: Table,
        *,
        predicted: str | None = None,
        sensitive_features: str | Sequence[str] | None = None,
        key: str | None = None,
        column: str = "decision",
    ) -> Any:
        """The table with the amounts as one more column; a lazy table stays lazy.

        Parameters
        ----------
        table : table in memory, lazy table, or path of Parquet files
            A lazy table gets the amounts of Python, and draws the same draws, whatever its engine.
        predicted : column
            What the model predicts.
        sensitive_features, key : column(s), column
            Where the groups are, and what identifies a person (strings or integers), where the lottery draws.
        column : str
            How the column of amounts is called.

        Roles that are not named are those that were named when the policy was fitted.
        """
        named = Roles(sensitive_features, predicted=predicted, key=key)
        return give_amounts(table, self, SeenColumns.of(self, named), column)

    def to_sql(
        self,
        dialect: SqlDialect = "duckdb",
        *,
        predicted: str | None = None,
        sensitive_features: str | Sequence[str] | None = None,
        key: str | None = None,
    ) -> str:
        """Write the policy as one SQL ``CASE`` expression: straight lines between knots, and the same draws.

        ``SELECT *, <the expression> AS decision FROM people``. A row that may get no amount (an unknown or missing
        group, a prediction that is no finite number, no key) raises inside the database, and so does a column of
        another type than Python takes. The text holds the salt of the lottery where the lottery draws.

        Parameters
        ----------
        dialect : {"duckdb", "spark", "databricks", "postgres", "snowflake", "bigquery"}
            The SQL to write.
        predicted, sensitive_features, key : column(s)
            As in :meth:`apply`.
        """
        return self.sql_of(dialect_of(dialect), predicted, sensitive_features, key)

    def sql_of(self, dialect: Dialect, predicted: Any, sensitive_features: Any, key: Any) -> str:
        """The expression, in a dialect that is known."""
        named = Roles(sensitive_features, predicted=predicted, key=key)
        return amount_expression(self, dialect, SeenColumns.of(self, named).placed(dialect.quote_name))

    def check_group_proba(self, given: Any) -> None:
        """No policy that is applied to a table looks at how likely groups are."""

    def probabilities(self, *said: Any, **more: Any) -> NoReturn:
        """Refused: an amount has no probabilities."""
        raise not_among_classes("probabilities(...)")

    def decide(self, *said: Any, **more: Any) -> NoReturn:
        """Refused: :meth:`amounts` says what people get."""
        raise not_among_classes("decide(...)")

    def explain(self, *said: Any, **more: Any) -> NoReturn:
        """Refused: :meth:`rules` say how a prediction becomes an amount."""
        raise not_among_classes("explain(...)")

    def steer(self, *said: Any, **more: Any) -> NoReturn:
        """Refused: amounts are not steered."""
        raise not_among_classes("steer(...)")

    def _codes(self, group: Any, n: int) -> Codes:
        """The line of everybody, by the groups as the user gives them."""
        if not self.sees_group:
            return np.zeros(n, dtype=np.intp)
        if group is None:
            raise GroupError("This policy sees the group, and none was given.", "Pass group=.")
        entries = as_entries(group, "group")
        if len(entries) != n:
            raise DataError(
                f"There are {len(entries)} groups for {n} predictions.", "Pass one for every row."
            )
        return encode_groups(without_null(entries, UNDECIDED), self.groups)

    def given(self, prediction: Floats, codes: Codes, keys: Any = None) -> Floats:
        """Amounts of people who were checked; ``keys`` say whose draw is whose."""
        amounts = np.empty(len(prediction))
        for z, line in enumerate(self.lines):
            rows = np.flatnonzero(codes == z)
            amounts[rows] = line.at(prediction[rows])
            if not (self.randomize and line.atoms):
                continue
            place = line.drawing(prediction[rows])
            for k, atom in enumerate(line.atoms):
                lucky = rows[place == k]
                if len(lucky):
                    amounts[lucky] = atom.drawn(uniforms(self.salt, self._texts(keys, lucky)))
        return amounts

    def given_to(self, people: People, keys: Array | None = None) -> Floats:
        """Amounts of people; where the lottery draws, by their keys, else by the numbers of their rows."""
        return self.given(people.prediction, self.codes_of(people), people.rows if keys is None else keys)

    def codes_of(self, people: People) -> Codes:
        """Which line is whose: that of the group, or the one for all where the group is not seen."""
        return people.codes if self.sees_group else np.zeros(len(people), dtype=np.intp)

    @staticmethod
    def _texts(keys: Any, rows: Codes) -> list[str]:
        """The keys of some people, as draws take them."""
        if keys is None:
            raise DataError(
                "Many people are predicted the very same, and draws say what each of them gets; there are no keys.",
                "Pass key=, one string or integer per person, or fit with randomize=False.",
            )
        return keys(rows) if callable(keys) else keys_as_text(keys[rows])

    def drawing(self, prediction: Floats, codes: Codes) -> Codes:
        """Rows of people whose amount is drawn."""
        if not self.is_randomized:
            return np.empty(0, dtype=np.intp)
        drawn = np.zeros(len(prediction), dtype=bool)
        for z, line in enumerate(self.lines):
            rows = np.flatnonzero(codes == z)
            drawn[rows] = line.drawing(prediction[rows]) >= 0
        return np.flatnonzero(drawn)

    # -----------------------------------------------------------------------------------------------------
    # Words

    def rules(self, digits: int = 12, most: int | None = None) -> list[str]:
        """Sentences that say who gets what; of more groups than the ``most``, in the first of them."""
        return rules(self, digits, most)

    def sentences(self, digits: int = 12) -> list[str]:
        """Spell the policy out in plain sentences, and what it achieved."""
        return [*self.rules(digits), *achieved(self), *whom_left_out(self.left_out), *self.notes]

    def impact(self) -> list[str]:
        """What calibration did and what fairness did, apart, and who gets more or less than from the baseline."""
        return impact(self)

    def cautions(self) -> list[str]:
        """What whoever fitted it should be warned of, the worst first."""
        return list(self.notes)

    def __str__(self) -> str:
        return "\n".join(
            [*(line for part in self._printed_rules() for line in part.lines), *self._achieved(), *self.notes]
        )

    def _printed_rules(self) -> list[Lines]:
        """The rules of some groups, and how many more there are."""
        others = more_groups(self.groups, self._whole) if self.sees_group else []
        return [Lines(self.rules(4, GROUPS), self._whole, listed=True), Lines(others)]

    def _achieved(self) -> list[str]:
        """What it does to the people it was fitted on, of many groups to some."""
        left_out = whom_left_out(self.left_out)
        others = [f"{len(left_out):,} groups are not compared."] * (len(left_out) > GROUPS)
        return [*achieved(self, GROUPS), *left_out[:GROUPS], *others]

    def plot(self, **options: Any) -> Any:
        """The amount for every prediction as an Altair chart; see :func:`felicific.plots.lines`."""
        return import_module("felicific.plots").lines(self, **options)

    def _parts(self) -> list[Part]:
        picture = picture_of_lines(self)
        return [
            Lines([headline(self)], strong=True),
            Lines(self.notes, self._whole),
            *([] if picture is None else [picture]),
            *self._printed_rules(),
            Lines([*self._achieved(), *impact(self, GROUPS)], self._whole),
        ]

    # -----------------------------------------------------------------------------------------------------
    # Files

    def _everything(self) -> dict[str, Any]:
        return {
            "policy": {"kind": self.kind},
            "groups": plain(list(self.groups), "group"),
            "lines": [line.to_json() for line in self.lines],
            "measures": [asdict(measure) for measure in self.measures],
            "outcome": self.outcome.to_json(),
            "baseline": self.baseline.to_json(),
            "unconstrained": self.unconstrained.to_json(),
            "prices": [[name, price] for name, price in self.prices.items()],
            "asked": [[name, width] for name, width in self.asked.items()],
            "bounds": list(self.bounds),
            "decisions": None if self.listed is None else list(self.listed),
            "order": "least first",
            "loss_name": self.loss_name,
            "parity": self.parity,
            "salt": self.salt,
            "randomize": self.randomize,
            "sees_group": self.sees_group,
            "expected": self.expected,
            "share_randomized": self.share_randomized,
            "out_of_fold": self.out_of_fold,
            "roles": self.roles.to_json(),
            "attributes": list(self.attributes),
            "left_out": write_left_out(self.left_out),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, text: str, **functions: Any) -> Self:
        """Read a policy, refusing whatever is not exactly one."""
        return cls.read(read_document(text), **functions)

    @classmethod
    def read(cls, content: dict[str, Any], **functions: Any) -> Self:
        """The policy that a document holds; ``functions`` are those of the user's that a file cannot hold."""
        try:
            if content["policy"] != {"kind": cls.kind}:
                raise refused(f"it is of the kind {content['policy']}, not {cls.kind!r}")
            policy = cls(**cls._parts_of(content, **functions))
            policy._validate()
            extra = set(content) - set(policy._everything())
        except PolicyFileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise refused(f"a part is missing or of another type ({error!r})") from error
        if extra:
            raise refused(f"it holds {sorted(extra)}, which no policy of amounts has")
        return policy

    @classmethod
    def _parts_of(cls, content: dict[str, Any], **functions: Any) -> dict[str, Any]:
        groups = tuple(read_values(content["groups"], "group"))
        measures = tuple(read_measure(measure) for measure in content["measures"])
        shape = (len(groups), len(measures))
        low, high = (read_number(number, "bounds") for number in content["bounds"])
        listed = content["decisions"]
        return {
            "groups": groups,
            "lines": tuple(Line.from_json(line) for line in content["lines"]),
            "measures": measures,
            "outcome": AmountOutcome.from_json(content["outcome"], shape),
            "baseline": AmountOutcome.from_json(content["baseline"], shape),
            "unconstrained": AmountOutcome.from_json(content["unconstrained"], shape),
            "prices": read_prices(content["prices"]),
            "asked": read_prices(content["asked"]),
            "bounds": (low, high),
            "listed": None if listed is None else tuple(read_number(one, "decisions") for one in listed),
            "loss_name": content["loss_name"],
            "parity": content["parity"],
            "salt": content["salt"],
            "randomize": content["randomize"],
            "sees_group": content["sees_group"],
            "expected": content["expected"],
            "share_randomized": read_number(content["share_randomized"], "share_randomized"),
            "out_of_fold": content["out_of_fold"],
            "roles": Roles.from_json(content["roles"]),
            "attributes": read_attributes(content["attributes"]),
            "left_out": read_left_out(
                content["left_out"], groups, [content["parity"], *(one.name for one in measures)]
            ),
            "notes": tuple(content["notes"]),
        }

    def _validate(self) -> None:
        """Refuse a policy whose parts do not fit together."""
        names = [measure.name for measure in self.measures]
        check_distinct(groups=self.groups)
        if len(set(names)) < len(names):
            raise refused("two measures have one name")
        if not self.bounds[0] < self.bounds[1]:
            raise refused("its bounds are none")
        self._check_lines()
        self._check_salt()
        flags = (self.randomize, self.sees_group, self.expected, self.out_of_fold)
        if not all(isinstance(flag, bool) for flag in flags):
            raise refused("randomize, sees_group, expected or out_of_fold is neither true nor false")
        texts: Sequence[Any] = (
            self.loss_name,
            self.parity,
            *self.notes,
        )
        if not all(isinstance(text, str) for text in texts) or math.isnan(self.share_randomized):
            raise refused("a part is of another type")

    def _check_lines(self) -> None:
        """Refuse lines that do not fit groups and bounds."""
        if len(self.lines) != (len(self.groups) if self.sees_group else 1):
            raise refused("it has not one line for every group")
        slack = 1e-9 * (self.bounds[1] - self.bounds[0])
        for line in self.lines:
            ends = line.amount.min(), line.amount.max()
            if ends[0] < self.bounds[0] - slack or ends[1] > self.bounds[1] + slack:
                raise refused("an amount lies beyond its bounds")


def not_among_classes(what: str) -> DataError:
    """What is said where a policy of amounts is given to something that speaks of classes."""
    return DataError(
        f"This policy gives amounts, and {what} takes policies that decide among classes.",
        "Apply it, and audit the column of amounts.",
    )


AmountPolicy.kinds[AmountPolicy.kind] = AmountPolicy


def picture_of_lines(policy: AmountPolicy) -> Picture | None:
    """The amount for every prediction, a line for each group; None where no line has a stretch to draw."""
    if not policy.lines:  # who looks at people themselves has none
        return None
    means = policy.baseline.amounts.tolist()
    shown = sorted(extremes(means, LANES)) if policy.sees_group else [0]
    lines = [tuple(part.tolist() for part in policy.lines[z].typical) for z in shown]
    kept = [(z, xs, ys) for z, (xs, ys) in zip(shown, lines, strict=True) if len(xs) > 1]
    if not kept:
        return None
    names = [short(str(policy.groups[z]), LETTERS) if policy.sees_group else "any group" for z, _, _ in kept]
    some = ""
    if policy.sees_group and len(kept) < len(means):
        some = f", {len(kept)} of {len(means):,} groups, least and largest means by the baseline"
    drawn = curves(
        names,
        [(xs, ys) for _, xs, ys in kept],
        lambda number: written(number, 4),
        "The amount for every prediction, of",
    )
    caption = f"Amount for every prediction{some}; dashed: as predicted"
    return Picture(caption, drawn, len(names) + 10)
