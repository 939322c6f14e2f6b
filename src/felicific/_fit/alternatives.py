r"""Less discriminatory alternatives: another way of deciding that leaves groups closer and loses no more.

Half of the people fit: for each candidate, of the policies that see its score and lose at most what is lost by the
baseline plus the slack, the one of least gap (one linear program). What is lost is expected there, by the candidate's
probabilities calibrated group by group on these people's labels: by the labels themselves the search would find
policies that lose little by luck. The other half judges, person by person, by labels. Which half a person is in
depends on the content of the row and on nothing else, so nobody can try again until something is found.

What policies of these scores cannot reach is bounded for all of them at once, as :func:`felicific.sample_size` counts
them: with :math:`\delta_{zj} = C_j \sqrt{(\log M + \log(4 A G (n+2) / \gamma)) / (2 N_{zj})}` for A candidates, every
policy with a loss of at most the baseline's plus the slack has, with probability :math:`1 - \gamma`, an empirical loss
of at most that plus :math:`\Delta_L`, and a gap of at least its empirical one less :math:`\Delta`, the sum of the two
largest
:math:`\delta_{zj}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from felicific._audit.comparison import compare
from felicific._audit.measure_people import measured_of
from felicific._audit.measured import Measured
from felicific._audit.methods import audit_of
from felicific._audit.result import Audit, Interval
from felicific._fit.candidates import (
    Alternative,
    Alternatives,
    Candidate,
    check_candidates,
    classes_of,
    read_candidate,
)
from felicific._fit.safety import split
from felicific._frontier.breakpoints import tightest_at
from felicific._people.checks import WeightKind, check_length, number_clusters
from felicific._people.lazy import missing_first
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._people.sketch import row_hashes
from felicific._policy.cells import CellPolicy, solve_cells
from felicific._policy.ledger import fit_calibration
from felicific._policy.lottery import make_salt
from felicific._policy.policy import Policy
from felicific._problem.happiness import HappinessLike
from felicific._problem.problem import Problem, problem_of
from felicific._problem.requirement import rows_of
from felicific._problem.requirements import Gap
from felicific._program.aggregates import Aggregates
from felicific._program.program import Program
from felicific._program.signals import Score
from felicific._program.solution import linear_rows
from felicific._program.summing import sum_whole
from felicific._statistics.intervals import check_confidence
from felicific._tables.engine import find_engine
from felicific._tables.memory import column_names, count_rows, null_rows
from felicific._typing import Array, Codes, Floats, LossLike, Table
from felicific.exceptions import CertificateError, ConstraintError, DataError, GroupError

#: Of every group, the share that judges.
JUDGES = 0.5


def alternatives(
    candidates: Mapping[str, Any],
    X: Table,
    y: Any,
    *,
    happiness: HappinessLike,
    sensitive_features: Any,
    loss: LossLike = "error",
    loss_slack: float = 0.0,
    decisions: Sequence[Any] | None = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = None,
    cluster: Any = None,
    sees_group: bool = True,
    confidence: float = 0.95,
) -> Alternatives:
    """Search for a less discriminatory alternative: a smaller gap at no more loss than the baseline's.

    Parameters
    ----------
    candidates : dict of name to probabilities, column(s) of X, fitted model or fitted FairClassifier
        Ways of deciding on these people, who must not be those that the models were fitted on. The first is what is
        done at present: what a model predicts, the more probable class of probabilities, the policy of a
        FairClassifier. One candidate is enough: other cut-offs of its own score are then tried. A FairClassifier is
        taken as it is.
    X : table, or None
        The people, in memory. May be left out when nothing looks at it.
    y : array of shape (n,) or column of X
        Labels.
    happiness, sensitive_features, loss, decisions, sample_weight, weight_kind, cluster :
        As for :func:`felicific.audit`.
    loss_slack : number, default=0.0
        By how much the loss per person may exceed the baseline's, in the unit of the loss.
    sees_group : bool, default=True
        False for policies that decide alike in all groups.
    confidence : float, default=0.95
        With which the changes of the gaps hold together for all candidates and measures, likewise those of the loss,
        and the bound on what policies of these scores can reach.

    Returns
    -------
    Alternatives
        Print it, or read ``.found``, ``.best``, ``.rows``, ``.least_gap``, ``.to_dict()``; ``.best.policy`` is the
        policy to use.

    Notes
    -----
    Half of every group fits, the other half judges. With A candidates that are judged and n measures each interval
    has the confidence 1 - (1 - confidence) / (A n), by Bonferroni's inequality. An alternative is found when every gap
    is shown to be smaller than the baseline's, and the loss is not shown to exceed the baseline's by more than the
    slack.

    Examples
    --------
    >>> from felicific import alternatives
    >>> people = {
    ...     "sex": ["f", "m"] * 2000,
    ...     "score": [(i * 37 % 100 + 40 * (i % 2)) / 140 for i in range(4000)],
    ...     "repaid": [int(i * 61 % 103 < i * 37 % 100) for i in range(4000)],
    ... }
    >>> result = alternatives({"baseline": "score"}, people, "repaid", happiness="decision", sensitive_features="sex")
    >>> result.found, result.best.name, result.best.gap < result.baseline.gap
    (True, 'baseline', True)
    """
    level = check_confidence(confidence)
    named = check_candidates(candidates)
    columns = Roles(sensitive_features, y, weight=sample_weight, cluster=cluster, weight_kind=weight_kind)
    if find_engine(X) is not None:
        raise DataError(
            "Alternatives are judged person by person, and the table is not in memory.",
            "Collect the table first, or name the file on the command line.",
        )
    if y is None:
        raise DataError("There are no labels, so nobody knows what is lost.", "Pass y=.")
    if not isinstance(sees_group, bool | np.bool_):
        raise DataError(f"sees_group is {sees_group!r}.", "Say True or False.")
    with missing_first(X, columns):
        people, problem, read = _people(named, X, columns, happiness, loss, decisions)
    slack = _slack(loss_slack, problem)
    problem = replace(problem, sees_group=bool(sees_group))
    search = _Search(people, problem, read, slack, level)
    return search.run()


def _people(
    named: dict[str, Any], X: Table, columns: Roles, happiness: Any, loss: Any, decisions: Any
) -> tuple[People, Problem, list[Candidate]]:
    """Everybody, what is asked, and what each candidate says."""
    labels = columns.column(X, "y")
    assert labels is not None, "checked"
    table = np.empty((len(labels), 0)) if X is None else X
    n = count_rows(table)
    check_length(labels, n, "labels y")
    weight = columns.weights_in(table)
    present = labels if weight is None else labels[weight > 0]
    if len(null_rows(present)):
        raise DataError(
            "Alternatives are judged by labels, and some are missing.",
            "Pass people who all have one; or compare audits of each candidate, which take missing_labels=.",
        )
    classes = columns.classes_in(table, classes_of(named, present).tolist(), weight)
    problem = problem_of(classes, decisions=decisions, happiness=happiness, loss=loss)
    if problem.listed:
        raise DataError(
            f"decisions= lists {problem.decisions.tolist()}, and the candidates decide {classes.tolist()}.",
            "List these in decisions=, from the worst to the best for the person.",
        )
    for measure in problem.measures:
        if measure.over:
            raise ConstraintError(
                f"Of {measure.name!r} no alternative is searched for: who is counted depends on the decision.",
                "Leave it out; solve(...) finds the policy of least loss for a gap of it.",
            )
    if X is None:
        problem.refuse_x()
    people = People.of(table, problem, **columns.read(table, classes, weight))
    if len(people.groups) < 2:
        raise GroupError(
            f"There is one group only: {people.groups[0]!r}.",
            "A gap is between groups: pass rows of at least two.",
        )
    problem.check_groups(people.groups)
    return people, problem, [read_candidate(name, value, people, problem, n) for name, value in named.items()]


def _slack(given: Any, problem: Problem) -> float:
    """The slack, in the unit of the loss."""
    number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if not number or not math.isfinite(given) or given < 0:
        raise ConstraintError(
            f"loss_slack is {given!r}.", "Give a number of 0 or more, in the unit of the loss."
        )
    bounds = problem.loss.bounds
    if bounds is not None and given >= bounds[1] - bounds[0] > 0:
        raise ConstraintError(
            f"loss_slack is {given!r}, and a loss lies between {bounds[0]:g} and {bounds[1]:g}: that allows anything.",
            "Give it in the unit of the loss: of an error rate, 0.01 is one point of per cent.",
        )
    return float(given)


class _Search:
    """The people, the candidates, and what is known of each."""

    def __init__(
        self, people: People, problem: Problem, candidates: list[Candidate], slack: float, confidence: float
    ) -> None:
        self.people, self.problem, self.candidates = people, problem, candidates
        self.slack, self.confidence = slack, confidence
        self.salt = make_salt()
        self.scored = [candidate for candidate in candidates if candidate.score is not None]
        if len(candidates) == 1 and not self.scored:
            raise DataError(
                f"The only candidate, {candidates[0].name!r}, is a policy, which is taken as it is.",
                "Name another one beside it: its model, say.",
            )

    def run(self) -> Alternatives:
        """Fit on one half, judge on the other."""
        fitting, judging = halves(self.people, self.candidates[0])
        policies = self._policies(*fitting)
        baseline = self._audit(self.candidates[0].deciding(*judging))
        tried = [name for name, policy in policies.items() if not isinstance(policy, str)]
        parts = max(len(tried), 1) * len(self.problem.happiness)
        rows = []
        for candidate in self.candidates:
            policy = policies.get(candidate.name)
            if isinstance(policy, str):
                rows.append(Alternative(candidate.name, note=policy))
            elif candidate.name in policies:
                decided = self._decided(candidate, policy, *judging)
                after = self._audit(decided)
                change = compare(baseline, after, confidence=1.0 - (1.0 - self.confidence) / parts)
                assert change.loss is not None, "there are labels"
                rows.append(
                    Alternative(
                        candidate.name,
                        policy,
                        after.gaps,
                        {part.measure.name: part.gap for part in change.measures if part.gap is not None},
                        self._possible(change.loss),
                        self.slack,
                    )
                )
        return Alternatives(
            rows=tuple(rows),
            least_gap=self._least_gap(),
            baseline=baseline,
            slack=self.slack,
            confidence=self.confidence,
            fitted=len(fitting[1]),
            judged=len(judging[1]),
        )

    # -----------------------------------------------------------------------------------------------------
    # Fit

    def _policies(self, people: People, rows: Codes) -> dict[str, Policy | str | None]:
        """For each candidate the policy of least gap at the present loss; why there is none; None for one as it is."""
        gaps, most, sums = self._expected_sums(people, rows)
        fixed = [candidate.name for candidate in self.candidates[1:] if candidate.score is None]
        found: dict[str, Policy | str | None] = dict.fromkeys(fixed)
        for name, joined in sums.items():
            least, policy = least_gap_at(
                joined, widths_of(gaps), most, sees_group=self.problem.sees_group, salt=self.salt
            )
            found[name] = policy or (
                f"no policy that sees its score loses so little: at least {least:.6g}, and {most:.6g} is allowed, on "
                "the people who fit"
            )
        return found

    def _expected_sums(self, people: People, rows: Codes) -> tuple[Floats, float, dict[str, Aggregates]]:
        """The present gaps, the loss that is allowed, and the sums of every score, with labels as they are expected."""
        first = self.candidates[0]
        known = self._expected(first, people, rows)
        baseline = measured_of(first.deciding(*known), self.problem)
        sums = {}
        for candidate in self.scored:
            known = known if candidate is first else self._expected(candidate, people, rows)
            sums[candidate.name] = self._sums(candidate, *known)
        return _gaps(baseline), _loss(baseline) + self.slack, sums

    def _expected(self, candidate: Candidate, people: People, rows: Codes) -> tuple[People, Codes]:
        """Everybody once with every label, as likely as the candidate's score says, calibrated on these labels.

        So a search for the least gap finds fewer policies that only seem to lose little, by the luck of some labels.
        """
        if candidate.score is None:
            return people, rows
        assert people.labels is not None, "there are labels"
        score, (n_groups, labels) = candidate.score[rows], (len(people.groups), self.problem.labels)
        known = fit_calibration("isotonic", score, people.labels, people.codes, n_groups, people.weights)
        chances = known.apply(score, people.codes).T
        label, person = np.nonzero(chances)
        weight = people.weights[person] * chances[label, person]
        again = replace(people.take(person), y=labels[label], labels=label, weight=weight)
        return replace(again, weight_kind="sampling", cluster=None), rows[person]

    def _sums(self, candidate: Candidate, people: People, rows: Codes) -> Aggregates:
        assert candidate.score is not None, "it has a score"
        score, predicted = candidate.score[rows], candidate.probabilities[rows].argmax(axis=1)
        scored = replace(people, score=score, predicted=predicted, checked=True)
        joined = sum_whole(scored, self.problem, Score().matched(score, predicted)).joined()
        joined.check_complete()
        return joined

    # -----------------------------------------------------------------------------------------------------
    # Judge

    def _decided(self, candidate: Candidate, policy: Policy | None, people: People, rows: Codes) -> People:
        if policy is None or candidate.score is None:
            return candidate.deciding(people, rows)
        return policy.decided(replace(people, score=candidate.score[rows], checked=True))

    def _audit(self, decided: People) -> Audit:
        # "Not shown to lose more" is the easier, the wider the interval: so by the narrow one, of large samples.
        persons = replace(measured_of(decided, self.problem), loss_bounds=None)
        allowed = [math.inf] * len(self.problem.happiness)
        return audit_of(persons, allowed, confidence=self.confidence, loss_name=self.problem.loss.name)

    def _possible(self, change: Interval) -> Interval:
        """The change of the loss, no further than its bounds are apart."""
        low, high = self.problem.loss.bounds or (-math.inf, math.inf)
        return replace(change, low=max(change.low, low - high), high=min(change.high, high - low))

    # -----------------------------------------------------------------------------------------------------
    # What policies of these scores cannot reach

    def _least_gap(self) -> Interval | None:
        """The least gap of these scores at the present loss; of several measures, a share of the present gap."""
        if not self.scored:
            return None
        people, rows, first = self.people, np.arange(len(self.people)), self.candidates[0]
        baseline = measured_of(first.deciding(people, rows), self.problem)
        gaps, most = _gaps(baseline), _loss(baseline) + self.slack
        widths = widths_of(gaps) if len(gaps) > 1 else np.ones(1)
        off_loss, off_gap, why = self._margins(baseline, widths)
        lows = [0.0]
        if not why:
            sums = [self._sums(candidate, people, rows) for candidate in self.scored]
            lows = [self._least(joined, widths, most + off_loss) - off_gap for joined in sums]
        _, expected, known = self._expected_sums(people, rows)
        estimates = [self._least(joined, widths, expected) for joined in known.values()]
        high, alpha = math.inf, (1.0 - self.confidence) / 2.0
        if first.score is not None:  # the baseline's is one of these policies
            parts = audit_of(baseline, [math.inf] * len(gaps), confidence=1.0 - alpha).measures
            known_gaps = ((part.gap, width) for part, width in zip(parts, widths.tolist(), strict=True))
            high = max(gap.high / width for gap, width in known_gaps if gap is not None)
        ends = float(min(estimates)), max(0.0, min(lows)), high
        n = float(baseline.counted.min())
        return Interval(*ends, n, "all policies of these scores at once", why)

    def _least(self, joined: Aggregates, widths: Floats, most: float) -> float:
        """Least gap at a loss; infinite where no policy has so little."""
        sees_group = self.problem.sees_group
        part, policy = least_gap_at(joined, widths, most, sees_group=sees_group, salt=self.salt)
        return math.inf if policy is None else part

    def _margins(self, baseline: Measured, widths: Floats) -> tuple[float, float, str]:
        """How far the loss and the gaps of any policy may be off; or why nothing bounds that."""
        loss, parts = self.problem.loss.bounds, [part.bounds for part in baseline.measures]
        unknown = [repr(part.name) for part in baseline.measures if part.bounds is None]
        if not baseline.countable:
            return 0.0, 0.0, "the bound counts independent people, and these are weighted or come in clusters"
        if loss is None or unknown:
            what = "the loss" if loss is None else " and ".join(unknown)
            return 0.0, 0.0, f"without bounds of {what} no gap can be ruled out"
        n_groups, n_measures = baseline.counted.shape
        gamma = (1.0 - self.confidence) / 2.0 / len(self.scored)
        union = math.log(2.0 * n_groups * (n_measures + 2) / gamma)
        log = union + Score().log_policies(len(self.problem.decisions))
        sizes, total = baseline.sizes, baseline.sizes.sum()
        delta = float(sizes @ np.sqrt(log / (2.0 * sizes)) / total) + math.sqrt(union / (2.0 * total))
        spans = np.array([bounds[1] - bounds[0] for bounds in parts if bounds is not None])
        apart = np.sort(spans * np.sqrt(log / (2.0 * baseline.sample.n)), axis=0)[-2:].sum(axis=0)
        return (loss[1] - loss[0]) * delta, float((apart / widths).max()), ""


def _gaps(persons: Measured) -> Floats:
    mean = persons.sample.mean
    return np.asarray(mean.max(axis=0) - mean.min(axis=0))


def _loss(persons: Measured) -> float:
    assert persons.loss_sample is not None, "there are labels"
    return float(persons.loss_sample.mean[0])


def halves(people: People, first: Candidate) -> tuple[tuple[People, Codes], tuple[People, Codes]]:
    """The people who fit and those who judge, with their positions: half of every group, by the rows' contents."""
    score = first.probabilities if first.score is None else first.score
    assert people.labels is not None, "there are labels"
    keys = [*score.T, people.labels, people.codes, row_hashes(people.x, column_names(people.x))]
    together = people.cluster is None and not people.sampling
    order = np.lexsort(keys if together else [people.weights, *keys])
    weight, codes = people.weights[order], people.codes[order]
    try:
        if together:
            held = _held_alike(codes, people.groups, weight, [key[order] for key in keys])
        else:
            cluster = None if people.cluster is None else number_clusters(people.cluster[order])
            how: dict[str, Any] = {"sampling": people.sampling, "cluster": cluster, "share": JUDGES}
            held = split(codes, people.groups, weight, SALT, **how)[1]
    except CertificateError as error:
        raise GroupError(error.problem, "Pass more rows of it, or merge it with another group.") from error
    judges = np.empty(len(people))
    judges[order] = held
    return _part(people, people.weights - judges), _part(people, judges)


