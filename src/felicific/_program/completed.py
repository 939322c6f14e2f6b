"""Completing: from sums over people of whom some have no label to sums over everybody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._problem.happiness import Measure
from felicific._program.cell_sums import ADDED, SUMS, CellSums
from felicific._program.known_labels import EXPLORE, KnownLabels
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
