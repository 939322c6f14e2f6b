"""Baseline: what policies are compared with, and what sentences call it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Baseline:
    """What policies are compared with, as a sentence says it.

    Attributes
    ----------
    key : str
        What data call it.
    name, then : str
        "0.3 today, 0.1 then": how things are by the baseline, and by the policy beside it.
    whole : str
        What a policy is measured against.
    """

    key: str
    name: str
    then: str
    whole: str

    @property
    def is_today(self) -> bool:
        """Whether it is what is really decided now."""
        return self is TODAY

    def of(self, what: str) -> str:
        """What belongs to it: "today's gap", "the gap without requirements"."""
        return f"today's {what}" if self.is_today else f"the {what} {self.name}"

    def begins(self, what: str) -> str:
        """The same at the beginning of a sentence."""
        text = self.of(what)
        return text[:1].upper() + text[1:]


TODAY = Baseline("today", "today", "then", "today")

#: Where nobody said what is decided today: the policy of the same kind of which nothing is required.
UNCONSTRAINED = Baseline(
    "without_requirements", "without requirements", "with them", "the least loss without requirements"
)

BASELINES = {one.key: one for one in (TODAY, UNCONSTRAINED)}
