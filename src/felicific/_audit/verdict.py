"""Verdict: what a policy comes to, in one line, from what was shown of the same people and never from estimates alone.

The first row that holds of the decision table is the verdict:

1. nobody gets another decision: nothing changes;
2. the policy was fitted to these people: we cannot tell;
3. all that was asked is shown to hold by the baseline: leave it as it is;
4. no gap was to be closed: what else was asked is shown to be kept, or to be missed, or we cannot tell;
5. a gap that was to be closed is shown to grow, and not to be kept: leave it as it is;
6. no gap is shown to shrink: we cannot tell;
7. where gaps shrink, one group is shown to lose and none looks as if it gained: it levels down;
8. the policy was certified, to less than the baseline's gap: certified;
9. else it shrinks the gap, and nothing is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np

from felicific._audit import words_of_verdicts as words
from felicific._audit.facts import Facts
from felicific._audit.flags import FEW, FEWEST, Flag, find_flags
from felicific._audit.names import END, ISOLATE
from felicific._audit.quantity import JOINER, MINUS, SPACE
from felicific._audit.result import Audit
from felicific._problem.unions import compared_by
from felicific._shown.parts import Displayed, Lines, Part

#: How wide text is printed.
COLUMNS = 80


@dataclass(frozen=True, repr=False)
class Verdict(Displayed):
    """What a policy, or an audit, comes to.

    Attributes
    ----------
    kind : str
        Of a policy "leave", "kept", "missed", "unclear", "levels-down", "certified" or "unpromised"; of an audit
        "within", "more", "unclear" or "measured".
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

    _whole: ClassVar[str] = "print it, or to_dict()."

    def _parts(self) -> list[Part]:
        told = [self.sentence, *([self.remedy] if self.remedy else [])]
        told += [f"{flag.name}. {flag.sentence}" for flag in self.flags if flag.level > 1]
        first, *later = self.lines()
        return [Lines([self.headline], strong=True, plain=[first]), Lines(told, self._whole, plain=later)]


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
# The decision table


def decide(facts: Facts) -> tuple[str, str]:
    """Kind and reason of the verdict: the first row of the table that holds."""
    closed = facts.closed
    shrinking = [shift for shift in closed if shift.shrinks]
    better = [shift for shift in shrinking if shift.measure.more_is_better]
    if facts.changed <= 0.0:
        return "leave", "same"
    if facts.in_sample:
        return "unclear", "in-sample"
    if facts.held_baseline:
        return "leave", "met"
    if facts.requirements and not closed:
        return _on_requirements(facts)
    if any(shift.grows and not shift.kept for shift in closed):
        return "leave", "grows"
    if not facts.paired:
        return "unclear", "unpaired"
    if not shrinking:
        return "unclear", "chance" if closed else "no gap"
    if better and all(shift.levels_down for shift in better):
        return "levels-down", "everybody" if all(shift.takes_from_all for shift in better) else "nobody gains"
    if facts.promise and all(shift.certified for shift in closed):
        return "certified", facts.promise
    return "unpromised", "no certificate"


def _on_requirements(facts: Facts) -> tuple[str, str]:
    """Kind and reason where no gap was to be closed, and something else was asked."""
    if any(row.refuted for row in facts.requirements):
        return "missed", "refuted"
    return ("kept", "shown") if all(row.shown for row in facts.requirements) else ("unclear", "not shown")


def verdict_of(facts: Facts) -> Verdict:
    """The verdict on a policy, with its words and flags."""
    kind, reason = decide(facts)
    return Verdict(
        kind,
        reason,
        words.headline(kind, reason, facts.reference),
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
# Audits


def verdict_of_audit(audit: Audit) -> Verdict:
    """What an audit comes to: whether its gaps are shown to be within, or more than, what is allowed."""
    parts = [part for part in audit.measures if part.gap is not None]
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
        audit.one_look,
        tuple(flag for flag in flags if flag is not None),
    )


def _few_audited(audit: Audit) -> Flag | None:
    sizes, names = audit.persons.seen.tolist(), [measure.name for measure in audit.persons.measures]
    whom = compared_by(audit.persons.left_out, names, audit.groups).any(axis=1)
    compared = np.flatnonzero(whom).tolist()
    tiny = [z for z in compared if sizes[z] < FEW]
    if not tiny or len(compared) < 2:
        return None
    level = 3 if any(sizes[z] < FEWEST for z in tiny) else 2
    return Flag("tiny-group", level, "Few people", words.few_people(audit.groups, sizes, tiny, FEW))
