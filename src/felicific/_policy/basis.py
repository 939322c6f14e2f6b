"""The basis of a policy: what its numbers rest on, and what they are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from felicific._problem.linear import STATISTICS, Goal
from felicific._problem.unions import LeftOut, LeftOutBy, compared_groups, single_groups
from felicific._program.aggregates import Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.evidence import Evidence
from felicific._shown.parts import listed
from felicific._typing import Floats, Lazy
from felicific.exceptions import DataError, GroupError

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


# ---------------------------------------------------------------------------------------------------------
# What to expect of a policy on people it was not fitted on, in numbers and in words.


#: How many new people: altogether, or of every group; None for as many as were fitted.
People = float | Mapping[Any, float] | None

#: Who asks for what chance alone shows gets a policy whose values vary a little more or less.
ABOUT = 1.05

#: Of more groups than this chance is not simulated for what is printed.
SIMULATED = 100

#: Means are hardly known from fewer people of a group.
FEW = 100


def expected_gaps(policy: Policy, people: People = None) -> dict[str, float]:
    """See :meth:`felicific.Policy.expected_gaps`."""
    each = [_plain(policy, j) for j in range(len(policy.measures))]
    found = _expected(policy, each, people)
    return {policy.measures[asked.j].name: gap for asked, gap in zip(each, found, strict=True)}


def expected_reached(policy: Policy, people: People = None) -> dict[str, float]:
    """See :meth:`felicific.Policy.expected_reached`."""
    each = _comparisons(policy)
    return {asked.words: gap for asked, gap in zip(each, _expected(policy, each, people), strict=True)}


def _plain(policy: Policy, j: int) -> Goal:
    """The gap of a measure between the groups that it compares."""
    measure = policy.measures[j]
    rows = compared_groups(policy.left_out, measure.name, policy.groups)
    over = [other.name for other in policy.measures].index(measure.over) if measure.over else None
    names, width = tuple(policy.groups[z] for z in rows), policy.basis.allowed.get(measure.name, math.inf)
    return Goal("", j, "gap", np.eye(len(policy.groups))[rows], names, {}, over, upper=width)


def _comparisons(policy: Policy) -> list[Goal]:
    """What was asked for that compares people otherwise."""
    return [asked for asked in policy.basis.requirements if asked.statistic != "mean"]


def _expected(policy: Policy, each: list[Goal], people: People) -> list[float]:
    """What new people are expected to make of each."""
    evidence = policy.basis.evidence
    if evidence is None:
        raise DataError(
            "This policy does not say how much happiness varies, so the gap to expect is not known.",
            "Fit it again: files and sums of an older felicific lack it.",
        )
    more, found = _more(policy, evidence, people), []
    for asked in each:
        # These very people, so what ignores the label is known of them without any error.
        sure = people is None and policy.expected and not policy.measures[asked.j].looks_at_y
        number = evidence.expected(asked, policy.outcome.means, more, sure=sure)
        found.append(_possible(policy, asked, number, asked.reached(policy.outcome.means)))
    return found


def _possible(policy: Policy, asked: Goal, number: float, fitted: float) -> float:
    """No gap is wider than the bounds of happiness allow, and chance brings nobody closer than where it was fitted."""
    return min(number, fitted if asked.statistic == "ratio" else policy.measures[asked.j].widest)


def _more(policy: Policy, evidence: Evidence, people: People) -> Floats:
    """How many new people there are for each that was fitted, by group."""
    groups = policy.groups
    if people is None:
        return np.ones(len(groups))
    given = dict(people) if isinstance(people, Mapping) else dict.fromkeys(groups, people)
    for group, number in given.items():
        real = isinstance(number, int | float | np.number) and not isinstance(number, bool)
        if group not in groups or not real or not number > 0:
            whose = f" of the group {group!r}" if isinstance(people, Mapping) else ""
            raise DataError(
                f"There are {number!r} new people{whose}.",
                f"Give a number above 0, or one for each of {', '.join(map(repr, groups))}.",
            )
    missing = [group for group in groups if group not in given]
    if missing:
        raise GroupError(f"Of the group {missing[0]!r} no number of people is given.", "Give one for each.")
    numbers = np.array([float(given[group]) for group in groups])
    sizes = evidence.size if isinstance(people, Mapping) else evidence.size.sum()
    return np.asarray(numbers / np.where(sizes > 0, sizes, 1.0))


def outlook(policy: Policy) -> str:
    """What gaps to expect of others, and what they make of requirements that compare people, in one sentence."""
    if policy.basis.evidence is None:
        return "What gap to expect on new people is not known: how much happiness varies was not kept."
    if len(policy.groups) > SIMULATED:
        return f"expected_gaps() says what gap between {len(policy.groups):,} groups to expect on new people."
    whom = "On these people" if policy.expected else "On as many new people, independent of each other"
    text = f"{whom}, a gap of about {gaps_in_words(policy, expected_gaps(policy), 2)}"
    each = _comparisons(policy)
    asked = [
        f"{_measured(policy, one, number)} (asked for: {one.words})"
        for one, number in zip(each, _expected(policy, each, None), strict=True)
    ]
    between = f" between all groups{' that are compared' if policy.left_out else ''}" if asked else ""
    open_ones = any(measure.ends for measure in policy.measures)
    hidden = ", if nothing is hidden" if open_ones else ""
    return f"{text}{between} must be expected{''.join(f', and {part}' for part in asked)}{hidden}."


def gaps_in_words(policy: Policy, gaps: Mapping[str, float], digits: int = 6) -> str:
    """The gap of every happiness, of a criterion the largest one."""
    largest: dict[str, int] = {}
    for j, measure in enumerate(policy.measures):
        if measure.aside:
            continue
        k = largest.setdefault(measure.family, j)
        if gaps[measure.name] > gaps[policy.measures[k].name]:
            largest[measure.family] = j
    each = [_about(policy, j, gaps[policy.measures[j].name], digits) for j in largest.values()]
    if len(each) == 1:
        return each[0]
    titles = [policy.measures[j].title for j in largest.values()]
    return ", ".join(f"{text} of {title!r}" for title, text in zip(titles, each, strict=True))


def _about(policy: Policy, j: int, gap: float, digits: int = 2) -> str:
    """A gap with so many digits, and its unit; what is left of an exact zero after rounding is zero."""
    negligible = gap <= 1e-12 * np.nanmax(np.abs(policy.outcome.means[:, j]))
    return policy.measures[j].quantity(0.0 if negligible else float(f"{gap:.{digits}g}"))


def _measured(policy: Policy, asked: Goal, number: float) -> str:
    """A gap or a ratio, as it is measured, with two digits."""
    text = f"{number:.2g}" if asked.statistic == "ratio" else _about(policy, asked.j, number)
    return f"a {asked.statistic} of about {text}"


def _two_digits(number: float, *, up: bool = True) -> float:
    """Rounded to the side on which asking for it helps."""
    if number <= 0:
        return 0.0
    places = 1 - math.floor(math.log10(number))
    scale = 10.0**places
    return round((math.ceil if up else math.floor)(round(number * scale, 9)) / scale, places)


def too_few(policy: Policy, *, undone: bool = False) -> list[str]:
    """Whether so few people tell less than was asked for, even of groups that are truly alike: the worst of it.

    With ``undone``, only where there was something to repair, and chance alone sets groups as far apart again; of very
    many groups only then.
    """
    evidence = policy.basis.evidence
    if evidence is None or policy.expected or (len(policy.groups) > SIMULATED and not undone):
        return []
    plain = [_plain(policy, j) for j in range(len(policy.measures))]
    found = [
        _short(policy, evidence, asked, undone)
        for asked in (*plain, *_comparisons(policy))
        if asked.number is not None
    ]
    return [text for _, text in sorted(one for one in found if one is not None)[:1]]


def _before(policy: Policy, asked: Goal) -> float:
    """How far apart the baseline's decisions, or those of least loss, set those who are compared."""
    basis = policy.basis
    free = basis.unconstrained if basis.baseline is None else Lazy.of(basis.baseline)
    if free is None:
        return 0.0
    reached = asked.reached(free.value.means)
    return 1.0 - reached if asked.statistic == "ratio" else reached


