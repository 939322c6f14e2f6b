"""The basis of a policy: what its numbers rest on, and what they are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from felicific._documents import (
    check_means,
    check_shape,
    read_means,
    read_number,
    read_numbers,
    read_prices,
    refused,
    write_means,
)
from felicific._problem.change import every_group_loses, few_counted, nothing_to_repair
from felicific._problem.happiness import Component
from felicific._program.moments import Outcome

#: What is assumed of people without labels.
UNCHANGED = "as if p(label given signal, group) had not changed"

#: What the numbers of a policy are that was fitted on predictions made out of fold.
OUT_OF_FOLD = (
    "These numbers are out of fold: everybody is decided about by a model that was not fitted on them, as new people "
    "will be. On these same rows the final model decides differently."
)


@dataclass(frozen=True, eq=False)
class Basis:
    """What the numbers of a policy rest on.

    Attributes
    ----------
    loss_name : str
        What the loss is called; "error" for the error rate.
    today : Outcome, or None
        What is decided without the policy does to the same people.
    asked : dict of component name to float
        Gaps that were allowed.
    out_of_fold : bool
        Whether each person's probabilities came from a model that was not fitted on that person.
    """

    loss_name: str = ""
    today: Outcome | None = None
    asked: dict[str, float] = field(default_factory=dict)
    out_of_fold: bool = False

    def remarks(
        self, components: Sequence[Component], groups: Sequence[str], outcome: Outcome, whom: str
    ) -> list[str]:
        """What is to be said of the policy beside today's decisions; ``whom`` are the people it was fitted on."""
        if self.today is None:
            return []
        asked = [self.asked.get(component.name, math.inf) for component in components]
        found = nothing_to_repair(components, self.today.gaps, asked, f"{whom}, as is decided today")
        means = self.today.means, outcome.means
        found += few_counted(components, groups, *means, f"{whom}, compared with today")
        return found + every_group_loses(components, groups, *means, f"{whom}, compared with today")

    def to_json(self) -> dict[str, Any]:
        """As data."""
        today = self.today
        return {
            "loss_name": self.loss_name,
            "today": None
            if today is None
            else {"loss": today.loss, "means": write_means(today.means), "gaps": today.gaps.tolist()},
            "asked": [[name, width] for name, width in self.asked.items()],
            "out_of_fold": self.out_of_fold,
        }

    @classmethod
    def from_json(cls, content: Any, shape: tuple[int, ...]) -> Basis:
        """Read what :meth:`to_json` wrote, for means of this shape."""
        if content is None:
            return cls()  # files of 0.1.0 do not say it
        names = {"loss_name", "today", "asked", "out_of_fold"}
        if not isinstance(content, dict) or set(content) != names:
            raise refused("it does not say what its numbers rest on")
        if type(content["loss_name"]) is not str or type(content["out_of_fold"]) is not bool:
            raise refused("the name of its loss, or whether it was fitted out of fold, is of another type")
        today = content["today"]
        if today is not None:
            if not isinstance(today, dict) or set(today) != {"loss", "means", "gaps"}:
                raise refused("what is decided today lacks a part, or has one too many")
            today = Outcome(
                read_number(today["loss"], "loss of today"),
                check_means("means of today", read_means(today["means"], "means of today"), shape),
                check_shape("gaps of today", read_numbers(today["gaps"], "gaps of today"), shape[1:]),
            )
        asked = read_prices(content["asked"], "gap that was asked for")
        if any(not 0.0 <= width < math.inf for width in asked.values()):
            raise refused("a gap that was asked for is negative")
        return cls(content["loss_name"], today, asked, content["out_of_fold"])
