"""A policy of amounts that looks at the people themselves: calibrated predictions, moved by what amounts are worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from felicific._files import check_shape, read_numbers, refused
from felicific._people.checks import as_amounts, check_group_proba
from felicific._people.people import People
from felicific._people.user_functions import Batch
from felicific._policy.individual import INFERS
from felicific._policy.numeric import AmountPolicy
from felicific._problem.happiness import (
    Happiness,
    function_from_json,
    function_to_json,
    written,
)
from felicific._problem.numeric import amount_parts
from felicific._program.calibration import Calibration
from felicific._program.squares import AmountWorth, worth_of_people
from felicific._tables.groups import names_at
from felicific._tables.memory import count_rows
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IndividualAmountPolicy(AmountPolicy):
    r"""Amounts by a person's own features; it has no lines.

    With m the calibrated prediction, :math:`\beta_j` what one more unit of the amount is worth to the person and
    :math:`\pi_z` how likely they are of group z (sure, where the group is seen), somebody gets

    .. math:: \mathrm{clip}\Big(m + \sum_{zj} w_{zj} \pi_z \beta_j, \; low, \; high\Big)

    Nobody randomizes.

    Attributes
    ----------
    weights : array of shape (groups, measures)
        The w.
    calibration : Calibration
        What predictions mean, group by group; the same for all where the group is not seen.
    happiness : tuple of Happiness
        The functions that decide.
    """

    weights: Floats = field(repr=False)
    calibration: Calibration
    happiness: tuple[Happiness, ...] = field(repr=False)

    kind: ClassVar[str] = "individual amounts"
    sees_x: ClassVar[bool] = True

    @property
    def looks_at_baseline(self) -> bool:
        """Whether deciding needs to know the baseline's amounts."""
        return any("baseline" in part.asks for part in self.happiness)

    # -----------------------------------------------------------------------------------------------------
    # Use

    def amounts(
        self,
        prediction: Any,
        group: Any = None,
        key: Any = None,
        *,
        x: Table = None,
        group_proba: Any = None,
        baseline: Any = None,
    ) -> Floats:
        """What people get, from arrays.

        Parameters
        ----------
        prediction : array of shape (n,)
            What the model predicts.
        group : array of shape (n,)
            The groups; not needed by a policy that does not see them.
        key :
            Not needed: nobody randomizes.
        x : table
            The people, as happiness looks at them.
        group_proba : array of shape (n, groups)
            How likely everybody is of each group, in the order of ``groups``; for a policy that does not see them.
        baseline : array of shape (n,), optional
            The baseline's amounts, where happiness looks at them; by default the predictions.
        """
        f = as_amounts(prediction, "prediction")
        now = f if baseline is None else as_amounts(baseline, "amount of the baseline")
        if len(now) != len(f):
            raise DataError(
                f"There are {len(now)} baseline amounts for {len(f)} predictions.", "Pass one for each."
            )
        return self.decided(f, self._codes(group, len(f)), x, group_proba, now)

    def decided(
        self,
        prediction: Floats,
        codes: Codes,
        x: Table,
        group_proba: Any = None,
        baseline: Floats | None = None,
    ) -> Floats:
        """Amounts of people who were checked; see :meth:`amounts`."""
        n, rows = len(prediction), np.arange(len(prediction))
        if x is None and any("x" in part.asks for part in self.happiness):
            raise DataError("An individual policy looks at the people themselves.", "Pass x=, their table.")
        if x is not None and count_rows(x) != n:
            raise DataError(f"There are {n} predictions for {count_rows(x)} people.", "Pass one for each.")
        chances = None
        if not self.sees_group:
            if group_proba is None:
                raise DataError(
                    "This policy does not see the group and weighs how likely each is, which was not said.",
                    "Pass group_proba=, one number for everybody and each of the groups.",
                )
            chances = check_group_proba(group_proba, len(self.groups), rows)
        now = prediction if baseline is None else baseline
        batch = Batch(x, None, None, names_at(self.groups, codes), rows, now)
        worth = worth_of_people(self.happiness, batch, self.bounds, self.groups, chances)
        return self.given_worth(self.calibration.of(prediction, codes), codes, worth)

    def given_to(self, people: People, keys: Array | None = None) -> Floats:
        """Amounts of people; nobody draws."""
        return self.decided(
            people.prediction, people.codes, people.x, people.group_proba, people.decided_baseline
        )

    def given_worth(self, calibrated: Floats, codes: Codes, worth: AmountWorth) -> Floats:
        """Amounts of people of whom it is known what one more unit is worth."""
        return np.clip(calibrated + worth.pushed(self.weights, codes), *self.bounds)

    def given(self, prediction: Floats, codes: Codes, keys: Any = None) -> Floats:
        """Refused: predictions alone do not tell what people get."""
        raise DataError(
            "An individual policy looks at the people themselves, not at predictions alone.",
            "Use amounts(prediction, group, x=...).",
        )

    def apply(self, table: Table, **roles: Any) -> Any:
        """Refused: the table alone does not say who is who."""
        raise DataError(
            "An individual policy of amounts looks at the people in memory, and gives no table a column.",
            "Use amounts(prediction, group, x=table), and put them into the table.",
        )

    def sql_of(self, dialect: Any, predicted: Any, sensitive_features: Any, key: Any) -> str:
        """Refused: a happiness is not written as SQL here."""
        raise DataError(
            "An individual policy of amounts is not written as SQL: it asks the happiness what amounts are worth.",
            "Use policy='score', or amounts(prediction, group, x=table).",
        )

    def drawing(self, prediction: Floats, codes: Codes) -> Codes:
        """Nobody randomizes."""
        return np.empty(0, dtype=np.intp)

    # -----------------------------------------------------------------------------------------------------
    # Words

    def rules(self, digits: int = 12, most: int | None = None) -> list[str]:
        """Sentences that say who gets what; of more groups than the ``most``, in the first of them."""
        sentences = [] if self.sees_group else [INFERS]
        low, high = (written(bound, min(digits, 6)) for bound in self.bounds)
        ends = f"at least {low} and at most {high}"
        for z in range(len(self.groups[:most]) if self.sees_group else 1):
            whom = f"In group {self.groups[z]!r}" if self.sees_group else "In any group"
            moved = self._moved(z, min(digits, 6), most) or "as it is"
            sentences.append(
                f"{whom}, a person gets the calibrated prediction ({self._line(z, min(digits, 6))}) {moved}, {ends}."
            )
        return sentences

    def _line(self, z: int, digits: int) -> str:
        """What predictions stand for in a group."""
        x, y = self.calibration.lines[z]
        pairs = [(x[0], y[0]), (x[-1], y[-1])] if len(x) > 1 else [(x[0], y[0])]
        said = " and ".join(
            f"{written(float(f), digits)} stands for {written(float(m), digits)}" for f, m in pairs
        )
        return f"a prediction of {said}"

    def _moved(self, z: int, digits: int, most: int | None) -> str:
        """How far people are moved, in words."""
        parts = []
        for y in [z] if self.sees_group else range(len(self.groups[:most])):
            whose = "" if self.sees_group else f", times how likely the person is of group {self.groups[y]!r}"
            for j, measure in enumerate(self.measures):
                weight = float(self.weights[y, j])
                if weight:
                    sign = "plus" if weight > 0 else "less"
                    parts.append(
                        f"{sign} {written(abs(weight), digits)} times what one more unit adds to their "
                        f"{measure.name!r}{whose}"
                    )
        others = 0 if self.sees_group else len(self.groups) - len(self.groups[:most])
        return ", ".join([*parts, f"and so on for {others:,} more groups"] if others else parts)

    # -----------------------------------------------------------------------------------------------------
    # Files

    def _everything(self) -> dict[str, Any]:
        return super()._everything() | {
            "weights": self.weights.tolist(),
            "calibration": self.calibration.to_json(),
            "functions": [function_to_json(part) for part in self.happiness],
        }

    # A happiness that is a Python function cannot be stored: from_json and load take happiness=, as it was fitted.
    @classmethod
    def _parts_of(cls, content: dict[str, Any], **functions: Any) -> dict[str, Any]:
        parts = super()._parts_of(content)
        given = functions.get("happiness")
        known = {} if given is None else {str(part.name): part for part in amount_parts(given)[0]}
        stored = zip(parts["measures"], content["functions"], strict=True)
        return parts | {
            "weights": read_numbers(content["weights"], "weights"),
            "calibration": Calibration.from_json(content["calibration"]),
            "happiness": tuple(function_from_json(one, text, known) for one, text in stored),
        }

    def _check_lines(self) -> None:
        """Refuse weights that do not fit groups and measures."""
        check_shape("weights", self.weights, (len(self.groups), len(self.measures)))
        if self.lines or len(self.calibration.lines) != len(self.groups):
            raise refused("it has not one calibration for every group, or has lines")


AmountPolicy.kinds[IndividualAmountPolicy.kind] = IndividualAmountPolicy
