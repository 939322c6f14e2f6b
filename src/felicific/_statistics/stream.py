"""A stream of people: rows in the order in which they came, compared block by block, and kept as sums alone.

What a block adds is in ``_statistics/stream.py``, what the sums show in ``_statistics/sequences.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from felicific._statistics.sequences import BETS, BLOCK, BLOCKS, Buckets, Shown, Terms, stacked
from felicific._typing import Codes, Floats, Truths

#: Blocks that are looked at together: what belongs to them stays in the processor's cache.
TOGETHER = 256


class Rows(NamedTuple):
    """Some people in the order in which they came.

    Attributes
    ----------
    codes : array of shape (n,)
        Position of each one's group; -1 of those who are not compared.
    values : array of shape (n, J)
    inside : bool array of shape (n, J)
        Who is counted by each measure.
    """

    codes: Codes
    values: Floats
    inside: Truths

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, first: int, last: int) -> Rows:
        """Those from one on and before another."""
        return Rows(self.codes[first:last], self.values[first:last], self.inside[first:last])

    def then(self, other: Rows) -> Rows:
        """These, and others after them."""
        return Rows(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    def of(self, j: int) -> tuple[Codes, Codes, Floats]:
        """Positions, groups and values of those who are compared by a measure."""
        rows = np.flatnonzero(self.inside[:, j] & (self.codes >= 0))
        return rows, self.codes[rows], self.values[rows, j]

    @classmethod
    def none(cls, measures: int) -> Rows:
        """Nobody."""
        empty = np.zeros((0, measures))
        return cls(np.zeros(0, dtype=np.intp), empty, empty.astype(bool))


@dataclass(frozen=True, eq=False)
class Stream:
    """All that is kept of people who came one after the other.

    Attributes
    ----------
    groups : int
        How many groups are compared.
    scales : tuple of Scale or BurnIn
        Of every measure, or what was seen of it before anything is bet.
    before : array of shape (J, 2, groups)
        Number and sum of the values so far, as they are read, for centres.
    buckets : Buckets
        Periods that are over.
    period : Terms
        The period that is not.
    blocks, held : int
        Its blocks, and their rows.
    open : Rows
        The last rows, fewer than a block.
    rows : int
        How many came, these included.
    """

    groups: int
    scales: tuple[Scale | BurnIn, ...]
    before: Floats
    buckets: Buckets
    period: Terms
    blocks: int
    held: int
    open: Rows
    rows: int

    @classmethod
    def begun(cls, groups: int, bounds: list[tuple[float, float] | None]) -> Stream:
        """Nobody came yet."""
        j, p = len(bounds), groups * (groups - 1) // 2
        scales = tuple(BurnIn.begun(groups) if one is None else Scale.between(*one) for one in bounds)
        nothing = Terms.none((j, p))
        none = Rows.none(j)
        return cls(groups, scales, np.zeros((j, 2, groups)), Buckets.none((j, p)), nothing, 0, 0, none, 0)

    def add(self, rows: Rows, gaps: Floats, line: float) -> tuple[Stream, Stream | None]:
        """The stream with more rows; and as it was when the evidence of more than these gaps reached e to the ``line``.

        It is looked at after every block, so that it does not matter how many rows come at a time; None if never.
        """
        rows = self.open.then(rows)
        stream, crossed, first = self, None, 0
        while first + BLOCK <= len(rows):
            together = 1 if stream.burning else min(TOGETHER, (len(rows) - first) // BLOCK)
            part = rows.part(first, first + together * BLOCK)
            stream, seen = stream._with_blocks(part, together, gaps, line if crossed is None else math.inf)
            crossed = seen if crossed is None else crossed
            first += together * BLOCK
        rest = rows.part(first, len(rows))
        return replace(stream, open=rest, rows=self.rows + len(rows) - len(self.open)), crossed

    @property
    def burning(self) -> list[int]:
        """Measures on which nothing is bet yet."""
        return [j for j, scale in enumerate(self.scales) if isinstance(scale, BurnIn)]

    def closed(self) -> Stream:
        """The same with its last rows as a block, and its last blocks as a period."""
        stream = self
        if len(self.open):
            stream, _ = self._with_blocks(self.open, 1, np.zeros(len(self.scales)), math.inf)
            stream = replace(stream, open=Rows.none(len(self.scales)))
        if not stream.blocks:
            return stream
        return stream._ended(stream.period, stream.held)

    def plus(self, other: Stream) -> Stream:
        """People of both, who are different people: period by period, from those starts on that both have kept."""
        one, two = self.closed(), other.closed()
        scales = [
            a.plus(b) if isinstance(a, BurnIn) and isinstance(b, BurnIn) else a
            for a, b in zip(one.scales, two.scales, strict=True)
        ]
        stream = replace(
            one,
            scales=tuple(scales),
            before=one.before + two.before,
            buckets=one.buckets.plus(two.buckets),
            rows=self.rows + other.rows,
        )
        return stream._scaled()

    def _with_blocks(
        self, rows: Rows, blocks: int, gaps: Floats, line: float
    ) -> tuple[Stream, Stream | None]:
        """With some blocks, the last of which may be shorter; and as it was when the evidence reached the line."""
        terms, before, scales = Terms.none((blocks, *self.period.c.shape)), self.before.copy(), [*self.scales]
        for j, scale in enumerate(self.scales):
            places, codes, values = rows.of(j)
            if isinstance(scale, BurnIn):
                scales[j] = scale.add(codes, values)
                continue
            place, read = places // BLOCK * self.groups + codes, scale.read(values)
            sums = tally(place, read, blocks, self.groups)
            centre, before[j] = centres(sums, self.before[j], bounded=scale.bounded)
            for whole, part in zip(terms, block_terms(place, read, sums, centre, scale), strict=True):
                whole[:, j] = part
        stream, crossed = self, None
        first, bets_on = 0, len(self.burning) < len(self.scales)
        while first < blocks:
            last = min(first + BLOCKS - stream.blocks, blocks)
            along = stacked([Terms(*(part[None] for part in stream.period)), terms.at(slice(first, last))])
            along = along.along().at(slice(1, None))
            # The last block may be shorter than the others.
            held = stream.held + min((last - first) * BLOCK, len(rows) - first * BLOCK)
            if crossed is None and bets_on and line < math.inf:
                crossed = stream._crossing(along, gaps, line)
            stream = replace(stream, period=along.at(-1), blocks=stream.blocks + last - first, held=held)
            if stream.blocks == BLOCKS:
                stream = stream._ended(stream.period, held)
            first = last
        return replace(stream, scales=tuple(scales), before=before)._scaled(), crossed

    def _scaled(self) -> Stream:
        """With scales of measures of which enough was seen."""
        scales, before = [*self.scales], self.before
        for j in self.burning:
            burn = self.scales[j]
            if isinstance(burn, BurnIn) and not burn.missing:
                scale = burn.scale()
                n, first = burn.powers[:, 0], burn.powers[:, 1]
                before = before.copy()
                before[j] = n, (first + n * (burn.origin - scale.origin)) / scale.width
                scales[j] = scale
        return replace(self, scales=tuple(scales), before=before)

    def _ended(self, period: Terms, rows: int) -> Stream:
        """With the period over."""
        fresh = Terms.none(self.period.c.shape)
        return replace(self, buckets=self.buckets.with_period(rows, period), period=fresh, blocks=0, held=0)

    def _crossing(self, along: Terms, gaps: Floats, line: float) -> Stream | None:
        """The stream at the first of some blocks of its period at which the evidence reaches the line."""
        bets, allowed = self.bets, self.scaled_gaps(gaps)
        shown = self.from_starts(Terms.none(self.period.c.shape))
        steps = (allowed[:, None, None] * bets[:, None, :])[:, None]
        whole = shown.terms.log - shown.terms.c[..., None, None] * steps
        more = along.log - along.c[..., None, None] * steps
        # What all starts, pairs and bets count adds up to at most 1, so that the evidence is no more than the largest.
        for t in np.flatnonzero((whole.max(axis=0) + more).max(axis=(1, 2, 3, 4)) >= line).tolist():
            blocks = self.blocks + t + 1
            held = self.held + (t + 1) * BLOCK
            then = replace(self, period=along.at(t), blocks=blocks, held=held)
            if then.shown.log_evidence(allowed) >= line:
                over = int(self.buckets.rows.sum()) + held
                return replace(then, open=Rows.none(len(self.scales)), rows=over)
        return None

    # -----------------------------------------------------------------------------------------------------
    # What it shows

    @property
    def bets(self) -> Floats:
        """Of every measure, of shape (J, K)."""
        return np.stack([one.bets if isinstance(one, Scale) else bets_of() for one in self.scales])

    @property
    def widths(self) -> Floats:
        """What one is in the unit of each measure."""
        return np.array([one.width if isinstance(one, Scale) else 1.0 for one in self.scales])

    def scaled_gaps(self, gaps: Floats) -> Floats:
        """Gaps as values are read."""
        return gaps / self.widths

    def from_starts(self, now: Terms) -> Shown:
        """Sums from the beginning of every bucket, and of the period that is not over, in which there is so much."""
        buckets = self.buckets
        every = stacked([buckets.terms, Terms(*(part[None] for part in now))])
        sums = Terms(*(part[::-1].cumsum(axis=0)[::-1] for part in every))
        starts = np.append(buckets.starts, buckets.periods)
        rows = np.append(buckets.rows.cumsum() - buckets.rows, buckets.rows.sum())
        return Shown(starts, rows, sums, self.bets, self.groups)

    @property
    def shown(self) -> Shown:
        """What all blocks so far show."""
        return self.from_starts(self.period)

    def along(self) -> list[tuple[int, Shown]]:
        """What was shown at the end of every bucket, and is now, with the rows up to then."""
        whole, found = self.buckets, []
        for last in range(1, len(whole.sizes) + 1):
            part = whole.first(last)
            then = replace(self, buckets=part)
            found.append((int(part.rows.sum()), then.from_starts(Terms.none(self.period.c.shape))))
        if self.blocks:
            found.append((int(whole.rows.sum()) + self.held, self.shown))
        return found


# ---------------------------------------------------------------------------------------------------------
# Blocks of people: how values are read, and what each block adds to the sums of ``_statistics/sequences.py``.


#: The largest bet, and how many times smaller the smallest is; without bounds the largest is at most so much divided by
#: the skewness.
LARGEST, SPAN, TAMED = 0.7, 350.0, 0.5

#: Of every group without known bounds: rows that have to be seen, and those among them that differ from its commonest
#: value; or so many rows, after which a group is taken to hardly vary.
SEEN, DIFFERENT, ENOUGH = 100, 30, 15_000


def bets_of(skew: float = 0.0) -> Floats:
    """The bets, from the largest to the smallest."""
    largest = LARGEST if skew * LARGEST <= TAMED else TAMED / skew
    return np.geomspace(largest, largest / SPAN, BETS)


@dataclass(frozen=True, eq=False)
class Scale:
    """How the values of a measure are read, and what is bet on them.

    Attributes
    ----------
    origin, width : float
        A value v is read as (v - origin) / width.
    bets : array of shape (K,)
    bounded : bool
        Whether values are known to lie between 0 and 1; else what is said holds in large samples.
    """

    origin: float
    width: float
    bets: Floats
    bounded: bool

    @classmethod
    def between(cls, low: float, high: float) -> Scale:
        """Of values with known bounds."""
        return cls(low, (high - low) or 1.0, bets_of(), True)

    def read(self, values: Floats) -> Floats:
        """Values as they are bet on; rounding does not take them out of their bounds."""
        scaled = (values - self.origin) / self.width
        return scaled.clip(0.0, 1.0) if self.bounded else scaled


@dataclass(frozen=True, eq=False)
class BurnIn:
    """What was seen of a measure without known bounds before anything is bet on it.

    Attributes
    ----------
    origin : float
        The first value, to which the sums are relative.
    powers : array of shape (groups, 4)
        By group the number of values, and the sums of their first three powers.
    common : tuple of dict
        By group how often each value was seen, as long as few differ.
    """

    origin: float
    powers: Floats
    common: tuple[dict[float, int], ...]

    @classmethod
    def begun(cls, groups: int) -> BurnIn:
        """Nobody was seen yet."""
        return cls(math.nan, np.zeros((groups, 4)), ({},) * groups)

    def add(self, codes: Codes, values: Floats) -> BurnIn:
        """With the rows of one block."""
        if not len(values):
            return self
        origin, g = self.origin if math.isfinite(self.origin) else float(values[0]), len(self.powers)
        away = values - origin
        powers = [np.bincount(codes, away**k, minlength=g) for k in range(4)]
        common = list(self.common)
        for z in np.flatnonzero(powers[0]).tolist():
            if self.different(z) < DIFFERENT:
                seen, counts = np.unique(values[codes == z], return_counts=True)
                held = dict(common[z])
                for value, count in zip(seen.tolist(), counts.tolist(), strict=True):
                    held[value] = held.get(value, 0) + count
                common[z] = held
        return BurnIn(origin, self.powers + np.stack(powers, axis=1), tuple(common))

    def plus(self, other: BurnIn) -> BurnIn:
        """Of people of both."""
        if not self.powers.any() or not other.powers.any():
            return other if other.powers.any() else self
        step, n = other.origin - self.origin, other.powers
        moved = np.stack(
            [
                n[:, 0],
                n[:, 1] + step * n[:, 0],
                n[:, 2] + 2 * step * n[:, 1] + step**2 * n[:, 0],
                n[:, 3] + 3 * step * n[:, 2] + 3 * step**2 * n[:, 1] + step**3 * n[:, 0],
            ],
            axis=1,
        )
        common = tuple(
            {value: one.get(value, 0) + two.get(value, 0) for value in one | two}
            for one, two in zip(self.common, other.common, strict=True)
        )
        return BurnIn(self.origin, self.powers + moved, common)

    def different(self, z: int) -> int:
        """How many rows of a group differ from its commonest value; counted up to the block in which they suffice."""
        held = self.common[z].values()
        return sum(held) - max(held, default=0)

    @property
    def missing(self) -> list[int]:
        """Groups of which more has to be seen; all of them while hardly anything varies."""
        seen = self.powers[:, 0]
        different = [self.different(z) for z in range(len(seen))]
        if sum(different) < DIFFERENT:
            return list(range(len(seen)))
        return [
            z
            for z, varied in enumerate(different)
            if seen[z] < SEEN or (varied < DIFFERENT and seen[z] < ENOUGH)
        ]

    def scale(self) -> Scale:
        """By the standard deviation inside groups, with bets as small as the largest skewness asks for."""
        n, first, second, third = self.powers.T
        mean = first / n
        square = (second / n - mean**2).clip(min=0.0)
        cube = third / n - 3 * mean * second / n + 2 * mean**3
        varies = square > 1e-12 * (second / n).max(initial=0.0)
        skew = np.abs(cube[varies]) / square[varies] ** 1.5
        deviation = math.sqrt(float((n * square).sum() / n.sum()))
        return Scale(
            self.origin + float(first.sum() / n.sum()),
            deviation or 1.0,
            bets_of(float(skew.max(initial=0.0))),
            False,
        )


# ---------------------------------------------------------------------------------------------------------
# From rows to terms


def pairs_of(groups: int) -> tuple[Codes, Codes]:
    """The first and the second of every pair of groups."""
    return np.triu_indices(groups, 1)


class Tally(NamedTuple):
    """Sums by block and group of one measure, of shape (blocks, groups)."""

    n: Floats
    total: Floats
    square: Floats


def tally(place: Codes, values: Floats, blocks: int, groups: int) -> Tally:
    """Sums over rows; ``place`` is the number of a row's block times the groups, plus that of its group."""
    size = blocks * groups
    sums = (
        np.bincount(place, weights, minlength=size).reshape(blocks, groups)
        for weights in (None, values, values**2)
    )
    return Tally(*(np.asarray(part, dtype=np.float64) for part in sums))


