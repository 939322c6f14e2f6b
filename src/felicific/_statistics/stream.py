"""A stream of people: rows in the order in which they came, compared block by block, and kept as sums alone.

What a block adds is in ``_statistics/blocks.py``, what the sums show in ``_statistics/sequences.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from felicific._statistics.blocks import BurnIn, Scale, bets_of, block_terms, centres, tally
from felicific._statistics.sequences import BLOCK, BLOCKS, Buckets, Shown, Terms, stacked
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
