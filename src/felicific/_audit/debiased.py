r"""Debiased values: what everybody is worth to a mean where some labels are missing.

With :math:`f_{ik}` what somebody would be worth if the label were k, and the debiased weights of labels
:math:`\psi_{ik}` (:func:`felicific._statistics.labels.label_weights`), a mean is that of :math:`\sum_k \psi_{ik}
f_{ik}`. Where the label says who is counted, :math:`a_{ik}`, it is a ratio H of two such means, and everybody's part in
it, linearised, is

.. math:: H + \sum_k \psi_{ik} a_{ik} (f_{ik} - H) / \overline{\psi a}.

Where reasons outside the table may tilt the chances of labels up to G-fold, a mean has two ends, each at its own worst
tilt; of a ratio labels are raised where :math:`f > H`, and H is found again until it stays (Dinkelbach 1967).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from felicific._statistics.labels import label_weights, tilted
from felicific._typing import Codes, Floats, Truths

#: How often a ratio is found again at most, and when it stays.
STEPS, STAYS = 100, 1e-14

#: Less of a group than this is nobody.
NOBODY = 1e-12


@dataclass(frozen=True, eq=False)
class Supposed:
    """What one measure, or the loss, is as if each label were everybody's.

    Attributes
    ----------
    value : array of shape (n, K)
        Relative to the origin; 0 for those who are not counted.
    among : array of shape (n, K), or None
        1 for those who are counted; None where the label does not say who is.
    """

    value: Floats
    among: Floats | None = None

    def take(self, rows: Codes | Truths) -> Supposed:
        """Some of the people."""
        return Supposed(self.value[rows], None if self.among is None else self.among[rows])


@dataclass(frozen=True, eq=False)
class Debiased:
    """People of whom some have no label, and what they would be worth with each.

    Attributes
    ----------
    labels : array of shape (n,)
        Positions of the labels; -1 where there is none.
    chances : array of shape (n, K)
        How likely each label is.
    standing : array of shape (n,)
        How many people without a label each with one stands for.
    max_odds_ratio : float
        How many fold reasons outside the table may change the odds of having a label.
    parts : dict of int to Supposed
        The measures that look at labels, by position; the loss stands behind all measures.
    by_proba : bool
        Whether the chance of having a label is known, and not estimated.
    """

    labels: Codes
    chances: Floats
    standing: Floats
    max_odds_ratio: float
    parts: Mapping[int, Supposed]
    by_proba: bool = False

    def take(self, rows: Codes | Truths) -> Debiased:
        """Some of the people."""
        parts = {j: part.take(rows) for j, part in self.parts.items()}
        kept = self.labels[rows], self.chances[rows], self.standing[rows]
        return Debiased(*kept, self.max_odds_ratio, parts, self.by_proba)

    def changed(self, before: Debiased, shift: Floats) -> Debiased:
        """What is worth more than before; ``shift`` is by how much the origins of the measures are apart."""
        parts = {}
        for j, part in self.parts.items():
            away = shift[j] if j < len(shift) else 0.0
            more = part.value - before.parts[j].value + (away if part.among is None else away * part.among)
            parts[j] = replace(part, value=more)
        return replace(self, parts=parts)

    def column(
        self, j: int, codes: Codes, n_groups: int, weight: Floats, end: float = 0.0
    ) -> tuple[Floats, Truths | None]:
        """Everybody's value, and who is of a group in which somebody is counted; None for all.

        ``end`` is 0 where nothing is hidden, and -1 and 1 at the least and the most that hidden reasons leave open.
        """
        part = self.parts[j]
        if part.among is not None:
            return self._ratio(part.value, part.among, codes, n_groups, weight, end)
        psi = self._weights(end * part.value if end else None)
        return np.asarray((psi * part.value).sum(axis=1)), None

    def _weights(self, worth: Floats | None) -> Floats:
        """The weights of labels, at the chances at which a sum of what these are worth is largest."""
        if worth is None:
            return label_weights(self.labels, self.chances, self.standing)
        worst, t = tilted(self.chances, worth, self.max_odds_ratio)
        tilt = None if math.isinf(self.max_odds_ratio) else t
        return label_weights(self.labels, self.chances, self.standing, tilt, worst)

    def _ratio(
        self, value: Floats, among: Floats, codes: Codes, n_groups: int, weight: Floats, end: float
    ) -> tuple[Floats, Truths | None]:
        mass = np.bincount(codes, weight, minlength=n_groups)
        mass = np.where(mass > 0, mass, 1.0)
        psi, last = self._weights(None), np.full(n_groups, math.inf)
        for _ in range(STEPS):
            total, counted = (psi * value).sum(axis=1), (psi * among).sum(axis=1)
            share = np.bincount(codes, weight * counted, minlength=n_groups) / mass
            held = share > NOBODY
            mean = np.bincount(codes, weight * total, minlength=n_groups) / mass
            mean = np.where(held, mean / np.where(held, share, 1.0), 0.0)
            if not end or (np.abs(mean - last) <= STAYS * (1.0 + np.abs(mean))).all():
                break
            psi, last = self._weights(end * (value - mean[codes][:, None] * among)), mean
        away = (total - mean[codes] * counted) / np.where(held, share, 1.0)[codes]
        inside = held[codes]
        return np.where(inside, mean[codes] + away, 0.0), None if inside.all() else inside