def centres(sums: Tally, before: Floats, *, bounded: bool) -> tuple[Floats, Floats]:
    """Means of every group over all earlier blocks, of shape (blocks, groups); and their sums after these.

    ``before`` is the number and the sum of values, by group, of shape (2, groups). One row after the other is added, so
    that it does not matter how many come at a time.
    """
    n, total = (np.cumsum(np.vstack([was, now]), axis=0) for was, now in zip(before, sums, strict=False))
    after = np.stack([n[-1], total[-1]])
    if bounded:
        return (0.5 + total[:-1]) / (1.0 + n[:-1]), after
    return total[:-1] / n[:-1].clip(min=1.0), after


def block_terms(place: Codes, values: Floats, sums: Tally, centre: Floats, scale: Scale) -> Terms:
    """What one measure of some blocks adds: of shape (blocks, P), and (blocks, P, 2, K)."""
    first, second = pairs_of(sums.n.shape[1])
    n_a, n_b = sums.n[:, first], sums.n[:, second]
    both = (n_a > 0) & (n_b > 0)
    held = np.where(both, n_a + n_b, 1.0)
    c = np.where(both, n_a * n_b / held, 0.0)
    mean = sums.total / sums.n.clip(min=1.0)
    x = c * (mean[:, first] - mean[:, second])
    share_a, share_b = np.where(both, n_a / held, 0.0), np.where(both, n_b / held, 0.0)
    of = _bounded_logs if scale.bounded else _large_sample_logs
    above, below = of(place, values, sums, centre, scale.bets, (first, share_b))
    up, down = of(place, values, sums, centre, scale.bets, (second, share_a))
    level = (c * (centre[:, first] - centre[:, second]))[:, :, None] * scale.bets
    log = np.stack([above + down + level, below + up - level], axis=2)
    return Terms(c, x, np.where(both[:, :, None, None], log, 0.0))


