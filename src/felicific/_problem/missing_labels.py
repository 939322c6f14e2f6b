"""Missing labels: what is known about why some people have no label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

from felicific.exceptions import DataError

#: What to do where labels are missing, and nothing was said.
SAY = (
    "Say what is known: missing_labels='at_random', MissingLabels(label_proba=column), MissingLabels(max_odds_ratio=3) "
    "or 'unknown'; or use loss='changes', which needs no label. Drop the rows only if labels were lost by chance."
)


@dataclass(frozen=True)
class MissingLabels:
    """What is known about why some people have no label.

    Parameters
    ----------
    label_proba : column name, list of column names, classifier, or None
        With which chance each person was to have a label. A column where that is *known*, because a lottery was held
        (``policy.apply(..., with_proba=True)`` writes it; the chances of a list are added up). A classifier estimates
        it. With None a clone of the model does, on its own features, group by group and cross-fitted; where there are
        columns of scores only, score and group are taken to explain it.
    max_odds_ratio : number of 1 or more, default=1
        How much reasons outside the table may have mattered: of two people alike in table and group, one good and one
        bad, the odds of having a label differ at most so many fold. 1: nothing is hidden. ``math.inf``: nothing is
        assumed.
    clip : number, default=0.02
        Estimated chances below this are taken for this.

    Notes
    -----
    ``missing_labels="at_random"`` is short for ``MissingLabels()``, and ``"unknown"`` for
    ``MissingLabels(max_odds_ratio=inf)``. That the table explains who has a label cannot be tested: known
    probabilities, or ``max_odds_ratio``, are for those who doubt it.

    Examples
    --------
    >>> from felicific import MissingLabels, aggregate, solve
    >>> people = {"sex": ["f", "m"] * 60, "score": [0.3, 0.4, 0.6, 0.7] * 30, "label_proba": [0.5, 0.5, 1.0, 1.0] * 30,
    ...           "repaid": [None, 1, 1, 1, 0, None, 0, 1] * 15}
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision",
    ...                  missing_labels=MissingLabels(label_proba="label_proba"))
    >>> policy = solve(sums, gap=0.0, random_state=0)
    >>> round(policy.loss, 6), policy.labels.standing.tolist()
    (0.375, [1.0, 1.0])
    """

    label_proba: Any = None
    max_odds_ratio: float = 1.0
    clip: float = 0.02

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_odds_ratio", check_max_odds_ratio(self.max_odds_ratio))
        if isinstance(self.clip, bool) or not isinstance(self.clip, Real) or not 0.0 < float(self.clip) < 1.0:
            raise DataError(f"clip is {self.clip!r}.", "Give a chance between 0 and 1, such as 0.02.")
        object.__setattr__(self, "clip", float(self.clip))
        if isinstance(self.label_proba, list | tuple):
            if any(isinstance(one, float) for one in self.label_proba):
                raise DataError(
                    "label_proba is a list of numbers, where a list names columns.",
                    "Pass an array, or the name of a column.",
                )
            object.__setattr__(self, "label_proba", tuple(self.label_proba))

    @property
    def columns(self) -> tuple[Any, ...]:
        """Columns of known chances; none where they are estimated."""
        if self.label_proba is None or self.estimates:
            return ()
        return self.label_proba if isinstance(self.label_proba, tuple) else (self.label_proba,)

    @property
    def estimates(self) -> bool:
        """Whether a classifier estimates the chances."""
        return hasattr(self.label_proba, "fit") and hasattr(self.label_proba, "get_params")

    @property
    def source(self) -> str:
        """Where chances come from: "label_proba" that are known, a "model" of the user's, or what is at hand."""
        return "model" if self.estimates else "label_proba" if self.columns else "at_random"


#: What ``missing_labels=`` may say.
MissingLabelsLike: TypeAlias = MissingLabels | Literal["at_random", "unknown"] | None


def resolve_missing_labels(given: Any) -> MissingLabels | None:
    """What a user says of missing labels; None for nothing."""
    if given is None or isinstance(given, MissingLabels):
        return given
    named = {"at_random": MissingLabels(), "unknown": MissingLabels(max_odds_ratio=math.inf)}
    if isinstance(given, str) and given in named:
        return named[given]
    raise DataError(
        f"missing_labels is {given!r}.",
        "Say 'at_random', 'unknown' or MissingLabels(label_proba=..., max_odds_ratio=...).",
    )


def check_max_odds_ratio(max_odds_ratio: Any) -> float:
    """Insist on how many fold hidden reasons may change odds: 1 or more."""
    number = (
        float(max_odds_ratio)
        if isinstance(max_odds_ratio, Real) and not isinstance(max_odds_ratio, bool)
        else math.nan
    )
    if not number >= 1.0:
        raise DataError(
            f"max_odds_ratio is {max_odds_ratio!r}.",
            "Give 1 (nothing is hidden) or more: 3 where hidden reasons may change the odds of a label threefold, "
            "math.inf where nothing is assumed.",
        )
    return number


def condition(max_odds_ratio: float) -> str:
    """What holds where hidden reasons may change odds so many fold, as the end of a sentence."""
    if math.isinf(max_odds_ratio):
        return "whatever the labels of those who have none are"
    return f"if reasons outside the table change the odds of having a label at most {max_odds_ratio:g}-fold"
