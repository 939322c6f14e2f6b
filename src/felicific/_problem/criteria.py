"""Criteria: rates that have a name of their own. Each is one row of one table, its words included.

The functions are small frozen objects so that they pickle, and so that a file can hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from felicific.exceptions import HappinessError


@dataclass(frozen=True)
class Decided:
    """1 when one of these is decided; ``wanted`` when that is what people hope for.

    A group is worse off when there is less of it (``fall_harms``), unless it is counted among people whose label
    speaks against that decision: fewer false positives are no harm to a group.
    """

    decisions: tuple[Any, ...]
    wanted: bool = True
    fall_harms: bool = field(default=True, compare=False)

    def __call__(self, decision: Any) -> bool:
        """One answer for everybody."""
        return decision in self.decisions

    @property
    def text(self) -> str:
        """In words."""
        return f"decided {' or '.join(map(repr, self.decisions))}"


@dataclass(frozen=True)
class Correct:
    """1 when the decision is the label; or when it is not, which nobody hopes for (``wanted``)."""

    wanted: bool = True
    fall_harms: ClassVar[bool] = False

    def __call__(self, decision: Any, y: Any) -> Any:
        """True or False per person."""
        return (y == decision) == self.wanted

    @property
    def text(self) -> str:
        """In words."""
        return f"decided {'as' if self.wanted else 'other than'} the true label"


@dataclass(frozen=True)
class Labelled:
    """Counts the people whose label is ``label`` (``same``), or is not."""

    label: Any
    same: bool = True
    wanted: ClassVar[bool] = False

    def __call__(self, y: Any) -> Any:
        """True or False per person."""
        return (y == self.label) == self.same

    @property
    def text(self) -> str:
        """In words."""
        return f"{'' if self.same else 'not '}labelled {self.label!r}"


@dataclass(frozen=True)
class Criterion:
    """Which decisions are counted, among whom, and how that is called.

    ``name``: its own name.
    ``decided``: "each" decision (of two the best alone), each "or better" but the worst, the "positive" one, any
    "other" one, the person's own "label", any but that ("mistaken"); or who is "truly positive", or "truly other",
    whatever is decided.
    ``among``: "everyone", the people of "each label", of the "positive" label, of the "other" labels; or those who
    are "decided positive", or "decided other".
    ``measures``: what is measured, by name; where decisions are more than two, "each" of them is a measure.
    ``words``: what is measured, for a reader.
    ``also``: other names for it.
    """

    name: str
    decided: str
    among: str
    measures: tuple[str, ...]
    words: str
    also: tuple[str, ...] = ()


#: The table: a row is a criterion, its names, its words and the names of its measures included.
ROWS: tuple[Criterion, ...] = (
    Criterion(
        "statistical_parity",
        "each",
        "everyone",
        ("selection rate",),
        "the share of people who get the best decision; of more than two, each decision",
        also=("demographic_parity", "selection_rate_parity", "selection_rate"),
    ),
    Criterion(
        "distributional_parity",
        "or better",
        "everyone",
        ("selection rate",),
        "the share of people who get each decision or a better one",
    ),
    Criterion(
        "overall_accuracy",
        "label",
        "everyone",
        ("accuracy",),
        "the share of people whose decision is their true label",
        also=("accuracy_parity", "accuracy"),
    ),
    Criterion(
        "error_rate_parity",
        "mistaken",
        "everyone",
        ("error rate",),
        "the share of people whose decision is not their true label",
        also=("error_rate",),
    ),
    Criterion(
        "equalized_odds",
        "each",
        "each label",
        ("true positive rate", "false positive rate"),
        "the share with each true label who get the positive decision; of more than two, each decision",
    ),
    Criterion(
        "equal_opportunity",
        "positive",
        "positive",
        ("true positive rate",),
        "the share who get the positive decision among those whose true label is the positive one",
        also=("true_positive_rate_parity", "true_positive_rate", "tpr"),
    ),
    Criterion(
        "false_negative_rate_parity",
        "other",
        "positive",
        ("false negative rate",),
        "the share who get another decision among those whose true label is the positive one",
        also=("false_negative_rate", "fnr"),
    ),
    Criterion(
        "predictive_equality",
        "positive",
        "other",
        ("false positive rate",),
        "the share who get the positive decision among those whose true label is another one",
        also=("false_positive_rate_parity", "false_positive_rate", "fpr"),
    ),
    Criterion(
        "true_negative_rate_parity",
        "other",
        "other",
        ("true negative rate",),
        "the share who get another decision among those whose true label is another one",
        also=("true_negative_rate", "tnr"),
    ),
    Criterion(
        "precision_parity",
        "truly positive",
        "decided positive",
        ("precision",),
        "the share whose true label is the positive one among those who get the positive decision",
        also=("predictive_parity", "precision", "positive_predictive_value", "ppv"),
    ),
    Criterion(
        "negative_predictive_parity",
        "truly other",
        "decided other",
        ("negative predictive value",),
        "the share whose true label is another one among those who get another decision",
        also=("negative_predictive_value", "npv"),
    ),
)

#: Every criterion by each of its names; the first row by the name of its measure, as that is printed.
CRITERIA: Mapping[str, Criterion] = {
    row.measures[0]: row for row in reversed(ROWS) if len(row.measures) == 1
} | {name: row for row in ROWS for name in (row.name, *row.also)}


class CriterionPart(NamedTuple):
    """One measure of a criterion: its name, the function, and who is counted."""

    name: str
    function: Callable[..., Any]
    among: Callable[..., Any] | None


@dataclass(frozen=True)
class Choices:
    """What may be decided on a person and what may be true of one, with the best of each.

    Attributes
    ----------
    decisions, labels : list
        Decisions that are not the labels come from the worst to the best.
    order : list
        The decisions from the worst to the best for the person.
    listed : bool
        Whether decisions are others than the labels.
    """

    decisions: list[Any]
    labels: list[Any]
    order: list[Any]
    listed: bool = False

    @classmethod
    def of(
        cls, decisions: Sequence[Any], labels: Sequence[Any] | None = None, order: Sequence[Any] = ()
    ) -> Choices:
        """Decisions in their order, or in another one; the labels are the decisions unless they are given."""
        options = list(decisions)
        return cls(
            options, options if labels is None else list(labels), list(order) or options, labels is not None
        )

    @property
    def good(self) -> Any:
        """The positive label: the last, as in scikit-learn."""
        return self.labels[-1] if self.labels else None

    @property
    def best(self) -> Any:
        """The best decision."""
        return self.order[-1]

    @property
    def positive(self) -> Any:
        """The decision that true and false positives speak of: the positive label, or the best of other decisions."""
        return self.best if self.listed else self.good

    def deserves_best(self, counted: Labelled) -> bool:
        """Whether the label of those who are counted speaks for the best decision."""
        return bool(counted.label == (self.good if self.listed else self.best)) == counted.same

    @property
    def within_labels(self) -> bool:
        """Whether every decision is a label too."""
        return all(decision in self.labels for decision in self.decisions)


def criterion_parts(name: str, choices: Choices) -> list[CriterionPart]:
    """The measures of a criterion, for these decisions and labels."""
    row, decisions, labels = CRITERIA[name], choices.decisions, choices.labels
    if row.decided in ("label", "mistaken") and not choices.within_labels:
        raise HappinessError(
            f"The criterion {name!r} compares decisions with labels, and not every decision is one: "
            f"{', '.join(map(repr, decisions))} are decided, and "
            f"{', '.join(map(repr, labels)) or 'numbers'} are true.",
            "Say what a right decision is worth, as a happiness of decision and y; or use 'equal_opportunity'.",
        )
    two = len(decisions) == 2
    if two and len(labels) == 2 and len(row.measures) > 1:
        return [part for measure in row.measures for part in criterion_parts(measure, choices)]
    best, positive, good = choices.best, choices.positive, choices.good
    others = tuple(one for one in decisions if one != positive)
    each: list[tuple[str, Callable[..., Any]]] = [
        (f"share decided {one!r}", Decided((one,), one == best)) for one in choices.order
    ]
    better = [choices.order[t:] for t in range(1, len(decisions))]
    decided: dict[str, list[tuple[str, Callable[..., Any]]]] = {
        "each": each[-1:] if two else each,
        "or better": [(f"share decided {ones[0]!r} or better", Decided(tuple(ones))) for ones in better],
        "positive": [("", Decided((positive,), positive == best))],
        "other": [("", Decided(others, positive != best))],
        "label": [("", Correct())],
        "mistaken": [("", Correct(wanted=False))],
        "truly positive": [("", Labelled(good))],
        "truly other": [("", Labelled(good, same=False))],
    }
    among: dict[str, list[tuple[str, Callable[..., Any] | None]]] = {
        "everyone": [("", None)],
        "each label": [(f" among those labelled {label!r}", Labelled(label)) for label in labels],
        "positive": [("", Labelled(good))],
        "other": [("", Labelled(good, same=False))],
        "decided positive": [("", Decided((positive,)))],
        "decided other": [("", Decided(others))],
    }
    parts = [
        CriterionPart(what + who, _toward(function, counted, choices), counted)
        for who, counted in among[row.among]
        for what, function in decided[row.decided]
    ]
    return [parts[0]._replace(name=row.measures[0])] if len(parts) == 1 else parts


def _toward(function: Any, counted: Any, choices: Choices) -> Any:
    """What counts decisions, knowing whether fewer of them harm those among whom they are counted."""
    if not isinstance(function, Decided) or not isinstance(counted, Labelled):
        return function
    return replace(function, fall_harms=choices.deserves_best(counted))