def _short(policy: Policy, evidence: Evidence, asked: Goal, undone: bool) -> tuple[float, str] | None:
    """What is to be said of one comparison, and how bad it is: the less the worse."""
    assert asked.number is not None, "a number was asked for"
    measure, ratio, number = policy.measures[asked.j], asked.statistic == "ratio", asked.number
    inside = np.asarray(asked.shares) > 0
    counted = inside @ evidence.number[:, asked.j]
    u, allowed = int(counted.argmin()), 1.0 - number if ratio else number
    if counted[u] >= FEW and allowed <= 0:  # whatever is to be expected, nothing is said
        return None
    chance = evidence.expected(asked, policy.outcome.means, np.ones(len(policy.groups)), alike=True)
    chance = _two_digits(chance, up=False) if ratio else min(_two_digits(chance), measure.widest)
    apart = 1.0 - chance if ratio else chance
    exceeds = apart > ABOUT * allowed
    if counted[u] >= FEW and not (exceeds and allowed > 0):
        return None
    if undone and not allowed < _before(policy, asked) <= apart:
        return None
    said, few = f"{number:.6g}" if ratio else measure.quantity(number), max(round(float(counted[u])), 1)
    people = "1 person" if few == 1 else f"{few:,} people"
    tell = f"Only {people} in {asked.names[u]!r} tell of it"
    if (
        policy.labels is not None and measure.looks_at_y
    ):  # not so few are there, but so little is known of them
        people = f"what {people} with a label would tell"
        tell = f"In {asked.names[u]!r} no more is known of it than {people}"
    expected = f"{_measured(policy, asked, chance)} of {measure.name!r} must be expected"
    text = (
        f"A{expected[1:]} from {people} in {asked.names[u]!r} by chance alone, {said} was asked for: "
        if exceeds
        else f"{tell}: {expected} by chance alone ({said} was asked for): "
    )
    remedies = [f"ask for {'at most' if ratio else 'at least'} that"] * exceeds
    remedies += ["pool groups"] * (len(counted) > 2)
    size = inside @ evidence.size
    if size[u] < FEW and (size >= FEW).sum() > 1 and " people or more" not in asked.words:
        remedies.append(f"leave out those of fewer than {FEW} people (min_people)")
    badness = (
        allowed / max(apart, 1e-300) if allowed else -apart / (1.0 if ratio else max(measure.widest, apart))
    )
    return badness, f"{text}{', or '.join(remedies or ['fit on more people'])}."
