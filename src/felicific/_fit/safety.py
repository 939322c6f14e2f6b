r"""Safe fitting: a policy whose gap was shown, on rows held out, to be at most what was asked.

Candidates are policies of the frontier that was found on the other rows, from the tightest to the one that was asked
for. They are tested in that order, and the first failure ends it; the last to pass is returned. If it violates the gap,
then the first violating policy in the sequence has passed, which has probability at most :math:`\gamma`: so

.. math:: P(\text{returned and violating}) \le \gamma

however many candidates there are. That a gap is at most :math:`\epsilon` says so of every pair of groups in every
measure, and each of these tests has to reject at level :math:`\gamma`: no correction is needed for their number. So
does a gap between attributes, and that every mean is at least a share of every other: their tests join the others.

Within known bounds (a share has them) each test is by bets on pairs of people and holds for any distribution. Without
bounds no test can: it is by large samples, and what it shows is said to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from felicific._audit.measured import Measured, groups_compared, regrouped
from felicific._audit.methods import DEBIASED, Sampled, measure_loss, sample_of
from felicific._fit.certificate import Certificate, tested
from felicific._frontier.frontier import Frontier
from felicific._people.people import People
from felicific._policy.policy import Policy
from felicific._problem.happiness import Measure
from felicific._problem.missing_labels import condition
from felicific._problem.problem import Problem
from felicific._problem.requirement import ComparedMeans, Share
from felicific._problem.unions import Union, compared, whom_left_out
from felicific._problem.worse_off import WorseOff
from felicific._statistics.bets import MOST
from felicific._statistics.gaps import PAIRS, ratio_shown, shown_by_pairs
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import CertificateError, ConstraintError

#: Candidates in the sequence, and how many margins below the gap that was asked for it starts.
STEPS, REACH = 21, 3.0

#: Most candidates that there are: those, and the tightest of all.
CANDIDATES = STEPS + 1

#: Share of the error probability that is spent on the statement about the loss.
LOSS_SHARE = 0.1

#: In the place of a method.
TOO_SKEWED = "too skewed"

#: How ratios are shown where bets cannot be.
LARGE_RATIO = "t test of every pair of means (large samples)"

#: Share of every group that is held out; docs/evidence/safe-fits.md: fewer or more return fewer policies.
HELD_OUT = 0.6


def check_certifiable(gap: Any, problem: Problem, *, by_model: bool = False) -> None:
    """Refuse at once what no number of rows could show, and what no test is there for.

    ``by_model``: the policy sees nothing but what the model says, and the baseline is what the model decides. Then a
    policy alone may tell that nobody is worse off.
    """
    if not problem.comparisons:
        raise ConstraintError(
            f"The gap is {gap!r}, so there is nothing to be confident of.",
            "Give a gap together with confidence=, or leave confidence= out.",
        )
    for asked in problem.requirements:
        if not asked.provable and asked.is_plain_gap:
            raise ConstraintError(
                "A gap of 0 can never be shown, with any number of rows: sampling error is always left.",
                "Allow a small gap with confidence=, such as what chance alone shows (an audit states it as the "
                "bias).",
            )
        told = isinstance(asked, WorseOff) and by_model and asked.lessens(problem) is not None
        if not asked.provable and not told:
            said = next((part.words for part in asked.comparisons(problem.measures)), str(asked))
            raise ConstraintError(
                f"That {said} can never be shown, with any number of rows.",
                "Allow a little with confidence=: 0.01 of the people to lose, a ratio of 0.95, or a gap of 0.02.",
            )
    for part in problem.comparisons:
        measure = problem.measures[part.j]
        if measure.over:
            raise ConstraintError(
                f"Of {measure.name!r} no gap can be shown: there is no distribution-free bound for a ratio yet.",
                "Leave confidence= out, and audit the policy on rows it has not seen.",
            )


def by_construction(problem: Problem, policy: Policy, seen: Sequence[People]) -> dict[str, str]:
    """What was asked and holds of anybody by how the policy is made, with a sentence that says why.

    ``seen`` are the people by whom it is checked that the model decides as the policy takes it to.
    """
    found = {}
    for asked in problem.requirements:
        less = asked.lessens(problem) if isinstance(asked, WorseOff) else None
        if less is None or not isinstance(asked, WorseOff):
            continue
        doubt, model = policy.worsens(less, asked.shares(policy.measures, policy.groups), seen)
        if doubt:
            raise CertificateError(
                f"That {asked} does not hold by construction: {doubt}.",
                "Allow a little with confidence=, such as WorseOff(0.01), or leave confidence= out.",
            )
        found[str(asked)] = (
            f"By construction, and not by the test, {asked.nobody}: wherever they stand, no decision of the policy is "
            f"worth less to them than the model's {model}."
        )
    return found


def split(
    codes: Codes,
    groups: tuple[Any, ...],
    weight: Floats | None,
    salt: str,
    *,
    sampling: bool = False,
    cluster: Codes | None = None,
    share: float = HELD_OUT,
    needed: Sequence[int] | None = None,
) -> tuple[Floats, Floats]:
    """How many people of every row are fitted on, and how many held out: the same share of each group, at random.

    A row of frequency 5 is five people, who may come to lie on both sides. With ``sampling`` weights a row is one
    person; with a ``cluster`` for every row, whole clusters are held out. Both sides need people of every group, or of
    those that are ``needed``.
    """
    rng = np.random.default_rng(int(salt[-32:], 16))
    people = np.ones(len(codes)) if weight is None else weight
    needed = range(len(groups)) if needed is None else needed
    if sampling or cluster is not None:
        units = np.arange(len(codes)) if cluster is None else cluster
        held = np.where(_held_units(units, codes, groups, people, rng, share, needed)[units], people, 0.0)
        return people - held, held
    held = np.zeros(len(codes))
    for z, group in enumerate(groups):
        rows = np.flatnonzero(codes == z)
        count = people[rows].astype(np.int64)
        out = int(count.sum() * share)
        if out < 2 and z in needed:
            raise CertificateError(
                f"The group {group!r} has {count.sum()} people, of whom {share:.0%} are to be held out.",
                "Pass more rows of it, merge it with another, or leave confidence= out.",
            )
        if (count == 1).all():
            held[rng.choice(rows, out, replace=False)] = 1.0
        else:
            held[rows] = rng.multivariate_hypergeometric(count, out, method="marginals")
    return people - held, held


def _held_units(
    units: Codes,
    codes: Codes,
    groups: tuple[Any, ...],
    people: Floats,
    rng: np.random.Generator,
    share: float,
    needed: Sequence[int],
) -> Truths:
    """Which units are held out: of those that belong to a group more than to others the same share, at random."""
    size = np.zeros((int(units.max()) + 1, len(groups)))
    np.add.at(size, (units, codes), people)
    home, held = size.argmax(axis=1), np.zeros(len(size), dtype=bool)
    for z in range(len(groups)):
        mine = np.flatnonzero((home == z) & size.any(axis=1))
        held[rng.choice(mine, int(len(mine) * share), replace=False)] = True
    for z, group in enumerate(groups):
        out, left = (int(np.count_nonzero(size[rows, z])) for rows in (held, ~held))
        if z in needed and (out < 2 or left < 1):
            raise CertificateError(
                f"The group {group!r} has {out + left} clusters or weighted rows, of which a part is to be held out.",
                "Pass more rows of it, merge it with another, or leave confidence= out.",
            )
    return held


@dataclass(frozen=True)
class Shown:
    """What the rows held out say of one comparison under a candidate.

    ``gap`` and ``error`` are how far apart the groups are there (of a ratio, what it is), and the standard error of
    that; ``smallest`` how many people the smallest of them has, ``surely`` whether the test holds for any distribution.
    """

    claim: ComparedMeans
    passed: bool
    gap: float
    error: float
    method: str
    surely: bool
    smallest: int


@dataclass(frozen=True)
class Kept:
    """What the rows held out say of a share under a candidate: how large it is there, and at most with confidence."""

    share: Share
    found: float
    high: float
    method: str
    surely: bool

    @property
    def passed(self) -> bool:
        """Whether it is shown to be small enough."""
        return self.high <= self.share.at_most


@dataclass(frozen=True)
class Trial:
    """How gaps are tested on people held out.

    Attributes
    ----------
    confidence : float
        One minus the probability of returning a policy that violates a gap or the stated loss.
    claims : tuple of ComparedMeans
        Means of whom are to be shown close to each other.
    fitted : Measured
        What the policy that was asked for does to the people fitted on: how much values vary, which shapes stakes and
        the candidates, and never what a test says is true.
    shares : tuple of Share
        Shares of people to be shown.
    """

    confidence: float
    claims: tuple[ComparedMeans, ...]
    fitted: Measured
    shares: tuple[Share, ...] = ()

    @property
    def gamma(self) -> float:
        """That probability, as it was written: 1 - 0.95 is 0.05."""
        return float(f"{1.0 - self.confidence:.12g}")

    @property
    def level(self) -> float:
        """Of every test of a gap."""
        return (1.0 - LOSS_SHARE) * self.gamma

    @property
    def gaps(self) -> dict[int, float]:
        """Gaps of all groups that are to be shown, by measure: what the sequence of candidates tightens."""
        return {claim.j: claim.at_most for claim in self.claims if claim.plain}

    def shows(self, persons: Measured, salt: str) -> list[Shown]:
        """What is shown of everything that is compared, all at one level."""
        return [self._shows(persons, claim, salt) for claim in self.claims]

    def _compared(self, claim: ComparedMeans, persons: Measured) -> tuple[Measured, Measured]:
        """Those held out, and those fitted on, as they are compared.

        By a measure's own gap those whom it compared in the fit; else large enough are both together.
        """
        groups, j = persons.groups, claim.j
        if claim.plain:
            own = groups_compared(persons, j).tolist()
            unions = [Union(groups[z], (z,)) for z in own]
        else:
            both, name = (persons, self.fitted), persons.measures[j].name
            share, seen = claim.whom.min_people < 1, persons.seen + self.fitted.seen
            numbers = sum((one.weighed if share else one.numbers)[:, j] for one in both)
            unions, _ = compared(groups, persons.attributes, np.asarray(numbers), claim.whom, name, seen)
        return regrouped(persons, unions), regrouped(self.fitted, unions)

    def margin(self, claim: ComparedMeans) -> float:
        """By how much tighter means are to be aimed at, so that as many as are held out show it 9 times out of 10."""
        _, fitted = self._compared(claim, self.fitted)
        part = fitted.sample.take(claim.j)
        error = part.sd / np.sqrt(np.maximum(part.n * HELD_OUT / (1.0 - HELD_OUT), 1.0))
        size = 1.0 if claim.ratio == 1.0 else float((part.mean + fitted.origin[claim.j]).max())
        return _errors(self.confidence) * _widest(error, claim) / size if size > 0 else 0.0

    def keeps(self, persons: Measured) -> list[Kept]:
        """What is shown of every share that is asked about, by the limit of a mean at the same level."""
        found = []
        for share in self.shares:
            everyone = [Union("everyone", tuple(range(len(persons.groups))))]
            people = persons if share.z is not None else regrouped(persons, everyone)
            sampled = sample_of(people, share.j)
            z, limits = share.z or 0, sampled.limits(self.level)
            mean, high = (float(part[z] + sampled.origin) for part in (sampled.sample.mean, limits[1]))
            surely = persons.countable and sampled.words_after != DEBIASED
            found.append(Kept(share, mean, high, sampled.words, surely))
        return found

    def _shows(self, persons: Measured, claim: ComparedMeans, salt: str) -> Shown:
        j = claim.j
        persons, fitted = self._compared(claim, persons)
        betting = persons.measures[j].bounds is not None and persons.countable
        betting = betting and not persons.debiased_at[j]
        found = sample_of(persons, j)
        part = found.pairs
        means = part.mean + found.origin
        size = 1.0 if claim.ratio == 1.0 else float(means.max()) or 1.0
        passed, method = (
            self._bets(persons, claim, fitted, salt)
            if betting
            else self._by_large_samples(found, claim, fitted)
        )
        smallest = int((persons.sample.n if persons.countable else persons.counted)[:, j].min())
        error = _widest(part.error, claim) / size
        return Shown(claim, passed, claim.reached(means), error, method, betting, smallest)

    def _bets(self, persons: Measured, claim: ComparedMeans, fitted: Measured, salt: str) -> tuple[bool, str]:
        # Rows may stand in an order that has to do with their values, so people are paired at random: the same for
        # every measure, since some say the same twice (who is decided 1, who is decided 0).
        draw = np.random.default_rng([int(salt[-32:], 16), 0])
        bounds = persons.measures[claim.j].bounds
        assert bounds is not None, "bets need bounds"
        values = (persons.values_of(z, claim.j) for z in range(len(persons.groups)))
        groups = [
            draw.permutation(part) if len(part) <= MOST else draw.choice(part, MOST, replace=False)
            for part in values
        ]
        spread = fitted.sample.sd[:, claim.j]
        return shown_by_pairs(groups, spread, bounds, claim.at_most, self.level, claim.ratio), PAIRS

    def _by_large_samples(self, found: Sampled, claim: ComparedMeans, fitted: Measured) -> tuple[bool, str]:
        # What is rare may be missing among those held out: those fitted on are looked at too.
        before = sample_of(fitted, claim.j)
        if not found.normal or (before.skewed.any() and not before.rate):
            return False, TOO_SKEWED
        if found.ends is not None:
            low, high = (side + found.origin for side in found.limits(self.level / 2.0))
            short = claim.ratio * high[:, None] - low
            np.fill_diagonal(short, -math.inf)
            return bool(short.max() <= claim.at_most), found.means.words
        if claim.ratio == 1.0:
            return found.means.most(self.level) <= claim.at_most, found.means.words
        return ratio_shown(found.pairs, found.origin, claim.ratio, self.level), LARGE_RATIO

    def loss_bound(self, persons: Measured, candidates: int) -> tuple[float | None, bool]:
        """Upper limit of the mean loss of whichever candidate was chosen; and whether it is by large samples."""
        loss = measure_loss(persons)
        if loss is None:
            return None, False
        tail = LOSS_SHARE * self.gamma / candidates
        # Of debiased losses the end of a two-sided interval: one-sided ones hold a little too rarely.
        tail = tail / 2.0 if loss.words_after == DEBIASED else tail
        high = float(loss.limits(tail)[1][0])
        return (high, loss.method == "large") if math.isfinite(high) else (None, False)


def margin(share: float, people: float, confidence: float) -> float:
    """By how much less a share has to be aimed at, so that so many people held out show it nine times out of ten.

    The share that is found there is off by the sampling error of both parts.
    """
    return _errors(confidence) * math.sqrt(share * (1.0 - share) / max(people, 1.0))


def _errors(confidence: float) -> float:
    """Standard errors of what is held out by which a number has to be less than what is allowed for that."""
    level, normal = (1.0 - LOSS_SHARE) * (1.0 - confidence), NormalDist()
    return normal.inv_cdf(1.0 - level) + normal.inv_cdf(0.9) / math.sqrt(1.0 - HELD_OUT)


def _widest(error: Floats, claim: ComparedMeans) -> float:
    """The standard error of the difference that is known least."""
    least = np.sort(error)[-2:]
    return float(np.hypot(least[-1], claim.ratio * least[0]))


def certify(
    start: Policy,
    line: Frontier,
    trial: Trial,
    measured_of: Callable[[Policy], Measured],
    finish: Callable[[Policy], Policy],
) -> tuple[Policy, Certificate]:
    """The loosest policy of the frontier that is shown to keep every gap at most what is allowed.

    Parameters
    ----------
    start : Policy
        What is tried where no gap of all groups is to be shown: it aims at less than what is asked of the others.
    line : Frontier
        Of the rows that were fitted on.
    trial : Trial
    measured_of : callable
        What a policy does to the people held out.
    finish : callable
        Makes a policy of the frontier the one that will decide (its salt, its rounding).
    """
    taus = _sequence(line, trial) if trial.gaps else [math.nan]
    chosen: tuple[Policy, list[Shown], list[Kept], Measured] | None = None
    for tau in taus:
        policy = finish(start)
        if trial.gaps:
            limits = {c.name: tau * r for c, r in zip(line.measures, line.ray, strict=True) if r < math.inf}
            policy = finish(line.at(gap=limits))
        persons = measured_of(policy)
        shown, kept = trial.shows(persons, policy.salt), trial.keeps(persons)
        failed = [part for part in shown if not part.passed]
        if failed or not all(part.passed for part in kept):
            if chosen is None:
                raise _failure(line, trial, tau, failed, kept, persons)
            break
        chosen = policy, shown, kept, persons
    assert chosen is not None, "the sequence is never empty"
    policy, shown, kept, persons = chosen
    loss, roughly = trial.loss_bound(persons, len(taus))
    names = [measure.name for measure in policy.measures]
    certificate = tested(
        policy.measures,
        {names[j]: width for j, width in trial.gaps.items()},
        loss,
        trial.confidence,
        int(persons.seen.sum()),
        min(part.smallest for part in shown),
        list(dict.fromkeys([part.method for part in shown] + [part.method for part in kept])),
        line.loss_name,
        (
            *(_called(part.claim, names) for part in shown if not part.surely),
            *(part.share.words for part in kept if not part.surely),
            *(["loss"] if roughly else []),
        ),
        (
            *(part.claim.words for part in shown if not part.claim.plain),
            *(part.share.words for part in kept),
        ),
        [reason.rstrip(".") for reason in whom_left_out(policy.left_out)],
        _condition(persons),
    )
    return policy, certificate


def _condition(persons: Measured) -> str:
    """What the promise rests on where labels are missing; empty where none is that matters."""
    debiased = persons.debiased
    if debiased is None:
        return ""
    if debiased.max_odds_ratio > 1.0:
        return condition(debiased.max_odds_ratio)
    return f"if {'the odds of having a label are known' if debiased.by_proba else 'the table explains who has a label'}"


def _called(claim: ComparedMeans, names: list[str]) -> str:
    """What is said of a comparison: of a gap of all groups, the name of its measure."""
    return names[claim.j] if claim.plain else claim.words


def _sequence(line: Frontier, trial: Trial) -> list[float]:
    """Places on the frontier, tightest first, where the test is expected to begin to fail.

    They depend on the rows fitted on alone: how much values vary there, and how many rows there are.
    """
    allowed, spread = trial.gaps, trial.fitted.sample
    asked = [j for j in allowed if line.ray[j] > 0]
    least, last = float(line.tau[0]), float(line.tau[-1])
    top = min((allowed[j] / line.ray[j] for j in asked), default=last)
    top = max(least, min(top, last))
    error = spread.sd / np.sqrt(np.maximum(spread.n * HELD_OUT / (1.0 - HELD_OUT), 1.0))
    largest = {j: np.sort(error[groups_compared(trial.fitted, j), j])[-2:] for j in asked}
    widest = {j: float(np.sqrt((both**2).sum())) for j, both in largest.items()}
    margin = max((_quantile(trial) * widest[j] / float(line.ray[j]) for j in asked), default=0.0)
    start = max(least, top - REACH * margin)
    # First the tightest there is, in case that the margin is too small a guess.
    return sorted({least, *np.linspace(start, top, STEPS).tolist()})


def _quantile(trial: Trial) -> float:
    """How many standard errors below the gap allowed a test passes in half of all cases; of bets a little more."""
    return NormalDist().inv_cdf(1.0 - trial.gamma)


def _more_people(persons: Measured, measure: Measure) -> str:
    """What helps where nothing can be shown: bounds only where people count one by one and none are known yet."""
    more = (
        "more rows of the smallest group"
        if persons.clusters is None
        else "more clusters of the smallest group"
    )
    if persons.countable and measure.bounds is None:
        return f"State bounds= of the happiness, or pass {more}."
    return f"Pass {more}."


def _failure(
    line: Frontier, trial: Trial, tau: float, failed: list[Shown], kept: list[Kept], persons: Measured
) -> CertificateError:
    """What could not be shown of the tightest policy."""
    if not failed:
        return _not_kept(kept, persons)
    if all(part.claim.plain for part in failed):
        return _refused(line, trial, tau, failed, persons)
    worst = next(part for part in failed if not part.claim.plain)
    measure, z = line.measures[worst.claim.j], _quantile(trial)
    number = measure.quantity if worst.claim.ratio == 1.0 else "{:.4g}".format
    away = (z + 0.4) * worst.error if math.isfinite(worst.error) else 0.0
    could = max(worst.gap + away, 1.1 * worst.claim.at_most)
    if worst.claim.ratio < 1.0:
        could = max(min(worst.gap - away, 0.95 * worst.claim.ratio), 0.0)
    problem = (
        f"No policy could be shown to keep to: {worst.claim.words}. On rows held out ({worst.smallest:,} in the "
        f"smallest of those compared) it is {number(float(f'{worst.gap:.4g}'))}, with a standard error of "
        f"{number(float(f'{worst.error:.3g}'))}."
    )
    if worst.method == TOO_SKEWED:
        problem += " The values are so skewed that a test by large samples cannot be trusted with so few."
        return CertificateError(problem, _more_people(persons, measure))
    return CertificateError(
        problem, f"Ask for about {number(float(f'{could:.3g}'))}, or pass more rows of the smallest group."
    )


def _not_kept(kept: list[Kept], persons: Measured) -> CertificateError:
    """Say which share could not be shown to be small enough, and what could have been."""
    worst = max((part for part in kept if not part.passed), key=lambda part: part.high - part.share.at_most)
    smallest = int(persons.seen.min())
    return CertificateError(
        f"No policy could be shown to keep to: {worst.share.words}. On rows held out ({smallest:,} in the smallest "
        f"group) the tightest one has {worst.found:.2%}, and with confidence at most {worst.high:.2%}.",
        f"Allow about {1.1 * worst.high:.2%}, or pass more rows.",
    )


def _refused(
    line: Frontier, trial: Trial, tau: float, failed: list[Shown], persons: Measured
) -> CertificateError:
    """Say what was found on the tightest policy, how many rows would do, and which gap could have been shown."""
    z = _quantile(trial)
    worst = max(failed, key=lambda part: (part.gap + z * part.error) / part.claim.at_most)
    j, gap, error = worst.claim.j, worst.gap, worst.error
    measure, width = line.measures[j], worst.claim.at_most
    smallest = int(persons.seen.min())
    problem = (
        f"No policy could be shown to keep the gap of {measure.name!r} at most {measure.quantity(width)}: "
        f"the tightest one, tested on rows held out ({smallest:,} in the smallest group), has a gap of "
        f"{measure.quantity(float(f'{gap:.4g}'))}"
    )
    if not math.isfinite(error) and not worst.surely:
        return CertificateError(
            f"{problem}, and nothing is known of how its values vary.",
            _more_people(persons, measure),
        )
    error = error if math.isfinite(error) else 0.0
    problem += f" with a standard error of {measure.quantity(float(f'{error:.3g}'))}."
    if worst.method == TOO_SKEWED:
        return CertificateError(
            f"{problem} The values are so skewed that a test by large samples cannot be trusted with so few.",
            _more_people(persons, measure),
        )
    room = width - (tau * float(line.ray[j]) if math.isfinite(line.ray[j]) else gap)
    # However little values vary, a bet wins no more than what is allowed, measured by what a pair may lose.
    counted = float(persons.sample.n[:, j].min())
    span = measure.bounds[1] - measure.bounds[0] if worst.surely and measure.bounds else 0.0
    goal = math.log(1.0 / trial.level)
    wide = max(gap + max((z + 0.4) * error, goal * span / (counted + goal)), 1.1 * width)
    could = measure.quantity(float(f"{wide:.3g}"))
    if room <= 0:
        return CertificateError(
            problem, f"No number of rows would do for policies of this kind; a gap of {could} could be shown."
        )
    # Enough to pass about nine times out of ten: the gap seen on the rows held out is off by the sampling error of
    # both parts, on either side, so by less than 1.645 times their common standard error in nine cases of ten.
    noise = 1.645 / math.sqrt(1.0 - HELD_OUT) * error
    more = max(1.2, ((z * error + noise) / room) ** 2, 1.5 * goal * (span - width) / (room * counted))
    rows = int(float(f"{math.ceil(smallest / HELD_OUT * more):.2g}"))
    return CertificateError(
        problem,
        f"About {rows:,} rows in the smallest group would do ({smallest / HELD_OUT:,.0f} were passed); with these, "
        f"a gap of about {could} could be shown.",
        rows,
    )
