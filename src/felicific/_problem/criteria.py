"""Criteria: rates that have a name of their own. Each is one row of one table, its words included.

The functions are small frozen objects so that they pickle, and so that a file can hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from felicific.exceptions import HappinessError


@dataclass(frozen=True)
class Selected:
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
class OrBetter:
    """1 when the decision is ``choices[0]`` or a better one; they are listed from there to the best."""

    choices: tuple[Any, ...]
    wanted: ClassVar[bool] = True

    def __call__(self, decision: Any) -> float:
        """One number for everybody."""
        return float(decision in self.choices)


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

    ``decided``: "each" decision, each "or better" but the first, the "favourable" one, any "other" one, the person's
    own "label", any but that ("mistaken"); or who is "truly favourable", or "truly other", whatever is decided.
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
    "distributional_parity": Criterion(
        "or better",
        "everyone",
        "the share of people who get each decision or a better one",
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


class CriterionPart(NamedTuple):
    """One measure of a criterion: what follows its name, the function, and who is counted."""

    suffix: str
    function: Callable[..., Any]
    among: Callable[..., Any] | None


@dataclass(frozen=True)
class Choices:
    """What may be decided on a person and what may be true of one, with the best of each.

    Attributes
    ----------
    decisions, labels : list
        Decisions that are listed come from the worst to the best.
    best : decision
        The favourable decision: the last of those that are listed.
    good : label
        The favourable label.
    listed : bool
        Whether the decisions are listed, and not just the labels.
    """

    decisions: list[Any]
    labels: list[Any]
    best: Any
    good: Any
    listed: bool = False

    @classmethod
    def of(
        cls, decisions: Sequence[Any], favourable: Any = None, labels: Sequence[Any] | None = None
    ) -> Choices:
        """The favourable class is the last one unless said; of listed decisions it is a label."""
        options = list(decisions)
        if labels is None:
            best = resolve_favourable(favourable, options)
            return cls(options, options, best, best)
        truths = list(labels)
        good = resolve_favourable(favourable, truths, "label") if truths else None
        return cls(options, truths, options[-1], good, listed=True)

    @property
    def within_labels(self) -> bool:
        """Whether every decision is a label too."""
        return all(decision in self.labels for decision in self.decisions)


def criterion_parts(name: str, choices: Choices) -> list[CriterionPart]:
    """The measures of a criterion, for these decisions and labels."""
    criterion = CRITERIA[name]
    best, good = choices.best, choices.good
    if criterion.decided in ("label", "mistaken") and not choices.within_labels:
        raise HappinessError(
            f"The criterion {name!r} compares decisions with labels, and not every decision is one: "
            f"{', '.join(map(repr, choices.decisions))} are decided, and "
            f"{', '.join(map(repr, choices.labels)) or 'numbers'} are true.",
            "Say what a right decision is worth, as a happiness of decision and y; or use 'equal_opportunity'.",
        )
    decided: dict[str, list[tuple[str, Callable[..., Any]]]] = {
        "each": [(f"decision={choice!r}", Selected(choice, choice == best)) for choice in choices.decisions],
        "or better": [] if criterion.decided != "or better" else _or_better(name, choices),
        "favourable": [("", Selected(best))],
        "other": [("", Taken(best, same=False))],
        "label": [("", Correct())],
        "mistaken": [("", Correct(wanted=False))],
        "truly favourable": [("", Labelled(good))],
        "truly other": [("", Labelled(good, same=False))],
    }
    among: dict[str, list[tuple[str, Callable[..., Any] | None]]] = {
        "everyone": [("", None)],
        "each label": [(f"label={label!r}", Labelled(label)) for label in choices.labels],
        "favourable": [("", Labelled(good))],
        "other": [("", Labelled(good, same=False))],
        "decided favourable": [("", Taken(best))],
        "decided other": [("", Taken(best, same=False))],
    }
    parts = []
    for who, counted in among[criterion.among]:
        for what, function in decided[criterion.decided]:
            inside = ", ".join(text for text in (what, who) if text)
            parts.append(CriterionPart(f"({inside})" if inside else "", function, counted))
    return parts


def _or_better(name: str, choices: Choices) -> list[tuple[str, Callable[..., Any]]]:
    """Every decision but the worst, with those that are better; of two classes one is better than the other."""
    order = choices.decisions
    if not choices.listed:
        if len(order) > 2:
            raise HappinessError(
                f"The criterion {name!r} needs an order of the decisions, and {order} are classes.",
                "List them from the worst to the best for the person in decisions=; or use 'statistical_parity'.",
            )
        order = [next(one for one in order if one != choices.best), choices.best]
    return [(f"decision={one!r} or better", OrBetter(tuple(order[t:]))) for t, one in enumerate(order) if t]


def resolve_favourable(favourable: Any, decisions: Sequence[Any], what: str = "decision") -> Any:
    """Return the favourable decision: the last one unless said."""
    if favourable is None:
        return decisions[-1]
    if favourable not in decisions:
        raise HappinessError(
            f"The favourable {what} {favourable!r} is not among the classes {list(decisions)}.",
            "Name one of them, or leave `favourable` out.",
        )
    return decisions[list(decisions).index(favourable)]
