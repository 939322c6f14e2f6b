"""Label completion: who has a label, what is supposed of the others, and sums over everybody made of both."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._files import check_shape, plain, read_number, read_numbers, read_values, refused
from felicific._problem.happiness import Measure
from felicific._problem.missing_labels import condition
from felicific._program.cell_sums import ADDED, SUMS, CellSums
from felicific._shown.parts import Lines, as_text
from felicific._statistics.labels import fit_curve, fit_label_curve, tilted
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, DataError

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates
    from felicific._program.unlabelled import Unlabelled


#: Sums that no label changes.
LABEL_FREE = ("mass", "baseline_mass")

#: Sums to which what labelled people say of themselves is added, where a function looks at the label and at x.
CORRECTED = ("loss", "value", "among", "baseline_loss", "baseline_value")


@dataclass(frozen=True, eq=False)
class Completed:
    """The sums of labelled and unlabelled people on their way to one."""

    unlabelled: Unlabelled
    labelled: Aggregates
    max_odds_ratio: float

    def aggregates(self) -> Aggregates:
        """All together."""
        un, labelled = self.unlabelled, self.labelled
        origin = _origin([labelled, *un.supposed])
        base, parts = labelled.around(origin), [part.around(origin) for part in un.supposed]
        chances, labels, stand = self._imputed()
        # Where everybody of a group has a label, they stand for nobody.
        stand = stand * (un.supposed[0].mass.sum(axis=1, keepdims=True) > 0)
        sums: dict[str, Any] = {}
        for name in ADDED:
            held = [getattr(part, name) for part in (base, *parts)]
            sums[name] = (
                None if any(part is None for part in held) else held[0] + self._mixed(name, held[1:], chances)
            )
        if un.standing is not None:
            self._correct(sums, chances, stand, origin)
        found = replace(
            base,
            sums=CellSums.of_dense(sums),
            rows=base.rows + parts[0].rows,
            whole=base.whole and parts[0].whole,
            changed=tuple(np.logical_or(base.moves, un.moves).tolist()),
            unlabelled=None,
            labels=labels,
        )
        return found if self.max_odds_ratio == 1.0 else self._bounded(found, base, parts, chances, stand)

    def _mixed(self, name: str, arrays: Sequence[Floats], chances: Floats) -> Floats:
        """What is supposed of the unlabelled: sums over labels, of those that look at them."""
        if name in LABEL_FREE:
            return arrays[0]
        found = np.zeros_like(arrays[0])
        for k, array in enumerate(arrays):
            found += _wide(chances[..., k], array) * array
        if SUMS[name].endswith("j"):
            free = [j for j, measure in enumerate(self.labelled.measures) if not measure.looks_at_y]
            found[..., free] = arrays[0][..., free]
        return found

    def _correct(self, sums: dict[str, Any], chances: Floats, stand: Floats, origin: Floats) -> None:
        """Add what labelled people say of how far off the chances are, to what looks at the label and at x."""
        un = self.unlabelled
        assert un.standing is not None, "something looks at both"
        real, *supposed = (part.around(origin) for part in un.standing.aggregates)
        both = np.array(un.beside_x)
        for name in CORRECTED:
            off = getattr(real, name) - self._mixed(name, [getattr(part, name) for part in supposed], chances)
            off = off * _wide(stand, off)
            if SUMS[name].endswith("j"):
                sums[name] = sums[name] + np.where(both[:-1], off, 0.0)
            elif both[-1]:
                sums[name] = sums[name] + off

    # -----------------------------------------------------------------------------------------------------
    # The chances of labels

    def _imputed(self) -> tuple[Floats, KnownLabels, Floats]:
        """Chances of every label by group and signal, who has one, and how many others they stand for by signal."""
        un, labelled = self.unlabelled, self.labelled
        mass, others = labelled.mass, un.supposed[0].mass
        mean = self._mean_proba(mass + others)
        stand, below = np.ones_like(mass), np.zeros(len(mass))
        if un.label_proba is None:
            label_proba = self._label_proba(mass, others, mean)
            below = ((mass + others) * (label_proba < un.clip)).sum(axis=1) / np.maximum(
                (mass + others).sum(axis=1), 1e-300
            )
            label_proba = np.maximum(label_proba, un.clip)
            stand = (1.0 - label_proba) / label_proba
        else:
            below = un.label_proba[:, 2] / np.maximum((mass + others).sum(axis=1), 1e-300)
        counts, squares = un.seen * stand[:, :, None], (un.squares * stand**2).sum(axis=1)
        total = counts.sum(axis=(1, 2))
        effective = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
        people, missing = (mass + others).sum(axis=1), others.sum(axis=1)
        labels = KnownLabels(
            groups=labelled.groups,
            classes=tuple(un.classes.tolist()),
            source=un.source,
            max_odds_ratio=self.max_odds_ratio,
            clip=un.clip,
            people=people,
            labelled=mass.sum(axis=1),
            standing=np.divide(total, missing, out=np.ones_like(total), where=missing > 0),
            effective=effective,
            below=below,
            evidence=1.0 / (1.0 + np.divide(squares, people, out=np.zeros_like(people), where=people > 0)),
            seen=self._seen_shares(),
            imputed=np.full((len(mass), len(un.classes)), np.nan),
        )
        known = un.label_proba if un.source == "label_proba" else None
        labels.check(self._lowest(mass, mean), known, range(len(labelled.groups)))
        chances = self._chances(counts, others, mean, effective)
        with np.errstate(invalid="ignore", divide="ignore"):
            imputed = np.einsum("zs,zsk->zk", others, chances) / missing[:, None]
        return chances, replace(labels, imputed=imputed), stand

    def _mean_proba(self, mass: Floats) -> Floats | None:
        """Mean probabilities by group and signal, where signals are bins of a score."""
        un = self.unlabelled
        if un.score is None or not self.labelled.signal.ordered:
            return None
        held = mass > 0
        flat = np.full(un.score.shape, 1.0 / un.score.shape[2])
        return np.where(held[:, :, None], un.score / np.where(held, mass, 1.0)[:, :, None], flat)

    def _label_proba(self, mass: Floats, others: Floats, mean: Floats | None) -> Floats:
        """The chance of a label by score and group; without scores, by signal and group."""
        if mean is None:
            whole = mass + others
            return np.divide(mass, whole, out=np.ones_like(mass), where=whole > 0)
        return np.stack(
            [
                fit_label_curve(p, have, have_not).label_proba(p)
                for p, have, have_not in zip(mean, mass, others, strict=True)
            ]
        )

    def _chances(self, counts: Floats, others: Floats, mean: Floats | None, effective: Floats) -> Floats:
        """m_k(z, s): along the score a curve in every group; else what was seen of the signal."""
        if mean is not None:
            return np.stack(
                [
                    fit_curve(p, count, max(float(n), 1.0)).chances(p)
                    if count.any()
                    else np.full(p.shape, 1.0 / p.shape[1])
                    for p, count, n in zip(mean, counts, effective, strict=True)
                ]
            )
        total = counts.sum(axis=2)
        alone = (total <= 0) & (others > 0)
        if alone.any() and not math.isinf(self.max_odds_ratio):
            z, s = np.argwhere(alone)[0].tolist()
            aggregates = self.labelled
            names = [repr(value) for value in aggregates.classes.tolist()]
            who = aggregates.signal.describe_all([(s, s)], names)[0]
            raise DataError(
                f"In the group {aggregates.groups[z]!r} nobody alike has a label for {others[z, s]:,.6g} people "
                f"without one: {who}.",
                EXPLORE,
            )
        found = counts / np.where(total > 0, total, 1.0)[:, :, None]
        return np.asarray(np.where((total > 0)[:, :, None], found, 1.0 / counts.shape[2]))

    def _seen_shares(self) -> Floats:
        """Shares of every label among those who have one."""
        found = self.unlabelled.plain
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _lowest(self, mass: Floats, mean: Floats | None) -> Floats:
        """By group the least score of the last class that somebody with a label has."""
        if mean is None or mean.shape[2] != 2:
            return np.full(len(mass), np.nan)
        return np.asarray(np.where(mass > 0, mean[:, :, -1], np.inf).min(axis=1))

    # -----------------------------------------------------------------------------------------------------
    # What is hidden

    def _bounded(
        self, found: Aggregates, base: Aggregates, parts: list[Aggregates], chances: Floats, stand: Floats
    ) -> Aggregates:
        """With the worst loss of every decision, the best beside it, and both ends of happiness that looks at y."""
        un, both = self.unlabelled, self.unlabelled.beside_x
        self._refuse_unbounded(found.measures)
        rises = un.standing
        standing = [] if rises is None else [part.around(base.origin) for part in rises.aggregates]

        def ends(name: str, j: int | None, sign: float) -> Floats:
            arrays = [getattr(part, name) if j is None else getattr(part, name)[..., j] for part in parts]
            if not both[-1 if j is None else j]:
                return self._extreme(arrays, chances, sign)
            assert rises is not None, "something looks at both"
            named = f"rise_{name}"
            sums = [getattr(part, name) for part in standing]
            sums += [getattr(rises, named), rises.stood[named], rises.stood_good[named]]
            real, first, second, rise, stood, good = (array if j is None else array[..., j] for array in sums)
            left = self._between(arrays, rise, chances, sign)
            # Those with a label also say how far off the chances are: all that rises, then all that falls.
            whole, whole_good = second - first, real - first
            risen = self._off(stood, good, chances, sign > 0)
            fallen = self._off(whole - stood, whole_good - good, chances, sign < 0)
            return left + _wide(stand, left) * (risen + fallen)

        def baseline(name: str, d_name: str, j: int | None, sign: float) -> Floats:
            """Of the baseline's decisions: where all people of a signal are alike, from the decisions' own ends."""
            if both[-1 if j is None else j]:
                return ends(name, j, sign)
            mass, each = parts[0].mass, ends(d_name, j, sign)
            now = parts[0].baseline_mass
            assert now is not None, "sums over people have a baseline"
            return np.asarray((each / np.where(mass > 0, mass, 1.0)[:, :, None] * now).sum(axis=2))

        assert base.baseline_loss is not None, "the baseline is known"
        assert base.baseline_value is not None, "the baseline is known"
        loss: dict[str, Any] = {
            "loss": base.loss + ends("loss", None, 1.0),
            "least_loss": base.loss + ends("loss", None, -1.0),
            "baseline_loss": base.baseline_loss + baseline("baseline_loss", "loss", None, 1.0),
        }
        found = found.with_sums(**loss)
        looking = [j for j, measure in enumerate(found.measures) if measure.looks_at_y]
        for j in looking:
            measure, names = found.measures[j], []
            for sign, word in ((-1.0, "at least"), (1.0, "at most")):
                value = base.value[..., j] + ends("value", j, sign)
                now = base.baseline_value[..., j] + baseline("baseline_value", "value", j, sign)
                names.append(f"{measure.name}, {word}")
                one = replace(measure, name=names[-1], family=names[-1], wanted=False, aside=True)
                found = _with_measure(found, j, one, value, now)
            measures = list(found.measures)
            measures[j] = replace(measure, ends=(names[0], names[1]))
            found = replace(found, measures=tuple(measures))
        return found

    def _refuse_unbounded(self, measures: Sequence[Measure]) -> None:
        for measure in measures:
            if measure.looks_at_y and (measure.by_label or measure.over):
                raise ConstraintError(
                    f"Who is counted by {measure.name!r} depends on the label"
                    f"{' or the decision' if measure.over else ''}, so with max_odds_ratio={self.max_odds_ratio:g} "
                    "its group means are fractions of what is not known.",
                    "Bound them by an audit with MissingLabels(max_odds_ratio=...), or learn the labels by Exploration "
                    "and fit with max_odds_ratio=1 and MissingLabels(label_proba=...).",
                )
        if any(self.unlabelled.beside_x) and len(self.unlabelled.classes) > 2:
            raise DataError(
                f"max_odds_ratio={self.max_odds_ratio:g}, and something looks at the label and at x: of more than two "
                "labels the worst case is not known from sums.",
                "Use max_odds_ratio=1, or a happiness and a loss of the decision and the label alone.",
            )

    def _extreme(self, arrays: Sequence[Floats], chances: Floats, sign: float) -> Floats:
        """The largest sum (or, of sign -1, the least) over chances that hidden reasons may tilt."""
        worth = np.stack(arrays, axis=-1)
        m = chances.reshape(*chances.shape[:2], *(1,) * (worth.ndim - 3), chances.shape[2])
        worst, _ = tilted(np.broadcast_to(m, worth.shape), sign * worth, self.max_odds_ratio)
        return np.asarray((worst * worth).sum(axis=-1))

    def _off(self, stood: Floats, good: Floats, chances: Floats, up: bool) -> Floats:
        r"""By how much the tilted chances of the second of two labels are off, of people who have one.

        The second label is raised (``up``) or the first: with :math:`S = \sum m t` the derivative of the tilted chance
        is :math:`G / S^2`.
        """
        if math.isinf(self.max_odds_ratio):
            return np.zeros_like(stood)  # the worst label, whatever the chances are
        m = chances[..., 1]
        size = self.max_odds_ratio * m + 1.0 - m if up else m + self.max_odds_ratio * (1.0 - m)
        return np.asarray(_wide(self.max_odds_ratio / size**2, stood) * (good - _wide(m, stood) * stood))

    def _between(self, arrays: Sequence[Floats], rise: Floats, chances: Floats, sign: float) -> Floats:
        """The same of two labels where people of a signal differ: the second label raises some, and lowers others."""
        fall = arrays[1] - arrays[0] - rise
        m = chances[..., 1]
        if math.isinf(self.max_odds_ratio):
            more, less = np.ones_like(m), np.zeros_like(m)
        else:
            more, less = (
                self.max_odds_ratio * m / (1.0 + (self.max_odds_ratio - 1.0) * m),
                m / (m + self.max_odds_ratio * (1.0 - m)),
            )
        up, down = (more, less) if sign > 0 else (less, more)
        return np.asarray(arrays[0] + _wide(up, rise) * rise + _wide(down, fall) * fall)


def _with_measure(aggregates: Aggregates, j: int, measure: Measure, value: Floats, now: Floats) -> Aggregates:
    """With one measure more, like that of position ``j`` but for its values."""
    sums: dict[str, Any] = {}
    for name, array in aggregates.known_sums.items():
        if SUMS[name].endswith("j"):
            new = {"value": value, "baseline_value": now}.get(name, array[..., j])
            sums[name] = np.concatenate([array, new[..., None]], axis=-1)
    return replace(
        aggregates,
        measures=(*aggregates.measures, measure),
        origin=np.append(aggregates.origin, aggregates.origin[j]),
        changed=(*aggregates.moves, aggregates.moves[j]),
        sums=CellSums.of_dense({**aggregates.known_sums, **sums}),
    )


def _origin(parts: Sequence[Aggregates]) -> Floats:
    """A typical value of every measure, of the first of some aggregates in which somebody is counted."""
    found = parts[0].origin.copy()
    for j in range(len(found)):
        found[j] = next((part.origin[j] for part in parts if part.counted[:, j].sum() > 0), found[j])
    return found


def _wide(cells: Floats, array: Floats) -> Floats:
    """Numbers of cells, to multiply sums that have more axes."""
    return cells.reshape(*cells.shape, *(1,) * (array.ndim - 2))


# ---------------------------------------------------------------------------------------------------------
# Known labels: who has one, whom they stand for, and what is supposed of the others.


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
