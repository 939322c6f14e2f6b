"""Facts: what is known of a policy on some people, beside the baseline's decisions, as a verdict goes by it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from felicific._audit.quantity import Quantity
from felicific._audit.result import Interval, RequirementAudit
from felicific._problem.change import MODEL, ROUNDING, Reference
from felicific._problem.happiness import Measure

#: What a group may gain at most beside what another one loses, for a policy that is said to take and not to give.
LITTLE = 0.02


@dataclass(frozen=True)
class Shift:
    """One measure: its gap by the baseline and by the policy, and what changes for the same people.

    Attributes
    ----------
    measure : Measure
    title : str
        What sentences call it.
    quantity : Quantity
        How its numbers are written.
    before, after : Interval
        The gap by the baseline, and by the policy.
    change : Interval or None
        Paired; None where the rows are not paired.
    means : tuple of Interval
        Paired changes of every group's mean; none where the rows are not paired.
    was, then : tuple of float
        Group means by the baseline, and by the policy; of distributions, which have none, nothing.
    closed : bool
        Whether the gap was to be closed.
    asked : float
        The gap that was allowed; infinite where none was.
    bound : float or None
        What the gap is certified to be at most.
    asked_otherwise : bool
        Whether nobody asked for a gap of all groups, and something else was asked for.
    without : (float, float) or None
        The gap by the baseline and by the policy without tiny groups, where there are some and at least two others.
    proof : bool
        Whether it can be proved that the gap is at most so much: of rates, and within declared bounds.
    """

    measure: Measure
    title: str
    quantity: Quantity
    before: Interval
    after: Interval
    change: Interval | None
    means: tuple[Interval, ...]
    was: tuple[float, ...]
    then: tuple[float, ...]
    closed: bool = True
    asked: float = math.inf
    bound: float | None = None
    asked_otherwise: bool = False
    compared: tuple[int, ...] = ()
    without: tuple[float, float] | None = None
    proof: bool = True

    @property
    def shrinks(self) -> bool:
        """Whether the gap is shown to be smaller."""
        return self.change is not None and self.change.high < 0.0

    @property
    def grows(self) -> bool:
        """Whether the gap is shown to be larger."""
        return self.change is not None and self.change.low > 0.0

    @property
    def kept(self) -> bool:
        """Whether the gap is shown to be at most what was allowed."""
        return self.proof and 0.0 < self.asked < math.inf and self.after.high <= self.asked

    @property
    def exceeds(self) -> bool:
        """Whether the gap is shown to be more than was allowed, by more than the rounding of means."""
        size = max((abs(mean) for mean in self.then if mean == mean), default=1.0)
        return self.after.low > self.asked + ROUNDING * size

    @property
    def misses(self) -> bool:
        """Whether the gap that is found is more than was allowed, and is written so; of 0 that says nothing."""
        more = 0.0 < self.asked < self.after.estimate * (1.0 - ROUNDING)
        return more and self.quantity(self.after.estimate) != self.quantity(self.asked)

    @property
    def levels_down(self) -> bool:
        """Whether one group is shown to lose what people want more of, and none looks as if it gained.

        That none is shown to gain would not do: small gains are rarely shown, and "no group gains" would be false.
        What may be gained at most is negligible beside what is lost.
        """
        known = [mean for mean in self.means if mean.n]
        if not known or not self.measure.more_is_better or min(mean.high for mean in known) >= 0.0:
            return False
        little = LITTLE * max(-mean.estimate for mean in known)
        return all(mean.low <= 0.0 and (mean.estimate <= 0.0 or mean.high <= little) for mean in known)

    @property
    def takes_from_all(self) -> bool:
        """Whether every group is shown to lose."""
        return self.levels_down and all(mean.high < 0.0 for mean in self.means if mean.n)

    @property
    def certified(self) -> bool:
        """Whether less than the baseline's gap is certified."""
        return self.bound is not None and self.bound < self.before.estimate


@dataclass(frozen=True)
class Facts:
    """What is known of a policy on some people, beside the baseline's decisions.

    Attributes
    ----------
    groups, sizes : tuple
        Names as text, and how many people of each are counted by every measure.
    compared : tuple of int
        Which of them some gap compares.
    shifts : tuple of Shift
        The measures that have a gap.
    confidence : float
    people, changed, draws, better, worse : float
        How many people there are, get another decision than from the baseline, at random, are better off and worse off.
    cost, cost_best : Interval or None
        Loss against the baseline's, and against the best policy of this kind with gaps ignored; paired.
    cost_quantity : Quantity
        How costs are written.
    in_sample : str
        How these are known to be people that the policy was fitted to; empty where they are not.
    held_baseline : bool
        Whether something was asked, and all of it is shown to hold by the baseline.
    requirements : tuple of RequirementAudit
        What else was asked of the policy, and what these people make of it.
    kept : bool
        Whether it decides on everybody as the baseline does, whoever that is.
    best_is_free : bool
        Whether the best policy has nothing to meet besides gaps.
    promise : str
        What the certificate of the policy rests on; empty where it has none.
    promised_with : float
        The confidence of that certificate.
    promised_elsewhere : bool
        Whether another policy than this one is certified.
    sees_group, infers_group : bool
        What the policy sees.
    accuracy, majority : float or None
        Share of right decisions then, and of the largest class.
    others : tuple of str
        Other measures whose gap is shown to grow.
    labels : str or None
        "all", "selected" or "modelled"; None where nobody said it; empty where nothing looks at labels.
    reference : Reference
        What stands in the place of the baseline's decisions where nobody named the baseline.
    """

    groups: tuple[str, ...]
    sizes: tuple[float, ...]
    compared: tuple[int, ...]
    shifts: tuple[Shift, ...]
    confidence: float
    people: float
    changed: float
    randomized: float = 0.0
    better: float = 0.0
    worse: float = 0.0
    cost: Interval | None = None
    cost_best: Interval | None = None
    cost_quantity: Quantity = field(default_factory=lambda: Quantity("", 0.01))
    in_sample: str = ""
    held_baseline: bool = False
    requirements: tuple[RequirementAudit, ...] = ()
    kept: bool = True
    best_is_free: bool = True
    promise: str = ""
    promised_with: float = 0.95
    promised_elsewhere: bool = False
    sees_group: bool = True
    infers_group: bool = False
    accuracy: float | None = None
    majority: float | None = None
    others: tuple[str, ...] = ()
    labels: str | None = ""
    reference: Reference = MODEL

    @property
    def closed(self) -> list[Shift]:
        """The gaps that were to be closed."""
        return [shift for shift in self.shifts if shift.closed]

    @property
    def paired(self) -> bool:
        """Whether it is known what changes for the same people."""
        return all(shift.change is not None for shift in self.shifts)
