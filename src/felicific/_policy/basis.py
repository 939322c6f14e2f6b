"""The basis of a policy: what its numbers rest on, and what they are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._files import (
    check_means,
    check_shape,
    plain,
    read_means,
    read_number,
    read_numbers,
    read_prices,
    read_values,
    refused,
    write_means,
)
from felicific._policy.expected import too_few
from felicific._problem.change import (
    EVERY_GROUP_LOSES,
    NEGLIGIBLE,
    Harm,
    Intersections,
    baseline_words,
    every_group_loses,
    few_counted,
    harms_by_name,
    nothing_to_repair,
    worst_harm,
)
from felicific._problem.happiness import Measure
from felicific._problem.rows import STATISTICS, Goal
from felicific._problem.unions import LeftOut, LeftOutBy, single_groups
from felicific._program.aggregates import Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.evidence import Evidence
from felicific._shown.parts import listed
from felicific._typing import Floats, Lazy

if TYPE_CHECKING:
    from felicific._policy.policy import Policy

#: What is assumed of people without labels.
UNCHANGED = "as if p(label given signal, group) had not changed"

#: What the numbers of a policy are that was fitted on predictions made out of fold.
OUT_OF_FOLD = (
    "These numbers are out of fold: everybody is decided on by a model that was not fitted on them, as new people "
    "will be. On these same rows the final model decides differently."
)


@dataclass(frozen=True, eq=False)
class Basis:
    """What the numbers of a policy rest on.

    Attributes
    ----------
    loss_name : str
        What the loss is called; "error" for the error rate.
    baseline : Outcome, or None
        What is decided without the policy does to the same people.
    allowed : dict of measure name to float
        Gaps that were allowed.
    out_of_fold : bool
        Whether each person's probabilities came from a model that was not fitted on that person.
    requirements : tuple of Goal
        What else was asked for.
    unconstrained : Lazy of Outcome, or None
        What a policy of the same kind does of which nothing was required, at the same cost of changes.
    change_cost : number or "auto"
        What a changed decision cost beside the loss; "auto" only where it charged something.
    baseline_given : bool
        Whether the baseline was given; otherwise it is what the model predicts.
    least_loss : float, or None
        The loss at its best, where hidden reasons leave it open and the loss that is stated is its worst.
    evidence : Evidence, or None
        How much values vary, and of how many people that is known; None in files that do not say it.
    steered : tuple of str
        Of a policy that holds the controls of a moment (:meth:`felicific.Steering.policy`): what is known of it. Nobody
        measured it, so its outcome holds no numbers.
    notes : tuple of str
        What there is to know of it besides, in sentences.
    """

    loss_name: str = ""
    baseline: Outcome | None = None
    allowed: dict[str, float] = field(default_factory=dict)
    out_of_fold: bool = False
    requirements: tuple[Goal, ...] = ()
    unconstrained: Lazy[Outcome] | None = None
    change_cost: ChangeCost = 0.0
    evidence: Evidence | None = None
    least_loss: float | None = None
    steered: tuple[str, ...] = ()
    baseline_given: bool = False
    notes: tuple[str, ...] = ()

    def reached(self, measures: Sequence[Measure], means: Floats, most: int | None = None) -> list[str]:
        """What group means make of every requirement that compares people, and who is not compared, in sentences.

        Of more groups than the ``most``, the first are named.
        """
        found = []
        for asked in self.requirements:
            measure, number = measures[asked.j], asked.reached(means)
            if asked.statistic == "mean":
                # The group means are stated anyway; of who loses, the share of all of them.
                found += [f"Asked for: {asked.words}. It is {100 * number:.6g} %."] * measure.aside
                continue
            text = f"{number:.6g}" if asked.statistic == "ratio" else measure.quantity(number)
            each = zip(asked.names, asked.means(means).tolist(), strict=True)
            whose = listed([f"{measure.quantity(mean)} in {name!r}" for name, mean in each], most)
            found.append(f"Asked for: {asked.words}. It is {text} ({whose}).")
            if asked.left_out:
                who = [f"{name!r} ({people:,.6g} people)" for name, people in asked.left_out.items()]
                found.append(f"Not compared there: {listed(who, most)}.")
        return found

    def nothing_to_repair(self, measures: Sequence[Measure], outcome: Outcome, whom: str) -> list[str]:
        """That the baseline meets what was asked already, if so; ``whom`` are the people it was fitted on."""
        if self.baseline is None:
            return []
        asked = [self.allowed.get(measure.name, math.inf) for measure in measures]
        where = f"{whom}, {baseline_words(self.baseline_given).name}"
        found = nothing_to_repair(measures, self.baseline.gaps, asked, where)
        if not found or outcome.changed is None or not (outcome.changed > NEGLIGIBLE).any():
            return found
        return [f"{found[0]} What it changes all the same is for the loss, or so that the gap can be shown."]

    def unmeasured(self, known: tuple[str, ...]) -> Basis:
        """What is asked of a policy that holds the controls of a moment, and all that is known of it."""
        return Basis(
            self.loss_name,
            allowed=self.allowed,
            requirements=self.requirements,
            change_cost=self.change_cost,
            steered=known,
        )

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "loss_name": self.loss_name,
            "baseline": None if self.baseline is None else write_outcome(self.baseline),
            "baseline_given": self.baseline_given,
            "asked": [[name, width] for name, width in self.allowed.items()],
            "out_of_fold": self.out_of_fold,
            "requirements": [
                {
                    "words": asked.words,
                    "measure": asked.j,
                    "over": asked.over,
                    "statistic": asked.statistic,
                    "names": plain(list(asked.names), "group"),
                    "shares": asked.shares.tolist(),
                    "left_out": [
                        [*plain([name], "group"), people] for name, people in asked.left_out.items()
                    ],
                    "sides": [side if math.isfinite(side) else None for side in (asked.lower, asked.upper)],
                    "baseline": asked.baseline,
                }
                for asked in self.requirements
            ],
            "unconstrained": None if self.unconstrained is None else write_outcome(self.unconstrained.value),
            "change_cost": self.change_cost,
            "evidence": None if self.evidence is None else self.evidence.to_json(),
            "least_loss": self.least_loss,
            "steered": list(self.steered),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, content: Any, shape: tuple[int, ...]) -> Basis:
        """Read what :meth:`to_json` wrote, for means of this shape."""
        if not isinstance(content, dict) or set(content) != _PARTS:
            raise refused("it does not say what its numbers rest on")
        if type(content["loss_name"]) is not str or type(content["out_of_fold"]) is not bool:
            raise refused("the name of its loss, or whether it was fitted out of fold, is of another type")
        if type(content["baseline_given"]) is not bool:
            raise refused("whether its baseline was given is not known")
        baseline, free = content["baseline"], content["unconstrained"]
        baseline = None if baseline is None else read_outcome(baseline, shape, "baseline")
        free = None if free is None else Lazy.of(read_outcome(free, shape, "unconstrained"))
        cost = content["change_cost"]
        if cost != "auto" and not 0.0 <= read_number(cost, "cost of changes") < math.inf:
            raise refused("its cost of changes is negative")
        asked = read_prices(content["asked"], "gap that was asked for")
        if any(not 0.0 <= width < math.inf for width in asked.values()):
            raise refused("a gap that was asked for is negative")
        others = tuple(_asked(part, shape) for part in content["requirements"])
        evidence, least = Evidence.from_json(content["evidence"], shape), content["least_loss"]
        least = None if least is None else read_number(least, "least loss")
        told = (baseline, asked, content["out_of_fold"], others, free, cost, evidence, least)
        steered, notes = content["steered"], content["notes"]
        for what, sentences in (
            ("what is known of its controls", steered),
            ("what there is to know besides", notes),
        ):
            if type(sentences) is not list or not all(type(sentence) is str for sentence in sentences):
                raise refused(f"{what} is no list of sentences")
        return cls(content["loss_name"], *told, tuple(steered), content["baseline_given"], tuple(notes))


#: What is always said of it.
_PARTS = {"asked", "baseline", "baseline_given", "change_cost", "evidence", "least_loss", "loss_name"} | {
    *("notes", "out_of_fold", "requirements", "steered", "unconstrained")
}


def _asked(content: Any, shape: tuple[int, ...]) -> Goal:
    """Read a requirement, for means of this shape."""
    names = {"words", "measure", "statistic", "names", "shares", "left_out"}
    names |= {"over", "sides", "baseline"}
    if not isinstance(content, dict) or set(content) != names or type(content["words"]) is not str:
        raise refused("a requirement lacks a part, or has one too many")
    if type(content["words"]) is not str:
        raise refused("a requirement has no words")
    j, whose = content["measure"], tuple(read_values(content["names"], "group"))
    over = content["over"]
    if over is not None and (type(over) is not int or not 0 <= over < shape[1]):
        raise refused("a requirement speaks of a fraction of nobody")
    if type(j) is not int or not 0 <= j < shape[1] or content["statistic"] not in STATISTICS or not whose:
        raise refused("a requirement speaks of no measure, of nobody, or measures what nothing does")
    shares = check_shape("shares", read_numbers(content["shares"], "shares"), (len(whose), shape[0]))
    left_out = {
        read_values([name], "group")[0]: read_number(people, "people") for name, people in content["left_out"]
    }
    sides, baseline = content["sides"], content["baseline"]
    if type(sides) is not list or len(sides) != 2 or type(baseline) is not bool:
        raise refused("a requirement does not say between which numbers it has to be")
    lower, upper = (
        endless if side is None else read_number(side, "side of a requirement")
        for side, endless in zip(sides, (-math.inf, math.inf), strict=True)
    )
    return Goal(
        content["words"], j, content["statistic"], shares, whose, left_out, over, lower, upper, baseline
    )


#: Shares of an outcome that may not be known.
SHARES = ("changed", "gains", "loses")


def write_left_out(left_out: LeftOutBy) -> list[Any]:
    """Whom gaps do not compare, as data."""
    return [
        [name, part.least, [[*plain([group], "group"), people] for group, people in part.people.items()]]
        for name, part in left_out.items()
    ]


def read_left_out(content: Any, groups: Sequence[Any], measures: Sequence[str]) -> dict[str, LeftOut]:
    """Read what :func:`write_left_out` wrote, of these groups and measures."""
    found = {}
    for name, least, parts in content:
        people = {read_values([one], "group")[0]: read_number(number, "people") for one, number in parts}
        if name not in measures or not set(people) < set(groups) or min(people.values(), default=0.0) < 0:
            raise refused("a group that is not compared is none of its groups")
        found[name] = LeftOut(people, read_number(least, "people"))
    return found


def write_outcome(outcome: Outcome) -> dict[str, Any]:
    """As data; what is not known is None."""
    shares = {name: getattr(outcome, name) for name in SHARES}
    return {
        "loss": None if math.isnan(outcome.loss) else outcome.loss,
        "means": write_means(outcome.means),
        "gaps": [None if math.isnan(gap) else gap for gap in outcome.gaps.tolist()],
        **{name: None if share is None else _without_nan(share) for name, share in shares.items()},
    }


def unmeasured(shape: tuple[int, ...]) -> Outcome:
    """The outcome of a policy that nobody measured, for means of this shape."""
    return Outcome(math.nan, np.full(shape, math.nan), np.full(shape[1:], math.nan))


def _without_nan(share: Floats) -> list[Any]:
    known = share.astype(object)
    known[np.isnan(share)] = None
    return list(known.tolist())


def read_outcome(content: Any, shape: tuple[int, ...], whose: str) -> Outcome:
    """Read what :func:`write_outcome` wrote, for means of this shape."""
    if not isinstance(content, dict) or set(content) - set(SHARES) != {"loss", "means", "gaps"}:
        raise refused(f"what is decided {whose} lacks a part, or has one too many")
    found = Outcome(
        read_number(content["loss"], f"loss of {whose}"),
        check_means(f"means of {whose}", read_means(content["means"], f"means of {whose}"), shape),
        check_shape(f"gaps of {whose}", read_numbers(content["gaps"], f"gaps of {whose}"), shape[1:]),
        *(read_share(content.get(name), name) for name in SHARES),
    )
    check_shares(found, shape)
    return found


def harms_of(policy: Policy, outcome: Outcome) -> list[Harm] | None:
    """What an outcome does to intersections of several attributes, the worst first; None where that is not known."""
    basis, evidence = policy.basis, policy.basis.evidence
    if len(policy.attributes) < 2 or basis.baseline is None or evidence is None:
        return None
    each = evidence.weight / np.where(evidence.size > 0, evidence.size, 1.0)
    coarse = {
        one.j: basis.allowed.get(policy.measures[one.j].name, 0.0)
        for one in basis.requirements
        if one.statistic != "mean" and single_groups(one.shares) is None
    }
    weights, people = evidence.people * each[:, None], evidence.people
    groups = Intersections(policy.groups, policy.wording.groups, policy.attributes, weights, people)
    where = f"compared with {baseline_words(basis.baseline_given).whole}"
    return groups.harms(policy.measures, basis.baseline.means, outcome.means, coarse, where)


def named_outcome(policy: Policy, outcome: Outcome) -> Outcome:
    """An outcome with the names of groups and measures, and the harm that it does to intersections."""
    harms, names = harms_of(policy, outcome), tuple(measure.name for measure in policy.measures)
    falls = None if harms is None else harms_by_name(harms, policy.measures, policy.groups)
    harmed, widened = falls or (None, None)
    return replace(outcome, groups=policy.groups, measures=names, harmed=harmed, widened=widened)


def cautions_of(policy: Policy, *, warn: bool) -> list[str]:
    """What whoever fitted a policy should know, or be warned of, the worst first."""
    found, basis = worst_harm(harms_of(policy, policy.outcome)), policy.basis
    if basis.baseline is not None:
        where = f"{policy.whom}, compared with {baseline_words(basis.baseline_given).whole}"
        told = policy.measures, policy.wording.groups, basis.baseline.means, policy.outcome.means, where
        falling = every_group_loses(*told, by_policy=True)
        found += [text for text in falling if text.startswith(EVERY_GROUP_LOSES)] + few_counted(*told)
        found += [] if warn else [text for text in falling if not text.startswith(EVERY_GROUP_LOSES)]
    found += [] if policy.labels is None else policy.labels.cautions()
    return found + too_few(policy, undone=warn)


def read_share(content: Any, name: str) -> Floats | None:
    """Shares of people, each from 0 to 1 or not known."""
    if content is None:
        return None
    rows = np.array(content, dtype=object)
    known = np.array([number is not None for number in rows.ravel()], dtype=bool)
    numbers = read_numbers(rows.ravel()[known].tolist(), name) if known.any() else np.zeros(0)
    if ((numbers < 0.0) | (numbers > 1.0 + 1e-9)).any():
        raise refused(f"{name} holds what is no share of people")
    filled = np.full(rows.size, np.nan)
    filled[known] = numbers
    return filled.reshape(rows.shape)


def check_shares(outcome: Outcome, shape: tuple[int, ...]) -> None:
    """Refuse shares that do not go with means of this shape."""
    for name in SHARES:
        share = getattr(outcome, name)
        if share is not None and share.shape != (shape[:1] if name == "changed" else shape):
            raise refused(f"{name} has the shape {share.shape}")
