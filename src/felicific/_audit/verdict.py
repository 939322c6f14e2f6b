"""Verdict: what a policy comes to, in one line, from what was shown of the same people and never from estimates alone.

The first row that holds of the decision table is the verdict:

1. nobody is decided about otherwise: nothing changes;
2. the policy was fitted to these people: we cannot tell;
3. all that was asked is shown to hold today: leave it as it is;
4. a gap that was to be closed is shown to grow, and not to be kept: leave it as it is;
5. no gap is shown to shrink: we cannot tell;
6. where gaps shrink, one group is shown to lose and none looks as if it gained: it takes;
7. the policy was certified, to less than today's gap: certified;
8. else it shrinks the gap, and nothing is promised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from felicific._audit import words_of_verdicts as words
from felicific._audit.names import END, ISOLATE
from felicific._audit.quantity import JOINER, MINUS, SPACE, Quantity
from felicific._audit.result import Audit, Interval, RequirementAudit, html_lines
from felicific._problem.change import ROUNDING
from felicific._problem.happiness import Component

#: Groups of fewer people are called tiny, and very tiny.
FEW, FEWEST = 100, 30

#: A gap that grows by less than this share of today's is not worth a flag, nor are lots of fewer people a warning.
GROWN, MANY_LOTS = 0.02, 0.05

#: What a group may gain at most beside what another one loses, for a policy that is said to take and not to give.
LITTLE = 0.02

#: How wide text is printed.
COLUMNS = 80


@dataclass(frozen=True)
class Flag:
    """Something that a signer should know besides the verdict.

    Attributes
    ----------
    kind : str
        A short name that does not change, such as "asked-missed".
    level : {1, 2, 3}
        3 for what speaks against signing, 2 for what to look at, 1 for what to know.
    name, sentence : str
        For reading.
    """

    kind: str
    level: int
    name: str
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What a policy, or an audit, comes to.

    Attributes
    ----------
    kind : str
        Of a policy "leave", "unclear", "takes", "certified" or "unpromised"; of an audit "within", "more", "unclear"
        or "measured".
    reason : str
        Why, as one word or two.
    headline, sentence, remedy : str
        One line; the same with numbers; what to do about it, or nothing.
    flags : tuple of Flag
        The gravest first.
    numbers : tuple of (str, str)
        What is printed below the headline.
    """

    kind: str
    reason: str
    headline: str
    sentence: str
    remedy: str = ""
    flags: tuple[Flag, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data that JSON can hold."""
        told = ("kind", "reason", "headline", "sentence", "remedy")
        return {name: getattr(self, name) for name in told} | {"flags": [vars(flag) for flag in self.flags]}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The headline, the numbers and the flags that warn, in at most 80 columns."""
        width = max((len(name) for name, _ in self.numbers), default=0) + 3
        found = [plain_text(self.headline)]
        if not self.numbers:
            found += _wrapped(self.sentence, "  ")
        for name, text in self.numbers:
            found += _wrapped(text, "  " + name.ljust(width), " " * (width + 2))
        found += _wrapped(self.remedy, "  ") if self.remedy else []
        for flag in self.flags:
            found += _wrapped(f"{flag.name}. {flag.sentence}", "  ! ") if flag.level > 1 else []
        return found

    def _repr_html_(self) -> str:
        return html_lines(
            [self.headline, self.sentence, *([self.remedy] if self.remedy else [])]
        ) + html_lines(f"{flag.name}. {flag.sentence}" for flag in self.flags if flag.level > 1)


#: Signs that not every terminal has, and what stands for them.
PLAIN = str.maketrans({MINUS: "-", SPACE: " ", JOINER: "", ISOLATE: "", END: ""})


def plain_text(text: str) -> str:
    """For a terminal: signs and spaces that every one of them has."""
    return text.translate(PLAIN)


def _wrapped(text: str, first: str, later: str = "    ") -> list[str]:
    return wrap(
        plain_text(text), COLUMNS, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )


# ---------------------------------------------------------------------------------------------------------
# What is known


@dataclass(frozen=True)
class Shift:
    """One component: its gap today and then, and what changes for the same people.

    Attributes
    ----------
    component : Component
    title : str
        What sentences call it.
    quantity : Quantity
        How its numbers are written.
    before, after : Interval
        The gap today, and then.
    change : Interval or None
        Paired; None where the rows are not paired.
    means : tuple of Interval
        Paired changes of every group's mean; none where the rows are not paired.
    was, then : tuple of float
        Group means today, and then.
    closed : bool
        Whether the gap was to be closed.
    asked : float
        The gap that was allowed; infinite where none was.
    bound : float or None
        What the gap is certified to be at most.
    asked_otherwise : bool
        Whether nobody asked for a gap of all groups, and something else was asked for.
    without : (float, float) or None
        The gap today and then without tiny groups, where there are some and at least two others.
    """

    component: Component
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
    without: tuple[float, float] | None = None

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
        return 0.0 < self.asked < math.inf and self.after.high <= self.asked

    @property
    def misses(self) -> bool:
        """Whether the gap that is found is more than was allowed, and is written so; of 0 that says nothing."""
        more = 0.0 < self.asked < self.after.estimate * (1.0 - ROUNDING)
        return more and self.quantity(self.after.estimate) != self.quantity(self.asked)

    @property
    def takes(self) -> bool:
        """Whether one group is shown to lose what people want more of, and none looks as if it gained.

        That none is shown to gain would not do: small gains are rarely shown, and "no group gains" would be false.
        What may be gained at most is negligible beside what is lost.
        """
        known = [mean for mean in self.means if mean.n]
        if not known or not self.component.wanted or min(mean.high for mean in known) >= 0.0:
            return False
        little = LITTLE * max(-mean.estimate for mean in known)
        return all(mean.low <= 0.0 and (mean.estimate <= 0.0 or mean.high <= little) for mean in known)

    @property
    def takes_from_all(self) -> bool:
        """Whether every group is shown to lose."""
        return self.takes and all(mean.high < 0.0 for mean in self.means if mean.n)

    @property
    def certified(self) -> bool:
        """Whether less than today's gap is certified."""
        return self.bound is not None and self.bound < self.before.estimate


@dataclass(frozen=True)
class Facts:
    """What is known of a policy on some people, beside today's decisions.

    Attributes
    ----------
    groups, sizes : tuple
        Names as text, and how many people of each are counted by every component.
    compared : tuple of int
        Which of them are compared: all whose group is known.
    shifts : tuple of Shift
        The components that have a gap; of two that are complements, one.
    confidence : float
    people, changed, lots, better, worse : float
        How many people there are, are decided about otherwise than today, by lot, are better off and worse off.
    cost, cost_best : Interval or None
        Loss against today's, and against the best policy of this kind with gaps ignored; paired.
    cost_quantity : Quantity
        How costs are written.
    in_sample : str
        How these are known to be people that the policy was fitted to; empty where they are not.
    held_today : bool
        Whether something was asked, and all of it is shown to hold today.
    requirements : tuple of RequirementAudit
        What else was asked of the policy, and what these people make of it.
    kept : bool
        Whether it decides about everybody as today, whoever that is.
    best_is_free : bool
        Whether the best policy has nothing to meet besides gaps.
    promise : str
        What the certificate of the policy rests on; empty where it has none.
    promised_with : float
        The confidence of that certificate.
    promised_elsewhere : bool
        Whether another policy than this one is certified.
    see_group, infers_group : bool
        What the policy sees.
    accuracy, majority : float or None
        Share of right decisions then, and of the largest class.
    others : tuple of str
        Other measures whose gap is shown to grow.
    labels : str or None
        "all", "selected" or "modelled"; None where nobody said it; empty where nothing looks at labels.
    """

    groups: tuple[str, ...]
    sizes: tuple[float, ...]
    compared: tuple[int, ...]
    shifts: tuple[Shift, ...]
    confidence: float
    people: float
    changed: float
    lots: float = 0.0
    better: float = 0.0
    worse: float = 0.0
    cost: Interval | None = None
    cost_best: Interval | None = None
    cost_quantity: Quantity = field(default_factory=lambda: Quantity("", 0.01))
    in_sample: str = ""
    held_today: bool = False
    requirements: tuple[RequirementAudit, ...] = ()
    kept: bool = True
    best_is_free: bool = True
    promise: str = ""
    promised_with: float = 0.95
    promised_elsewhere: bool = False
    see_group: bool = True
    infers_group: bool = False
    accuracy: float | None = None
    majority: float | None = None
    others: tuple[str, ...] = ()
    labels: str | None = ""

    @property
    def closed(self) -> list[Shift]:
        """The gaps that were to be closed."""
        return [shift for shift in self.shifts if shift.closed]

    @property
    def paired(self) -> bool:
        """Whether it is known what changes for the same people."""
        return all(shift.change is not None for shift in self.shifts)


# ---------------------------------------------------------------------------------------------------------
# The decision table


def decide(facts: Facts) -> tuple[str, str]:
    """Kind and reason of the verdict: the first row of the table that holds."""
    closed = facts.closed
    shrinking = [shift for shift in closed if shift.shrinks]
    wanted = [shift for shift in shrinking if shift.component.wanted]
    if facts.changed <= 0.0:
        return "leave", "same"
    if facts.in_sample:
        return "unclear", "in-sample"
    if facts.held_today:
        return "leave", "met"
    if any(shift.grows and not shift.kept for shift in closed):
        return "leave", "grows"
    if not facts.paired:
        return "unclear", "unpaired"
    if not shrinking:
        return "unclear", "chance" if closed else "no gap"
    if wanted and all(shift.takes for shift in wanted):
        return "takes", "everybody" if all(shift.takes_from_all for shift in wanted) else "nobody gains"
    if facts.promise and all(shift.certified for shift in closed):
        return "certified", facts.promise
    return "unpromised", "no certificate"


def verdict_of(facts: Facts) -> Verdict:
    """The verdict on a policy, with its words and flags."""
    kind, reason = decide(facts)
    return Verdict(
        kind,
        reason,
        words.headline(kind, reason),
        words.sentence(facts, kind, reason),
        words.remedy(facts, kind, reason),
        tuple(sorted(find_flags(facts, kind), key=lambda flag: -flag.level)),
        tuple(words.numbers(facts)),
    )


#: What is said where nobody but the people that a policy was fitted to was looked at.
FITTED_ONLY = Verdict(
    "unclear",
    "in-sample",
    words.headline("unclear", "in-sample"),
    "Only the people it was fitted to have been looked at.",
    words.OTHER_PEOPLE,
)


# ---------------------------------------------------------------------------------------------------------
# Flags


def find_flags(facts: Facts, kind: str) -> list[Flag]:
    """One flag of each kind that there is reason for."""
    found = [
        _in_sample(facts),
        _levels_down(facts, kind),
        _gap_grows(facts),
        _asked_missed(facts),
        _order_flips(facts),
        _tiny_group(facts),
        _below_majority(facts),
        _others_grow(facts),
        _lots(facts),
        _labels(facts),
        _sees_group(facts),
    ]
    return [flag for flag in found if flag is not None]


def _in_sample(facts: Facts) -> Flag | None:
    if not facts.in_sample:
        return None
    return Flag("in-sample", 3, "Fitted to these people", facts.in_sample)


def _levels_down(facts: Facts, kind: str) -> Flag | None:
    taking = [shift for shift in facts.shifts if shift.takes]
    if not taking or kind == "takes":
        return None
    return Flag("levels-down", 3, "Takes, and gives nobody", words.taken(facts, taking))


def _gap_grows(facts: Facts) -> Flag | None:
    growing = [
        shift
        for shift in facts.closed
        if shift.change is not None and shift.change.estimate > GROWN * shift.before.estimate
    ]
    if not growing:
        return None
    shown = any(shift.grows for shift in growing)
    chance = "" if shown else " That may be chance."
    return Flag("gap-grows", 3 if shown else 2, "A gap grows", words.grown(growing) + chance)


def _asked_missed(facts: Facts) -> Flag | None:
    shown = [shift for shift in facts.shifts if shift.after.low > shift.asked]
    seen = [shift for shift in facts.shifts if shift.misses]
    others = [row for row in facts.requirements if row.met is False]
    if not (shown or seen or others):
        return None
    level = 3 if shown or any(row.refuted for row in others) else 2
    return Flag("asked-missed", level, "Misses what was asked", words.missed(facts, shown or seen, others))


def _order_flips(facts: Facts) -> Flag | None:
    for shift in facts.shifts:
        top, bottom = (pick(range(len(shift.was)), key=shift.was.__getitem__) for pick in (max, min))
        flips = shift.then[top] < shift.then[bottom] and shift.before.estimate > 0.0
        if flips and (shift.after.low > 0.0 or shift.after.estimate > shift.before.estimate / 2.0):
            places = facts.compared[top], facts.compared[bottom]
            told = words.flipped(facts, shift, (top, bottom), places)
            return Flag("order-flips", 2, "The order turns around", told)
    return None


def _tiny_group(facts: Facts) -> Flag | None:
    tiny = [z for z in facts.compared if facts.sizes[z] < FEW]
    if not tiny:
        return None
    level = 3 if any(facts.sizes[z] < FEWEST for z in tiny) else 2
    return Flag("tiny-group", level, "Few people", words.tiny(facts, tiny, FEW))


def _below_majority(facts: Facts) -> Flag | None:
    if facts.accuracy is None or facts.majority is None or facts.accuracy >= facts.majority:
        return None
    return Flag("below-majority", 3, "Worse than deciding all alike", words.below_majority(facts))


def _others_grow(facts: Facts) -> Flag | None:
    grown = [shift.title for shift in facts.shifts if not shift.closed and shift.grows] + list(facts.others)
    if not grown:
        return None
    return Flag("others-grow", 2, "Other gaps grow", words.others(grown))


def _lots(facts: Facts) -> Flag | None:
    if facts.lots <= 0.0:
        return None
    many = facts.lots > MANY_LOTS * facts.people
    return Flag("lots", 2 if many else 1, "Lots are drawn", words.lots(facts))


def _labels(facts: Facts) -> Flag | None:
    if facts.labels == "selected":
        return Flag("selective-labels", 3, "Labels of some people only", words.SELECTED)
    if facts.labels is None:
        return Flag("labels-unstated", 1, "Whose labels these are", words.UNSTATED)
    return None


def _sees_group(facts: Facts) -> Flag | None:
    if facts.infers_group:
        return Flag("infers-group", 1, "Infers the group", words.INFERS)
    return Flag("sees-group", 1, "Decides by group", words.UNLAWFUL) if facts.see_group else None


# ---------------------------------------------------------------------------------------------------------
# Audits


def verdict_of_audit(audit: Audit) -> Verdict:
    """What an audit comes to: whether its gaps are shown to be within, or more than, what is allowed."""
    once = told_once([part.component for part in audit.components])
    parts = [audit.components[j] for j in once if audit.components[j].gap is not None]
    tested = [part for part in parts if part.test is not None]
    kind, reason = "measured", "nothing allowed"
    if tested:
        kind, reason = "unclear", "chance"
        level = (1.0 - audit.confidence) / len(tested)  # any one of them would be enough
        if any(part.test is not None and part.test.p_value <= level for part in tested):
            kind, reason = "more", "gap"
        elif all(part.test is not None and part.test.verdict == "at most" for part in tested):
            kind, reason = "within", "gap"
    flags = [_few_audited(audit)]
    return Verdict(
        kind,
        reason,
        words.audit_headline(kind, parts),
        words.audit_sentence(kind, parts, tested, audit.confidence),
        "",
        tuple(flag for flag in flags if flag is not None),
    )


def _few_audited(audit: Audit) -> Flag | None:
    sizes, unknown = audit.persons.seen.tolist(), {*map(str, audit.unknown)}
    compared = [z for z, group in enumerate(audit.groups) if str(group) not in unknown]
    tiny = [z for z in compared if sizes[z] < FEW]
    if not tiny or len(compared) < 2:
        return None
    level = 3 if any(sizes[z] < FEWEST for z in tiny) else 2
    return Flag("tiny-group", level, "Few people", words.few_people(audit.groups, sizes, tiny, FEW))


def told_once(components: Sequence[Component]) -> list[int]:
    """Positions of components of which none is the complement of another: of two decisions, the favourable one."""
    counted = Counter((one.family, one.part[1]) for one in components if one.part is not None)

    def spare(one: Component) -> bool:
        return not one.wanted and one.part is not None and counted[one.family, one.part[1]] == 2

    return [j for j, one in enumerate(components) if not spare(one)]
