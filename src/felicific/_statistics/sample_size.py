r"""Bounds before any policy is chosen: how many rows make every policy's empirical means close to the true ones.

A group mean is linear in the policy, so its error is largest at a deterministic map from signals to decisions. There
the value of each row lies in a range of width C, and Hoeffding's inequality with a union over maps, groups, measures
and the loss gives, with M maps, G groups and n measures, that all errors are at most :math:`\delta` with
probability :math:`1 - \gamma` from

.. math:: N \ge \frac{C^2}{2 \delta^2} \left[ \log M + \log \frac{2 G (n + 1)}{\gamma} \right]

rows per group on, inside ``among``. There are :math:`M = K^S` maps of S signals to K decisions, but only S + 1 that
rise with a score. Then gaps are off by at most :math:`2 \delta`, and
:math:`L(\epsilon) \le \hat L(\epsilon - 2 \delta) + R \delta / C` at the group mix of the rows, R being the width of
the range of the loss (that of each group is known to :math:`\delta / C` of it, so their mixture is). For a loss in
[0, 1] and a span C of at least 1 that is at most :math:`\delta` more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from felicific._statistics.intervals import check_confidence
from felicific._typing import NumberLike
from felicific.exceptions import DataError


class SampleSize(int):
    """Rows per group, with the figures beside it; a whole number in its own right.

    Attributes
    ----------
    printed : int
        What the formula printed in the paper gives.
    fixed_policy : int
        Rows per group for one policy that was fixed before these rows were seen (an audit): no union over policies.
    fixed_policy_large_sample : int
        The same by the normal approximation, with the largest standard deviation a range allows or the one given.
    margin_of_error : float
        How close so many ``rows`` per group keep all group means; without ``rows``, these rows. Of several measures the
        largest.
    loss_delta : float
        How close the loss is then known, relative to the width of its range: ``delta`` itself for a loss in [0, 1] and
        a span of 1.
    note : str
        Where the printed formula differs, and why.
    """

    printed: int
    fixed_policy: int
    fixed_policy_large_sample: int
    margin_of_error: float
    loss_delta: float
    note: str

    def sentences(self) -> list[str]:
        """All of it in words."""
        return [
            f"{int(self):,} rows per group keep every policy's means as close as asked, whichever is chosen from them.",
            f"{self.fixed_policy:,} rows per group do for one policy fixed beforehand "
            f"({self.fixed_policy_large_sample:,} by the normal approximation).",
            f"The loss is then known to {self.loss_delta:.4g} times the width of its range.",
            self.note,
        ]


def sample_size(
    *,
    delta: NumberLike = 0.02,
    confidence: float = 0.99,
    n_measures: int | None = None,
    n_classes: int = 2,
    n_groups: int = 2,
    span: NumberLike = 1.0,
    signals: int | None = None,
    monotone: bool = False,
    among: NumberLike = 1.0,
    sd: NumberLike | None = None,
    rows: float | None = None,
) -> SampleSize:
    r"""Rows per group that keep all group means of every policy within ``delta`` of the truth.

    Parameters
    ----------
    delta : number, or sequence or dict of numbers by measure
        How far a group's mean may be off, in the measure's unit. A gap is then off by at most twice that.
    confidence : float
        Probability with which all of them are.
    n_measures : int, default=2
        Number of measures; taken from ``delta``, ``span`` or ``among`` where these list them.
    n_classes, n_groups : int
        Number of decisions K and of groups G.
    span : number, or sequence or dict of numbers by measure
        Width C of the range of happiness.
    signals : int, optional
        Number of signals S that the policy sees; by default the labels, S = K.
    monotone : bool, default=False
        Whether the signals are bins of a score along which a decision's probability may not fall. Their cuts must not
        come from the same rows.
    among : number, or sequence or dict of numbers by measure
        Share of a group's rows that are counted by a measure; the figures are rows of the whole group.
    sd : number, or sequence or dict of numbers by measure, optional
        Standard deviation of happiness, for the large-sample figure; by default half the range.
    rows : number, optional
        Rows per group that there are, for ``margin_of_error``.

    Returns
    -------
    SampleSize
        A whole number, with ``printed``, ``fixed_policy``, ``margin_of_error`` and a ``note`` beside it.

    Examples
    --------
    >>> from felicific import sample_size
    >>> sample_size(delta=0.02, confidence=0.99, n_measures=2, n_classes=2, n_groups=2, span=1.0)
    10596
    >>> round(sample_size(rows=2_000, n_measures=2).margin_of_error, 4)
    0.046
    """
    gamma = _failing(confidence)
    names, count = _measures(n_measures, delta=delta, span=span, among=among, sd=sd)
    deltas = _each(delta, "delta", names, count, 0.0, math.inf)
    spans = _each(span, "span", names, count, 0.0, math.inf)
    shares = _each(among, "among", names, count, 0.0, 1.0, top=True)
    spreads = [s / 2.0 for s in spans] if sd is None else _each(sd, "sd", names, count, 0.0, math.inf)
    n_classes, n_groups = _whole(n_classes, "n_classes", 2), _whole(n_groups, "n_groups", 2)
    signals = n_classes if signals is None else _whole(signals, "signals", 1)
    union = math.log(2.0 * n_groups * (count + 1) / gamma)

    def needed_for(log: float, shares: Sequence[float] = shares) -> int:
        needed = [
            c**2 / (2.0 * d**2) * log / share for c, d, share in zip(spans, deltas, shares, strict=True)
        ]
        return math.ceil(max(needed) * (1 - 1e-12))

    log = log_maps(signals, n_classes, monotone=monotone) + union
    found = SampleSize(needed_for(log))
    found.printed = needed_for(math.log(4.0 * (count + 1) * n_classes**2 / gamma), [1.0] * count)
    found.fixed_policy = needed_for(union)
    there = int(found) if rows is None else _within(rows, "rows", 0.0, math.inf)
    found.margin_of_error = max(
        c * math.sqrt(log / (2.0 * there * share)) for c, share in zip(spans, shares, strict=True)
    )
    z = _normal_quantile(1.0 - gamma / (2.0 * n_groups * (count + 1)))
    large = [(z * s / d) ** 2 / share for s, d, share in zip(spreads, deltas, shares, strict=True)]
    found.fixed_policy_large_sample = math.ceil(max(large) * (1 - 1e-12))
    found.loss_delta = min(d / c for d, c in zip(deltas, spans, strict=True))
    same = signals == n_classes and not monotone and n_groups == 2 and min(shares) == 1.0
    found.note = _note(int(found), found.printed, same)
    return found


def log_maps(signals: int, n_classes: int, *, monotone: bool = False) -> float:
    r"""Logarithm of the number of deterministic policies, of which every other is a mixture.

    A policy that may not decide ``classes[1]`` less often as the score rises is a mixture of thresholds: S + 1. With
    more classes the signals are K runs, one per predicted class k; along each, decision k starts at some cell, and
    before it any of the others is taken: :math:`\sum_{t \le S/K} (K-1)^t` maps a run.
    """
    if not monotone:
        return signals * math.log(n_classes)
    if n_classes == 2:
        return math.log(signals + 1)
    cells = math.ceil(signals / n_classes)
    # The logarithm of a geometric sum, without its overflow.
    others = n_classes - 1
    run = cells * math.log(others) + math.log1p((1.0 - others ** -float(cells)) / (others - 1.0))
    return n_classes * run


def log_staircases(signals: int, n_decisions: int) -> float:
    r"""Logarithm of the number of staircases: decisions that never get worse along the signals.

    There are :math:`\binom{S + D - 1}{D - 1}`; of two decisions the S + 1 thresholds of :func:`log_maps`.
    """
    return math.fsum(math.log((signals + i) / i) for i in range(1, n_decisions))


def _note(rows: int, printed: int, same_question: bool) -> str:
    if rows == printed:
        return "The formula printed in the paper gives the same number here."
    note = f"The formula printed in the paper gives {printed:,}"
    if same_question:
        return (
            f"{note}: it lets the errors of single coefficients be delta, and they add up over the signals."
        )
    return f"{note}: it knows two groups, as many signals as classes, and happiness that counts everybody."


# ---------------------------------------------------------------------------------------------------------
# What was written


def _measures(n_measures: int | None, **listed: Any) -> tuple[list[Any] | None, int]:
    """Names (if some argument gives them) and number of the measures."""
    names, count = None, None
    for what, value in listed.items():
        if isinstance(value, Mapping):
            if names is not None and list(value) != names:
                raise DataError(
                    f"{what} speaks of {list(value)}, not of {names}.", "Name the same measures everywhere."
                )
            names = list(value)
        if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
            if count is not None and len(value) != count:
                raise DataError(
                    f"{what} has {len(value)} numbers, not {count}.", "Give one for every measure."
                )
            count = len(value)
    if n_measures is None:
        return names, 2 if count is None else count
    number = _whole(n_measures, "n_measures", 1)
    if count is not None and count != number:
        raise DataError(f"n_measures is {number}, and {count} measures are listed.", "Leave n_measures out.")
    return names, number


def _each(
    value: Any, what: str, names: list[Any] | None, count: int, low: float, high: float, *, top: bool = False
) -> list[float]:
    if isinstance(value, Mapping):
        value = [value[name] for name in names or value]
    elif isinstance(value, str) or not isinstance(value, Sequence):
        value = [value] * count
    if not value:
        raise DataError(f"{what} lists no measure.", "Give at least one number.")
    return [_within(item, what, low, high, top=top) for item in value]


def _within(value: Any, what: str, low: float, high: float, *, top: bool = False) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    inside = low < number < high or (top and number == high)
    if isinstance(value, str | bool) or not inside:
        limits = f"between {low:g} and {high:g}" if math.isfinite(high) else f"above {low:g}"
        raise DataError(f"{what} is {value!r}.", f"Give a number {limits}.")
    return number


def _whole(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
        raise DataError(f"{what} is {value!r}.", f"Give a whole number of at least {least}.")
    return int(value)


def _failing(confidence: float) -> float:
    """One minus the confidence, as it was written: 1 - 0.99 is 0.01."""
    return float(f"{1.0 - check_confidence(confidence):.12g}")


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)