#: Position of a group in every pair, and the share of the other one: of shape (P,) and (blocks, P).
_Side = tuple[Codes, Floats]


def _large_sample_logs(
    place: Codes, values: Floats, sums: Tally, centre: Floats, bets: Floats, side: _Side
) -> tuple[Floats, Floats]:
    """Sums of x - x^2/2 over the people of a group, for bets on more and on less; each of shape (blocks, P, K)."""
    group, share = side
    n, total, square = (part[:, group] for part in sums)
    middle = centre[:, group]
    away = (total - n * middle) * share
    spread = (square - 2.0 * middle * total + n * middle**2) * share**2
    straight, bent = away[:, :, None] * bets, 0.5 * spread[:, :, None] * bets**2
    return straight - bent, -straight - bent


def _bounded_logs(
    place: Codes, values: Floats, sums: Tally, centre: Floats, bets: Floats, side: _Side
) -> tuple[Floats, Floats]:
    """Sums of log(1 + x) over the people of a group, for bets on more and on less; each of shape (blocks, P, K).

    Of blocks that hold nothing but 0 and 1 their numbers are enough; in others each row counts by itself.
    """
    group, share = side
    blocks, groups = sums.n.shape
    plain = np.flatnonzero((sums.total == sums.square).all(axis=1))
    more, less = np.zeros((2, blocks, len(group), BETS))
    if len(plain):
        step = share[plain][:, :, None] * bets
        middle = centre[plain][:, group, None]
        ones = sums.total[plain][:, group, None]
        zeros = sums.n[plain][:, group, None] - ones
        more[plain] = ones * np.log1p(step * (1.0 - middle)) + zeros * np.log1p(-step * middle)
        less[plain] = ones * np.log1p(-step * (1.0 - middle)) + zeros * np.log1p(step * middle)
    if len(plain) == blocks:
        return more, less
    block, code = np.divmod(place, groups)
    rest = np.ones(blocks, dtype=bool)
    rest[plain] = False
    for z in np.unique(group).tolist():
        rows = np.flatnonzero((code == z) & rest[block])
        if not len(rows):
            continue
        starts = np.flatnonzero(np.diff(block[rows], prepend=-1))
        away = values[rows] - centre[block[rows], z]
        for p in np.flatnonzero(group == z).tolist():
            step = (share[block[rows], p] * away)[:, None] * bets
            for found, sign in ((more, 1.0), (less, -1.0)):
                found[block[rows][starts], p] = np.add.reduceat(np.log1p(sign * step), starts, axis=0)
    return more, less
