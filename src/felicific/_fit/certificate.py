"""Certificates: what can be promised of a policy to people it has not seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from felicific._people.checks import unclear
from felicific._policy.policy import Policy
from felicific._problem.happiness import LOSES, Measure, written
from felicific._problem.loss import Loss, is_accuracy
from felicific._problem.requirement import Requirement
from felicific._problem.worse_off import WorseOff
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.solution import solve_program
from felicific._shown.parts import COLUMNS, Displayed, Lines, Part
from felicific._statistics.intervals import method_words
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError


@dataclass(frozen=True, repr=False)
class Certificate(Displayed):
    """What holds, with some confidence, for the population that the rows were drawn from.

    Attributes
    ----------
    confidence : float
        Probability, over the rows drawn, with which everything stated holds together.
    basis : {"held-out test", "a priori", "none"}
        Whether the policy was tested on rows held out, or the bound holds for all policies of its kind, or nothing
        can be said.
    gaps : dict of measure name to float
        The gap is at most this, in the measure's unit; measures of which nothing can be said are missing.
    loss : float or None
        The mean loss is at most this, at the group mix of the rows.
    kept : tuple of str
        What else holds, in words: gaps between attributes, ratios, shares of people who get less than from the
        baseline.
    smallest : int
        People in the smallest group that it rests on.
    large_samples : tuple of str
        Of what is stated, what holds by large samples only: names of measures, and "loss". Everything else holds
        for any distribution of values within their bounds.
    sentence : str
        All of it in one sentence; what holds by construction of the policy, and not by the test, in one more.
    """

    confidence: float
    basis: str
    gaps: dict[str, float] = field(default_factory=dict)
    loss: float | None = None
    smallest: int = 0
    large_samples: tuple[str, ...] = ()
    sentence: str = ""
    kept: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.sentence

    def joined(self, sure: Mapping[str, str]) -> Certificate:
        """With what holds by construction, each with a sentence."""
        return replace(self, kept=(*self.kept, *sure), sentence=" ".join([self.sentence, *sure.values()]))

    _whole: ClassVar[str] = "print it, or to_dict()."

    def _parts(self) -> list[Part]:
        return [
            Lines([f"Certificate ({self.basis})"], strong=True),
            Lines([self.sentence], longest=CLAUSES * COLUMNS),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "confidence": self.confidence,
            "basis": self.basis,
            "gaps": dict(self.gaps),
            "loss": self.loss,
            "smallest": self.smallest,
            "large_samples": list(self.large_samples),
            "kept": list(self.kept),
            "sentence": self.sentence,
        }


def no_certificate(reason: str, confidence: float = 0.95) -> Certificate:
    """Nothing can be said, and why."""
    return Certificate(confidence, "none", sentence=f"Nothing can be promised: {reason}")


#: Lines of a certificate of many measures that a notebook shows.
CLAUSES = 12

#: The basis of a certificate of one policy, and not of all of its kind.
TESTED = "held-out test"

AUDIT = "Audit it on rows it has not seen, or fit it with a confidence."


def a_priori(policy: Policy, aggregates: Aggregates | None, loss: Loss, confidence: float) -> Certificate:
    r"""What the bound for all policies of a kind says of the one that was chosen.

    Each group's mean is within :math:`\delta_{zj} = C_j \sqrt{(\log M + \log(2 G (n+1) / \gamma)) / (2 N_{zj})}` of the
    truth for every policy, whichever was chosen by looking at these rows.
    """
    if aggregates is None or policy.sees_x:
        return no_certificate(
            f"policies that see all of x are too many for a bound in advance. {AUDIT}", confidence
        )
    if aggregates.labels is not None or aggregates.unlabelled is not None:
        return no_certificate(
            f"labels are missing, and the bound in advance counts people whose label is known. {AUDIT}",
            confidence,
        )
    if aggregates.weight_kind == "sampling":
        return no_certificate(f"the bound counts people, and sampling weights do not. {AUDIT}", confidence)
    if not aggregates.counts:
        why, remedy = unclear(aggregates.whole, aggregates.total, int(aggregates.rows.sum()))
        return no_certificate(f"{why[:1].lower()}{why[1:]} {remedy}", confidence)
    if not policy.randomize and aggregates.signal.drawn:
        return no_certificate(f"a rounded soft label is no policy of its signal. {AUDIT}", confidence)
    means, counted = policy.outcome.means, aggregates.counted
    n_groups, n_measures = means.shape
    union = math.log(2.0 * n_groups * (n_measures + 1) / (1.0 - confidence))
    log = aggregates.log_policies + union
    gaps, silent = {}, []
    for j, measure in enumerate(policy.measures):
        if measure.aside and measure.name not in policy.basis.allowed:
            continue
        delta = np.sqrt(log / (2.0 * counted[:, j]))
        if measure.over:
            silent.append(f"there is no distribution-free bound for a ratio yet, as {measure.name!r} is")
            continue
        bound = None if measure.bounds is None else _gap_bound(means[:, j], delta, *measure.bounds)
        if bound is None or measure.bounds is None:
            silent.append(f"the range of {measure.name!r} is not known")
        elif bound >= measure.bounds[1] - measure.bounds[0]:
            rows = math.ceil(log / (2.0 * 0.05**2))
            silent.append(
                f"{written(counted[:, j].min(), 6)} rows in the smallest group are too few for {measure.name!r} "
                f"({rows:,} would tell its gap to a tenth of its range)"
            )
        else:
            gaps[measure.name] = bound
    mass = aggregates.mass.sum(axis=1)
    most = None
    if loss.bounds is not None:
        delta, (low, high) = np.sqrt(log / (2.0 * mass)), loss.bounds
        most = min(policy.loss + float((high - low) * (mass @ delta) / mass.sum()), high)
    else:
        silent.append("the range of the loss is not known (that of 'error' and of a cost matrix is)")
    smallest = int(min(mass.min(), counted.min()))
    if not gaps:
        return no_certificate(f"{'; '.join(silent)}. {AUDIT}", confidence)
    found = Certificate(confidence, "a priori", gaps, most, smallest)
    how = f"whichever policy of this kind had been chosen from these rows, {smallest:,} in the smallest group"
    return _worded(found, policy.measures, how, silent, loss.name)


def _gap_bound(mean: Floats, delta: Floats, low: float, high: float) -> float:
    """Largest difference between means that may each be off by delta times the range, and stay within it."""
    span = high - low
    upper = np.minimum(mean + span * delta, high)
    lower = np.maximum(mean - span * delta, low)
    apart = upper[:, None] - lower[None, :]
    np.fill_diagonal(apart, -math.inf)
    return max(0.0, float(apart.max()))


def tested(
    measures: tuple[Measure, ...],
    gaps: dict[str, float],
    loss: float | None,
    confidence: float,
    rows: int,
    smallest: int,
    methods: list[str],
    loss_name: str,
    large_samples: tuple[str, ...],
    kept: tuple[str, ...],
    silent: list[str],
    condition: str,
) -> Certificate:
    """The certificate of a policy that passed a test on rows held out."""
    found = Certificate(confidence, TESTED, gaps, loss, smallest, large_samples, kept=kept)
    ways = ", ".join(method_words(method, smallest) for method in methods)
    how = f"tested on {rows:,} rows held out, {smallest:,} in the smallest group; {ways}"
    return _worded(found, measures, how, silent, loss_name, condition)


def _worded(
    found: Certificate,
    measures: tuple[Measure, ...],
    how: str,
    silent: list[str],
    loss_name: str,
    condition: str = "",
) -> Certificate:
    parts = [
        f"the gap of {measure.name!r} is at most {measure.quantity(found.gaps[measure.name])}"
        for measure in measures
        if measure.name in found.gaps
    ]
    parts += map(_clause, found.kept)
    if found.loss is not None and is_accuracy(loss_name):
        parts.append(f"the accuracy at least {math.floor(1e4 * (1.0 - found.loss)) / 1e4:.2%}")
    elif found.loss is not None:
        parts.append(f"the loss at most {written(found.loss, 6)}")
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    sure = f"{_condition(found)}{', ' + condition if condition else ''}"
    sentence = (
        f"With confidence {found.confidence:.6g}{sure}, {listed} for people like these, at their group mix "
        f"({how})."
    )
    if silent:
        sentence += f" Nothing can be promised of the rest: {'; '.join(silent)}."
    return replace(found, sentence=sentence)


def _clause(words: str) -> str:
    """What was asked for as part of a sentence: means that are compared lack a verb."""
    what, _, limit = words.rpartition(" at ")
    return f"the {what} is at {limit}" if words.startswith(("gap of ", "mean ")) else words


def _condition(found: Certificate) -> str:
    """What the confidence rests on, if it is not for any distribution."""
    rough = found.large_samples
    if not rough:
        return ""
    every = [*found.gaps, *found.kept, *(["loss"] if found.loss is not None else [])]
    if len(rough) == len(every):
        return " by large samples"
    return (
        f" ({' and '.join('the loss' if name == 'loss' else repr(name) for name in rough)} by large samples)"
    )


# ---------------------------------------------------------------------------------------------------------
# What it costs that fewer people lose: the same requirements with a limit on who is worse off.


#: What is left of the largest share of a group that loses, row by row.
LEFT = (0.5, 0.25, 0.0)


class WorseOffRow(NamedTuple):
    """The policy of least loss where few people lose.

    Attributes
    ----------
    at_most : float
        Share of each group that may get less than from the baseline's decision; of the first row what the policy
        itself does.
    loss : float or None
        Its loss; None where no policy meets the other requirements as well.
    loses : dict of group to float, or None
        Share of each group that gets less.
    """

    at_most: float
    loss: float | None
    loses: dict[object, float] | None


def price_of_worse_off(
    sums: Aggregates,
    q: Floats,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool,
    change_cost: ChangeCost = 0.0,
) -> list[WorseOffRow]:
    """The loss of the policy ``q``, and of those where half as many lose, a quarter, and nobody; none if nobody does.

    ``sums`` count who loses.
    """
    names = [measure.name for measure in sums.measures]
    if LOSES not in names:  # of what is measured nobody can lose
        return []
    j = names.index(LOSES)

    def row(at_most: float, outcome: Outcome) -> WorseOffRow:
        shares = outcome.means[:, j].clip(min=0.0).tolist()
        return WorseOffRow(at_most, outcome.loss, dict(zip(sums.groups, shares, strict=True)))

    own = sums.evaluate(q)
    most = float(np.nanmax(own.means[:, j]))
    if most <= 1e-9:
        return []
    found = [row(most, own)]
    for left in LEFT:
        limit = WorseOff(left * most, groups=sums.groups)
        asked = (*requirements, limit)
        try:
            solution = solve_program(sums, asked, sees_group=sees_group, change_cost=change_cost)
            found.append(row(limit.at_most, solution.outcome))
        except InfeasibleError:
            found.append(WorseOffRow(limit.at_most, None, None))
    return found
