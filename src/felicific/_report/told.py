"""What a report is told besides the people and the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from felicific._audit.names import listed
from felicific._fit.certificate import Certificate
from felicific._fit.worse_off import WorseOffRow
from felicific._statistics.intervals import check_confidence
from felicific.exceptions import DataError


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a report is told besides the people and the policy.

    Attributes
    ----------
    confidence : float
    title, period, date, command, model, grouped_by : str, optional
        What stands on the page as it is given; no clock is looked at.
    names : dict of decision to str, optional
        What decisions are called.
    labels : {"all", "selected"}, optional
        Whose labels these are.
    also : happiness, list or dict of them, optional
        Other measures of the policy that is proposed.
    certificate : Certificate, optional
    chosen : str, optional
        Why a policy of this kind, if nobody asked for one.
    in_sample : str
        How these are known to be people that the policy was fitted to.
    blindness : float, optional
        What it costs that the policy does not see the group, on the fitted people.
    notes : sequence of str
        What to beware of.
    worse_off : sequence of WorseOffRow
        What it costs that fewer people lose, on the people that the policy was fitted on.
    """

    confidence: float = 0.95
    title: str | None = None
    period: str | None = None
    date: str | None = None
    command: str | None = None
    model: str | None = None
    grouped_by: Any = None
    names: Mapping[Any, str] | None = None
    labels: str | None = None
    also: Any = None
    certificate: Certificate | None = None
    chosen: str | None = None
    in_sample: str = ""
    blindness: float | None = None
    notes: Sequence[str] = ()
    worse_off: Sequence[WorseOffRow] = ()

    def check(self, decisions: Sequence[Any]) -> None:
        """Refuse what makes no sense as it was written."""
        check_confidence(self.confidence)
        if self.labels not in (None, "all", "selected"):
            raise DataError(
                f"labels is {self.labels!r}.",
                "Say 'all' if everybody's label is known, 'selected' if only that of people who were selected; or "
                "leave it out.",
            )
        for name in ("title", "period", "date", "command"):
            if not isinstance(getattr(self, name), str | None):
                raise DataError(f"{name} is {getattr(self, name)!r}.", "Give it as text.")
        if self.names is None:
            return
        if not isinstance(self.names, Mapping) or not all(isinstance(v, str) for v in self.names.values()):
            raise DataError(
                f"names= is {self.names!r}.", "Give a dict of every decision to its name, as text."
            )
        for decision in self.names:
            if decision not in decisions:
                raise DataError(
                    f"names= has {decision!r}, and the decisions are {listed(map(repr, decisions))}.",
                    "Name these.",
                )
        for decision in decisions:
            if decision not in self.names:
                raise DataError(f"names= has no name for the decision {decision!r}.", "Name every decision.")
        given = [*self.names.values()]
        twice = next((name for name in given if given.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"Two decisions are called {twice!r}.", "Give each a name of its own.")