def _held_alike(codes: Codes, groups: tuple[Any, ...], weight: Floats, keys: list[Array]) -> Floats:
    """How many people of every row judge, in an order in which equal rows are neighbours: these are drawn as one row.

    So a row of frequency 2 is the row twice.
    """
    new = np.concatenate([[True], np.any([key[1:] != key[:-1] for key in keys], axis=0)])
    start, place = np.flatnonzero(new), np.cumsum(new) - 1
    before = np.cumsum(weight) - weight
    count = np.bincount(place, weight).astype(np.float64)
    held = split(codes[start], groups, count, SALT, share=JUDGES)[1]
    return np.asarray(np.clip(held[place] - (before - before[start][place]), 0.0, weight))


#: A draw that is the same for everybody; what differs are the rows.
SALT = "0" * 32


def _part(people: People, count: Floats) -> tuple[People, Codes]:
    rows: Array = np.flatnonzero(count)
    part = people.take(rows)
    return (part if part.weight is None else replace(part, weight=count[rows])), rows


def least_gap_at(
    joined: Aggregates, widths: Floats, loss: float, *, sees_group: bool, salt: str
) -> tuple[float, CellPolicy | None]:
    """The policy whose gaps are the least part of ``widths`` at no more than this loss, and that part.

    With one measure its width does not matter. None, with the least loss there is, where no policy has so little.
    """
    cheapest = solve_cells(joined, (), sees_group=sees_group, salt=salt)
    names = [measure.name for measure in joined.measures]
    gaps = dict(zip(names, widths.tolist(), strict=True))
    closed = [Gap(measure, gaps[measure.name], min_people=0) for measure in joined.measures]
    program, rows = Program.of(joined, sees_group=sees_group), linear_rows(rows_of(closed, joined))
    point = tightest_at(program, rows, loss)
    if point is None:
        return cheapest.loss, None
    basis = replace(cheapest.basis, allowed={name: point.tau * width for name, width in gaps.items()})
    return point.tau, replace(cheapest, q=point.q, outcome=point.outcome, prices={}, basis=basis)


def widths_of(gaps: Floats) -> Floats:
    """Widths in the proportions of some gaps; one that is closed already is to stay nearly so."""
    present = gaps[gaps > 0]
    return np.where(gaps > 0, gaps, 1e-3 * present.min() if len(present) else 1.0)
