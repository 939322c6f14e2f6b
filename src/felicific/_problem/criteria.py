"""Criteria: rates that have a name of their own. Each is one row of one table, its words included.

The functions are small frozen objects so that they pickle, and so that a file can hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from felicific.exceptions import HappinessError


@dataclass(frozen=True)
class Decided:
    """1 when the decision is ``choice``; ``wanted`` when that is the one that people hope for."""

    choice: Any
    wanted: bool = True

    def __call__(self, decision: Any) -> float:
        """One number for everybody."""
        return float(decision == self.choice)


@dataclass(frozen=True)
class Correct:
    """1 when the decision is the label; or when it is not, which nobody hopes for (``wanted``)."""

    wanted: bool = True

    def __call__(self, decision: Any, y: Any) -> Any:
        """True or False per person."""
        return (y == decision) == self.wanted


@dataclass(frozen=True)
class Labelled:
    """Counts the people whose label is ``label`` (``same``), or is not."""

    label: Any
    same: bool = True

    def __call__(self, y: Any) -> Any:
        """True or False per person."""
        return (y == self.label) == self.same


@dataclass(frozen=True)
class Taken:
    """Counts the people about whom ``choice`` is decided (``same``), or something else, which nobody hopes for."""

    choice: Any
    same: bool = True
    wanted: ClassVar[bool] = False

    def __call__(self, decision: Any) -> bool:
        """True or False for everybody."""
        return bool((decision == self.choice) == self.same)


@dataclass(frozen=True)
class Criterion:
    """Which decisions are counted, among whom.

    ``decided``: "each" decision, the "favourable" one, any "other" one, the person's own "label", any but that
    ("mistaken"); or who is "truly favourable", or "truly other", whatever is decided.
    ``among``: "everyone", the people of "each label", of the "favourable" label, of the "other" labels; or those who
    are "decided favourable", or "decided other".
    ``words``: what is measured, for a reader of a report.
    ``also``: other names for it; whichever a user writes is the one that is shown.
    """

    decided: str
    among: str
    words: str
    also: tuple[str, ...] = ()


#: The table: a row is a criterion, its words and its other names included.
ROWS: Mapping[str, Criterion] = {
    "statistical_parity": Criterion(
        "each",
        "everyone",
        "the share of people who get each decision",
        also=("demographic_parity", "selection_rate_parity"),
    ),
    "overall_accuracy": Criterion(
        "label",
        "everyone",
        "the share of people whose decision is their true label",
        also=("accuracy_parity",),
    ),
    "error_rate_parity": Criterion(
        "mistaken", "everyone", "the share of people whose decision is not their true label"
    ),
    "equalized_odds": Criterion(
        "each", "each label", "the share of people with each true label who get each decision"
    ),
    "equal_opportunity": Criterion(
        "favourable",
        "favourable",
        "the share who are decided favourably among those whose true label is the favourable one",
        also=("true_positive_rate_parity",),
    ),
    "false_negative_rate_parity": Criterion(
        "other",
        "favourable",
        "the share who are not decided favourably among those whose true label is the favourable one",
    ),
    "predictive_equality": Criterion(
        "favourable",
        "other",
        "the share who are decided favourably among those whose true label is another one",
        also=("false_positive_rate_parity",),
    ),
    "true_negative_rate_parity": Criterion(
        "other",
        "other",
        "the share who are not decided favourably among those whose true label is another one",
    ),
    "precision_parity": Criterion(
        "truly favourable",
        "decided favourable",
        "the share whose true label is the favourable one among those who are decided favourably",
        also=("predictive_parity",),
    ),
    "negative_predictive_parity": Criterion(
        "truly other",
        "decided other",
        "the share whose true label is another one among those who are not decided favourably",
    ),
}

#: Every criterion by each of its names.
CRITERIA: Mapping[str, Criterion] = {
    name: criterion for own, criterion in ROWS.items() for name in (own, *criterion.also)
}


class Part(NamedTuple):
    """One component of a criterion: what follows its name, the function, and who is counted."""

    suffix: str
    function: Callable[..., Any]
    among: Callable[..., Any] | None


def criterion_parts(
    name: str, decisions: Sequence[Any], labels: Sequence[Any], favourable: Any
) -> list[Part]:
    """The components of a criterion, for these decisions and labels."""
    criterion = CRITERIA[name]
    decided: dict[str, list[tuple[str, Callable[..., Any]]]] = {
        "each": [(f"decision={choice!r}", Decided(choice, choice == favourable)) for choice in decisions],
        "favourable": [("", Decided(favourable))],
        "other": [("", Taken(favourable, same=False))],
        "label": [("", Correct())],
        "mistaken": [("", Correct(wanted=False))],
        "truly favourable": [("", Labelled(favourable))],
        "truly other": [("", Labelled(favourable, same=False))],
    }
    among: dict[str, list[tuple[str, Callable[..., Any] | None]]] = {
        "everyone": [("", None)],
        "each label": [(f"label={label!r}", Labelled(label)) for label in labels],
        "favourable": [("", Labelled(favourable))],
        "other": [("", Labelled(favourable, same=False))],
        "decided favourable": [("", Taken(favourable))],
        "decided other": [("", Taken(favourable, same=False))],
    }
    parts = []
    for who, counted in among[criterion.among]:
        for what, function in decided[criterion.decided]:
            inside = ", ".join(text for text in (what, who) if text)
            parts.append(Part(f"({inside})" if inside else "", function, counted))
    return parts


def resolve_favourable(favourable: Any, decisions: Sequence[Any]) -> Any:
    """Return the favourable decision: the last one unless said."""
    if favourable is None:
        return decisions[-1]
    if favourable not in decisions:
        raise HappinessError(
            f"The favourable decision {favourable!r} is not among the classes {list(decisions)}.",
            "Name one of them, or leave `favourable` out.",
        )
    return decisions[list(decisions).index(favourable)]
