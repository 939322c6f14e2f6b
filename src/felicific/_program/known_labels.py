"""Known labels: who has one, whom they stand for, and what is supposed of the others."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._files import check_shape, plain, read_number, read_numbers, read_values, refused
from felicific._problem.missing_labels import condition
from felicific._shown.parts import Lines, as_text
from felicific._typing import Floats
from felicific.exceptions import DataError

#: Where chances of having a label come from, in words.
SOURCES = {
    "label_proba": "The odds of having one are known",
    "model": "Who has one is taken to depend on nothing but the columns it was learnt from (by group, cross-fitted)",
    "score": "Who has one is taken to depend on nothing but score and group",
    "decision": "Who has one is taken to depend on nothing but decision and group",
}

#: Of estimated chances: below this standing ratio, or with fewer effective labels, nothing can be said; below the
#: second ratio it is doubtful.
LEAST, DOUBTFUL, FEWEST = 0.6, 0.9, 30.0

#: By how many standard deviations the people with a label may differ from what their probabilities say.
SURPRISE = 4.5

#: What to do where nobody alike has a label.
EXPLORE = "Use missing_labels='unknown', or Exploration in the next round and MissingLabels(label_proba=...) after it."

NUMBERS = ("people", "labelled", "standing", "effective", "below", "evidence")


@dataclass(frozen=True, eq=False, repr=False)
class KnownLabels:
    """Who has a label, group by group.

    Attributes
    ----------
    groups, classes : tuple
        The groups, and the labels that there are.
    source : {"label_proba", "model", "score", "decision"}
        Where the chances of having a label come from: known, by a model, or by group and score, or decision, alone.
    max_odds_ratio, clip : float
        As :class:`felicific.MissingLabels` has them.
    people, labelled : array of shape (groups,)
        Weight of all, and of those who have a label.
    standing : array of shape (groups,)
        How much of the people without a label those who have one stand for: 1 where for all of them.
    effective : array of shape (groups,)
        As many equally weighted labels as would tell as much of the people without one.
    below : array of shape (groups,)
        Share of people whose chance of a label is less than ``clip``.
    evidence : array of shape (groups,)
        How much of the evidence of as many labelled people there is.
    seen, imputed : array of shape (groups, labels)
        Shares of the labels among those who have one, and supposed of the others; NaN where there is nobody.
    """

    groups: tuple[Any, ...]
    classes: tuple[Any, ...]
    source: str
    max_odds_ratio: float
    clip: float
    people: Floats
    labelled: Floats
    standing: Floats
    effective: Floats
    below: Floats
    evidence: Floats
    seen: Floats
    imputed: Floats

    @property
    def share(self) -> Floats:
        """Share of every group that has a label."""
        return self.labelled / np.where(self.people > 0, self.people, np.nan)

    @property
    def _some(self) -> list[int]:
        """Positions of the groups in which somebody has no label."""
        return np.flatnonzero(self.labelled < self.people).tolist()

    def to_dict(self) -> dict[Any, dict[str, Any]]:
        """By group: share labelled, source, standing ratio, effective labels, share below ``clip``, mean labels."""
        return {
            group: {
                "labelled": float(self.share[z]),
                "source": self.source,
                "standing_ratio": float(self.standing[z]),
                "effective_labels": float(self.effective[z]),
                "proba_below_clip": float(self.below[z]),
                "seen": dict(zip(self.classes, self.seen[z].tolist(), strict=True)),
                "imputed": dict(zip(self.classes, self.imputed[z].tolist(), strict=True)),
            }
            for z, group in enumerate(self.groups)
        }

    def sentences(self, whom: str = "") -> list[str]:
        """Who has no label, and what that means, in words; ``whom`` says among which people where that is not clear."""
        if not self._some:
            return []
        each = ", ".join(f"{1.0 - self.share[z]:.1%} of group {self.groups[z]!r}" for z in self._some[:6])
        more = f" (and {len(self._some) - 6} more groups)" if len(self._some) > 6 else ""
        last = self.classes[-1]
        found = [
            f"No label{whom}: {each}{more}. {SOURCES[self.source]}; those who do "
            f"stand for {' and '.join(f'{self.standing[z]:.0%}' for z in self._some[:6])} of those who do not, as well "
            f"as {' and '.join(f'{self.effective[z]:,.0f}' for z in self._some[:6])} equal labels would."
        ]
        shares = "; ".join(
            f"in group {self.groups[z]!r} {self.seen[z, -1]:.1%} of those with a label and, as is supposed, "
            f"{self.imputed[z, -1]:.1%} of those without"
            for z in self._some[:6]
        )
        found.append(f"The label is {last!r} for: {shares}{more}.")
        if self.max_odds_ratio > 1:
            found.append(
                f"The loss, and gaps of what looks at the label, are the worst case {self.condition}; means are as if "
                "nothing were hidden."
            )
        return found

    @property
    def condition(self) -> str:
        """What bounds hold under."""
        return condition(self.max_odds_ratio)

    def __repr__(self) -> str:
        known, everybody = (f"{part.sum():,.6g}" for part in (self.labelled, self.people))
        lines = [f"KnownLabels: {known} of {everybody} people have a label", *self.sentences()]
        return as_text([Lines(lines, "to_dict() has all of it.")])

    # -----------------------------------------------------------------------------------------------------
    # Whether it can be relied on

    def check(self, lowest: Floats, label_proba: Floats | None, compared: Collection[int]) -> None:
        """Refuse what cannot be known.

        ``lowest`` is by group the least score of somebody with a label (NaN: there are no scores), ``label_proba`` by
        group the sum of known probabilities, their variance, and last the weight of those without a label whose
        probability is 0; ``compared`` are the positions of the groups that are.
        """
        if label_proba is not None:
            for z in np.flatnonzero(self.people > 0).tolist():
                self._check_label_proba(z, *label_proba[z, :2].tolist())
        for z in self._some:
            if self.labelled[z] <= 0:
                raise DataError(
                    f"Nobody of the group {self.groups[z]!r} has a label.",
                    "Get labels for some of them: Exploration in the next round and MissingLabels(label_proba=...) "
                    "after it; or merge the group with another.",
                )
        for z in self._some if math.isfinite(self.max_odds_ratio) else ():
            group, missing = self.groups[z], float(self.people[z] - self.labelled[z])
            if label_proba is not None and (label_proba[z, -1] > 0 or self.standing[z] <= 0):
                part = 100.0 * label_proba[z, -1] / missing if label_proba[z, -1] > 0 else 100.0
                share = f"{part:.0f}" if part >= 1.0 else f"{part:.2g}"
                why = "the probability is 0" if label_proba[z, -1] > 0 else "nobody was drawn"
                raise DataError(
                    f"For {share} % of the unlabelled of {group!r} {why}: nobody alike has a label.",
                    EXPLORE,
                )
            if self.source != "label_proba" and z in compared:
                self._check_overlap(z, float(lowest[z]))

    def _check_overlap(self, z: int, lowest: float) -> None:
        """Of estimated chances: refuse people of whom nobody alike has a label, or too few have."""
        if self.standing[z] < LEAST:
            below = f" (scores below {lowest:.2g})" if lowest > 0 else ""
            raise DataError(
                f"For {100 * (1.0 - self.standing[z]):.0f} % of the unlabelled of {self.groups[z]!r} nobody alike "
                f"has a label{below}.",
                EXPLORE,
            )
        if self.effective[z] < FEWEST:
            raise DataError(
                f"The labels of the group {self.groups[z]!r} tell as much of those who have none as "
                f"{self.effective[z]:.3g} equal ones would, and {FEWEST:.0f} are the least.",
                f"Merge the group with another, or get more labels. {EXPLORE}",
            )

    def cautions(self) -> list[str]:
        """What to be warned of: the group in which those who have a label stand for the fewest, or tell the least."""
        some = self._some
        worst = min(some, key=lambda z: self.standing[z], default=None)
        found = []
        if worst is not None and self.source != "label_proba" and self.standing[worst] < DOUBTFUL:
            found.append(
                f"Those of the group {self.groups[worst]!r} who have a label stand for "
                f"{100 * self.standing[worst]:.0f} % of those who have none: of the others nobody alike was seen. "
                f"{EXPLORE}"
            )
        few = min(some, key=lambda z: self.effective[z], default=None)
        if few is not None and self.effective[few] < FEWEST:
            found.append(
                f"What is supposed of those of the group {self.groups[few]!r} who have no label rests on as much as "
                f"{self.effective[few]:.3g} equal labels would tell: it may be far off."
            )
        for z in some:
            gone = [
                name for name, share in zip(self.classes, self.seen[z].tolist(), strict=True) if share == 0
            ]
            if gone:
                found.append(
                    f"Nobody of the group {self.groups[z]!r} who has a label has the label {gone[0]!r}, so it is "
                    "supposed of none of the others."
                )
        return found

    def _check_label_proba(self, z: int, expected: float, variance: float) -> None:
        apart = abs(float(self.labelled[z]) - expected)
        if apart > SURPRISE * math.sqrt(variance) + 1e-9 * expected:
            raise DataError(
                f"In the group {self.groups[z]!r} {self.labelled[z]:,.6g} people have a label, and by their "
                f"label_proba {expected:,.6g} would: these are not the probabilities with which labels were seen.",
                "Pass the probabilities that were really drawn with. Were decisions overridden, are labels not yet "
                "due, or offers declined? Multiply by the chance of that, or leave those people out of both.",
            )

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> dict[str, Any]:
        """As data; infinity is text, and what nobody has is None."""
        shares = {
            name: [
                [None if math.isnan(share) else share for share in row]
                for row in getattr(self, name).tolist()
            ]
            for name in ("seen", "imputed")
        }
        return {
            "classes": plain(list(self.classes), "class"),
            "source": self.source,
            "max_odds_ratio": "inf" if math.isinf(self.max_odds_ratio) else self.max_odds_ratio,
            "clip": self.clip,
            **{name: getattr(self, name).tolist() for name in NUMBERS},
            **shares,
        }

    @classmethod
    def from_json(cls, content: Any, groups: tuple[Any, ...]) -> KnownLabels | None:
        """Read what :meth:`to_json` wrote, for some groups."""
        if content is None:
            return None
        names = {"classes", "source", "max_odds_ratio", "clip", "seen", "imputed", *NUMBERS}
        if not isinstance(content, dict) or set(content) != names or content["source"] not in SOURCES:
            raise refused("it does not say who has a label")
        classes, g = tuple(read_values(content["classes"], "class")), len(groups)
        max_odds_ratio = (
            math.inf
            if content["max_odds_ratio"] == "inf"
            else read_number(content["max_odds_ratio"], "max_odds_ratio")
        )
        numbers: dict[str, Any] = {
            name: check_shape(name, read_numbers(content[name], name), (g,)) for name in NUMBERS
        }
        if max_odds_ratio < 1 or any((part < 0).any() for part in numbers.values()):
            raise refused("a number of who has a label is negative, or max_odds_ratio is less than 1")
        for name in ("seen", "imputed"):
            rows = [[math.nan if share is None else share for share in row] for row in content[name]]
            known = np.array(rows, dtype=np.float64)
            numbers[name] = check_shape(name, known, (g, len(classes)))
        clip = read_number(content["clip"], "clip")
        return cls(groups, classes, content["source"], max_odds_ratio, clip, **numbers)
