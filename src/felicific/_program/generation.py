r"""Individual policies by column generation: all of x is the signal.

A deterministic policy m decides, for person i of group z,

.. math:: d_m(i) = \arg\min_d \; \alpha_m c(d; i) - \sum_{zj} \kappa_{mzj} v_j(d; i, z)

with c the expected loss and v the expected happiness under calibrated probabilities of the label; it never
sees the label. A master program mixes such policies, one mixture per group: it is the program of
:mod:`felicific._program.program` with a single signal whose decisions are the columns m. Its multipliers give the next
:math:`\kappa`; when no column improves the mixture, it is optimal among all policies that see x.

Two ledgers value a column. The *plug-in* ledger uses expected values: pricing and the duality gap belong to it.
The *real* ledger uses the labels of the fitted rows: the mixture that is returned is optimal for it among the
columns found, so the gap on the fitted rows is real.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from felicific._problem.exploration import Explored
from felicific._problem.linear import FractionLevel, Goal, Linear, Rows
from felicific._problem.requirement import Requirement, of_means, rows_of
from felicific._problem.requirements import left_out_by
from felicific._problem.unions import LeftOut, LeftOutBy
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.cell_sums import CellSums
from felicific._program.crowd import (
    CHOOSES,
    LIKELY,
    Choice,
    Crowd,
    Ground,
    Ledger,
    Ledgers,
    Mixture,
    Sums,
    sums_of,
)
from felicific._program.evidence import Evidence
from felicific._program.fractions import (
    COARSE,
    Answered,
    Level,
    UndecidedError,
    exchanged,
    find_level,
    fraction_level,
    least_eased,
)
from felicific._program.master import Answer, Master, solve_rows
from felicific._program.program import Program
from felicific._program.signals import Signal
from felicific._program.slopes import Slopes, slopes_of
from felicific._program.solution import (
    Solution,
    answered,
    checked_solution,
    conflict_error,
    gap_error,
    irreducible,
    linear_rows,
    search_level,
)
from felicific._typing import Codes, Floats
from felicific.exceptions import InfeasibleError, SolverError

#: Generation stops when the loss is known to be within this of the optimum, relative to the largest regret.
TOLERANCE = 1e-8
PASSES = 300


STAGNATION = 8

#: Levels of fractions that are looked at, each of which adds columns.
LEVELS = 300

#: Milder versions of a policy, as shares of its weights of happiness.
STEPS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Generated:
    """A mixture with what it achieves and how the search ended.

    ``outcome``, what is decided ``baseline`` and what is done ``unconstrained`` are measured on the real ledger,
    ``plug_in`` on the expected one;
    ``duality_gap`` bounds how far ``plug_in_optimum``, the loss of the plug-in program's own mixture, is from
    the least possible one. ``evidence`` is what the means of the outcome rest on, ``explored`` are the chances that
    people keep, ``slopes`` how the means follow the weights of happiness, ``left_out``
    whom gaps do not compare.
    """

    mixture: Mixture
    outcome: Outcome
    baseline: Outcome | None
    unconstrained: Outcome
    plug_in: Outcome
    plug_in_optimum: float
    prices: dict[str, float]
    passes: int
    stopped: str
    duality_gap: float
    goals: tuple[Goal, ...] = ()
    evidence: Evidence | None = None
    explored: tuple[Explored, ...] = ()
    slopes: Slopes | None = None
    left_out: LeftOutBy = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """The deterministic policies found so far, and their sums on one ledger, which is called ``name``."""

    crowd: Crowd
    name: str
    totals: Sums
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    loss: list[Floats] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)
    changed: list[Floats] = field(default_factory=list)
    gains: list[Floats] = field(default_factory=list)
    loses: list[Floats] = field(default_factory=list)
    square: list[Floats | None] = field(default_factory=list)

    @property
    def counted(self) -> Floats:
        """Weight of who is counted."""
        return self.totals[f"{self.name} counted"]

    @property
    def divisor(self) -> Floats:
        """The same, and 1 where nobody is counted."""
        return np.where(self.counted > 0, self.counted, 1.0)

    def add(self, sums: Sums) -> None:
        """Take in one more deterministic policy."""
        self.loss.append(sums[f"{self.name} loss"])
        self.value.append(sums[f"{self.name} value"])
        for name in ("changed", "gains", "loses"):
            if name in sums:
                getattr(self, name).append(sums[name])
        self.square.append(sums.get(f"{self.name} square"))

    def aggregates(self) -> Aggregates:
        """The master's aggregates: one signal, and columns for decisions."""
        crowd, m, mass = self.crowd, len(self.loss), self.totals["mass"]
        squares = [square for square in self.square if square is not None]
        now = [self.totals[f"{self.name} baseline {what}"] for what in ("loss", "value")]
        sums: dict[str, Floats] = {
            "mass": mass[:, None],
            "loss": np.array(self.loss).T[:, None, :],
            "value": np.array(self.value).transpose(1, 0, 2)[:, None, :, :],
            "among": self.counted[:, None, :],
        }
        if crowd.knows_baseline:
            sums |= {"baseline_loss": now[0][:, None], "baseline_value": now[1][:, None, :]}
        if self.changed:  # whom a column decides on as the baseline does
            sums["baseline_mass"] = (mass[:, None] - np.array(self.changed).T)[:, None, :]
            sums["gains"] = np.array(self.gains).transpose(1, 0, 2)[:, None, :, :]
            sums["loses"] = np.array(self.loses).transpose(1, 0, 2)[:, None, :, :]
        if len(squares) == m:
            sums["square"] = np.array(squares).transpose(1, 0, 2)[:, None, :, :]
        return _Master(
            classes=np.arange(m),
            groups=crowd.groups,
            attributes=crowd.attributes,
            left_out=self.left_out,
            lowest=self.totals[f"{self.name} least"],
            certain=self.totals.get("real counted", self.counted),
            weight_kind=crowd.weight_kind,
            whole=crowd.whole,
            measures=crowd.measures,
            signal=_OneSignal(),
            loss_name="",
            origin=crowd.origin,
            sums=CellSums.of_dense(sums),
            rows=self.totals["rows"].astype(np.int64),
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Master(Aggregates):
    """Aggregates whose decisions are columns: what people could get at least is not told by those found so far."""

    lowest: Floats = field(default_factory=lambda: np.zeros(0))
    certain: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def least(self) -> Floats:
        """The least mean that decisions can give every group."""
        return np.asarray(self.lowest / self.divisor)

    @property
    def numbers(self) -> Floats:
        """How many people each measure counts by what is known of them, on both ledgers."""
        return self.people_in(self.certain)


@dataclass(frozen=True)
class _OneSignal(Signal):
    """The master's only signal."""

    kind: ClassVar[str] = "mixture"

    def size(self, n_classes: int) -> int:
        return 1

    def baseline(self, n_classes: int) -> Codes:
        return np.zeros(1, dtype=np.intp)

    def spread(self, score: Any, predicted: Any) -> Any:
        return []

    def runs(self, n_classes: int) -> list[range]:
        return [range(1)]

    def describe(self, first: int, last: int, classes: list[Any], digits: int = 12) -> str:
        return "a person"

    def log_policies(self, n_classes: int) -> float:
        return math.log(n_classes)


class Generator:
    """The columns, priced on the plug-in ledger and summed on both."""

    def __init__(
        self, ground: Ground, requirements: Sequence[Requirement], moved: Sequence[Requirement] = ()
    ) -> None:
        crowd = ground.crowd
        self.ground, self.crowd, self.requirements = ground, crowd, requirements
        totals = ground.totals()
        self.expected = Columns(crowd, "expected", totals)
        self.real = Columns(crowd, "real", totals) if ground.has_real else self.expected
        self.fixed: list[int] = []
        self.alpha: list[float] = []
        self.kappa: list[Floats] = []
        self.changed: list[Floats] = []
        self.passes, self.decided = 0, True
        self.total = float(totals["mass"].sum())
        self.swing = self._swing(totals)
        none = np.zeros((len(crowd.groups), len(crowd.measures)))
        # The model's own choice, and deciding alike about everybody, meet many requirements whatever the labels are.
        own = [] if crowd.likely is None else [LIKELY]
        self.add_all(
            [(1.0, none, CHOOSES), *((0.0, none, fixed) for fixed in (*own, *range(len(crowd.decisions))))]
        )
        sums, asked = self.real.aggregates(), (*moved, *requirements)
        counts = sums.measures, sums.groups, sums.numbers, sums.counted
        self.real.left_out.update(left_out_by(asked, *counts))
        self.expected.left_out.update(self.real.left_out)
        self.expected.aggregates().check_complete()
        self.real.aggregates().check_complete()

    def _swing(self, totals: Sums) -> Floats:
        """The largest swing of a mean that decisions can cause: the natural unit of each measure.

        Of one that no decision changes, how large it is.
        """
        swing, size = (
            (totals[name] / self.expected.counted.clip(min=1e-300)).max(axis=0) for name in ("spread", "size")
        )
        return np.where(swing > 0, swing, np.where(size > 0, size, 1.0))

    def add(self, alpha: float, kappa: Floats, fixed: int = CHOOSES) -> None:
        """Take a deterministic policy in as a column."""
        self.add_all([(alpha, kappa, fixed)])

    def add_all(self, choices: list[Choice]) -> None:
        """Take in several, by one pass over the people."""
        for (alpha, kappa, fixed), sums in zip(choices, self.ground.columns(choices), strict=True):
            self.fixed.append(fixed)
            self.alpha.append(alpha)
            self.kappa.append(kappa)
            self.changed.append(sums["change"])
            self.expected.add(sums)
            if self.real is not self.expected:
                self.real.add(sums)
            self.passes += 1

    @property
    def changes(self) -> Floats:
        """What each column of the master changes, at most 1, of shape (tables, 1, columns)."""
        changes = np.array(self.changed).T
        changes = changes if self.crowd.sees_group else changes.sum(axis=0, keepdims=True)
        largest = changes.max()
        return np.asarray(changes / (largest if largest > 0 else 1.0))[:, None]

    def approach(self, columns: Iterable[int]) -> None:
        """Where happiness looks at y, take in milder versions of some columns: steps from the baseline to theirs.

        Many mixtures then meet the requirements on the real labels equally well, and one of them changes little.
        """
        if not any(measure.looks_at_y for measure in self.crowd.measures):
            return
        weighing = [m for m in columns if self.alpha[m] and self.kappa[m].any()]
        self.add_all([(self.alpha[m], step * self.kappa[m], CHOOSES) for m in weighing for step in STEPS])

    @property
    def policies(self) -> Mixture:
        """The deterministic policies, whom nobody follows yet."""
        shape = (len(self.crowd.groups), len(self.fixed))
        return Mixture(np.array(self.fixed), np.array(self.alpha), np.array(self.kappa), np.zeros(shape))

    def rows(self, columns: Columns) -> list[Rows]:
        """The requirements, as they read on one ledger."""
        return rows_of(self.requirements, columns.aggregates())

    def master(self, columns: Columns) -> Program:
        """The program that mixes the columns."""
        return Program.of(
            columns.aggregates(),
            sees_group=self.crowd.sees_group,
            scales=self.swing,
            change_cost=self.crowd.change_cost,
            changes=self.changes,
        )

    def reduced(self, columns: Columns, alpha: float, worth: Floats) -> float:
        """How much the newest column improves on the mixture, in units of the master's objective."""
        happy = np.einsum("mzj,zj->mz", np.array(columns.value), worth / columns.divisor)
        losses = np.array(columns.loss)
        if self.crowd.change_cost:
            losses = losses + self.crowd.change_cost * np.array(columns.changed)
        scores = alpha / self.total * losses - happy
        if not self.crowd.sees_group:
            scores = scores.sum(axis=1, keepdims=True)
        return float((scores[:-1].min(axis=0) - scores[-1]).clip(min=0.0).sum())

    def kappa_of(self, columns: Columns, worth: Floats) -> Floats:
        """Weights of happiness in a person's choice that belong to these multipliers."""
        return np.asarray(worth * self.total / columns.divisor)

    def reach(self, columns: Columns) -> list[Linear]:
        """Phase 1: add columns until some mixture meets every requirement; the loss has no say.

        Returns the requirements on this ledger. Where they compare fractions, the level of least loss is searched for,
        column by column; the columns serve every level.
        """
        rows = self.rows(columns)
        free = fraction_level(rows)
        if free is None and self.excess(columns, rows) == 0.0:
            return linear_rows(rows)
        if free is not None:
            with suppress(UndecidedError):
                level = self._level(columns, rows, free, COARSE * self.master(columns).spread)
                if level is not None:
                    return linear_rows(rows, level)
        raise self._explain(columns, irreducible(rows, lambda some: self._can_meet(columns, some)))

    def _level(
        self, columns: Columns, rows: list[Rows], free: FractionLevel, tolerance: float
    ) -> Level | None:
        """The level of least loss."""

        def solve(row: FractionLevel) -> Answered | None:
            some = exchanged(rows, free, row)
            if self.excess(columns, some) > 0.0:
                return None
            linear = linear_rows(some)
            if tolerance < math.inf:
                self.descend(columns, linear, tolerance / 4.0)
            program = self.master(columns)
            answer = solve_rows(program, linear, nearest=False)
            return None if answer is None else answered(answer, row)

        return find_level(free, solve, tolerance, most=LEVELS)

    def solved(self, columns: Columns) -> Solution:
        """The best mixture of the columns there are."""
        program, rows, level = self.master(columns), self.rows(columns), None
        free = fraction_level(rows)
        if free is not None:
            with suppress(UndecidedError):
                level = search_level(program, rows, free, COARSE * program.spread)
            if level is None:
                raise conflict_error(rows, proven=False)
        return checked_solution(program, rows, level)

    def _can_meet(self, columns: Columns, rows: list[Rows]) -> bool:
        free = fraction_level(rows)
        if free is None:
            return self.excess(columns, rows) == 0.0
        try:
            return self._level(columns, rows, free, math.inf) is not None
        except UndecidedError:
            self.decided = False
            return False

    def excess(self, columns: Columns, rows: list[Rows]) -> float:
        """Least amount, in swings, by which every mixture exceeds some requirement; 0 when one meets them."""
        linear, excess = linear_rows(rows), math.inf
        for _ in range(PASSES):
            master = Master(self.master(columns), linear)
            if master.run(0.0) or master.missed <= 1e-10:
                return 0.0
            excess, worth = master.missed, master.worth(1.0)
            self.add(0.0, self.kappa_of(columns, worth))
            if self.reduced(columns, 0.0, worth) <= max(1e-10, 1e-8 * excess):
                break
        return excess

    def _explain(self, columns: Columns, conflict: list[Rows]) -> InfeasibleError:
        row = conflict[0]
        # On real labels the search is not exhaustive: columns are priced by what is expected.
        proven = columns is self.expected and self.decided
        if len(conflict) == 1 and isinstance(row, FractionLevel) and row.is_gap:
            return self._least_fraction(columns, row, proven)
        if len(conflict) > 1 or isinstance(row, FractionLevel) or row.width is None:
            return conflict_error(conflict, proven=proven)
        return gap_error(row, self.crowd.measures[row.goal.j], self._least_gap(columns, row), proven=proven)

    def _least_gap(self, columns: Columns, row: Linear) -> float:
        """The least gap that a mixture reaches, adding columns until none brings means closer."""
        swing = float(self.swing[row.goal.j])
        wide = row.at_width(swing)
        for _ in range(PASSES):
            program = self.master(columns)
            answer = Master(program, [wide], on_ray=True).least()
            self.add(0.0, self.kappa_of(columns, answer.worth))
            if self.reduced(columns, 0.0, answer.worth) <= 1e-8 * max(answer.width, 1e-2):
                break
        return answer.width * swing

    def _least_fraction(self, columns: Columns, row: FractionLevel, proven: bool) -> InfeasibleError:
        wide = row.at_width(math.inf)
        if self.excess(columns, [wide]) > 0.0:
            return conflict_error([row], proven=proven)
        program = self.master(columns)
        fractions = answered(_solved(program, [wide.rows]), wide).ratios
        most = float(fractions.max() - fractions.min()) * (1.0 + 1e-9)
        least, sure = least_eased(lambda width: self._can_meet(columns, [row.at_width(width)]), most)
        return gap_error(row, self.crowd.measures[row.goal.j], least, proven=proven and sure)

    def descend(self, columns: Columns, rows: list[Linear], least: float = 0.0) -> tuple[str, float, float]:
        """Phase 2: add columns until none improves the mixture's loss, or by ``least`` at most.

        Says why it stopped, the duality gap, and the loss it belongs to.
        """
        best, idle, bound = np.inf, 0, np.inf
        for _ in range(PASSES):
            program = self.master(columns)
            answer = _solved(program, rows)
            loss = answer.value
            tolerance = max(TOLERANCE * max(program.cost_scale, 1e-300), least)
            idle = 0 if loss < best - tolerance else idle + 1
            best = min(best, loss)
            self.add(1.0, self.kappa_of(columns, answer.worth))
            improvement = self.reduced(columns, 1.0, answer.worth)
            bound = min(bound, best - (loss - improvement))
            if bound <= tolerance:
                return "duality gap closed", max(bound, 0.0), best
            if idle >= STAGNATION:
                return "stagnation", max(bound, 0.0), best
        return f"{PASSES} passes", max(bound, 0.0), best


def _solved(program: Program, rows: list[Linear]) -> Answer:
    """Solve a master that some mixture is known to meet."""
    answer = solve_rows(program, rows, nearest=False)
    if answer is None:
        raise SolverError(
            "The master program lost its answer.", "Please report it, with the data if you can."
        )
    return answer


def generate(ground: Ground, requirements: Sequence[Requirement]) -> Generated:
    """Find the mixture of deterministic policies of least loss that meets every requirement.

    Parameters
    ----------
    ground : Ground
        The people: expected values for pricing; values under the real labels, if there are any, for the final mixture.
        The chances that they keep are a part of what any policy does to them.
    requirements : sequence of Requirement
        What the mixture has to meet.
    """
    asked = of_means(requirements)
    if not ground.chances:
        return _generate(ground, asked)[0]
    try:
        found, slopes = _generate(ground, asked)
    except InfeasibleError as error:
        raise _keeping_conflict(ground, asked, error) from error
    held, total = ground.explored(found.mixture), float(ground.totals()["mass"].sum())
    explored = []
    for chance in ground.chances:
        others = tuple(one for one in ground.chances if one is not chance)
        without = _generate(ground.keeping(others), asked)[0]
        share, loss = float(held[chance.words].sum()) / total, found.outcome.loss - without.outcome.loss
        explored.append(Explored(chance, share, loss))
    free = without if len(explored) == 1 else _generate(ground.keeping(()), asked)[0]
    return replace(
        found, explored=tuple(explored), unconstrained=free.unconstrained, prices=found.prices | slopes
    )


def _keeping_conflict(
    ground: Ground, requirements: Sequence[Requirement], error: InfeasibleError
) -> InfeasibleError:
    """Say which of the chances that people keep are a part of a conflict: those without which there is none."""
    kept = ground.chances
    for chance in ground.chances:
        rest = tuple(one for one in kept if one is not chance)
        try:
            _generate(ground.keeping(rest), requirements)
        except InfeasibleError as other:
            kept, error = rest, other
    if not kept:
        return error
    words = (*error.conflict, *(chance.words for chance in kept))
    return InfeasibleError(
        f"No policy that was found meets: {'; '.join(words)}, all at once.",
        "Relax or drop any one of them, or let the policy see more.",
        words,
    )


#: By how much a chance is raised to see what it does to sums, which are straight lines in it.
STEP = 1e-6


def _slopes(search: Generator, mixture: Mixture, worth: Floats) -> dict[str, float]:
    """Loss per unit of every chance that people keep, by the envelope of the master program.

    A little more of a chance changes the sums of the policies that are followed and, to first order, nothing else: its
    price is what that adds to the loss, less what it does for the requirements, at their multipliers.
    """
    ground, real = search.ground, search.real
    prices: dict[str, float] = {}

    def value(here: Ground) -> float:
        found = 0.0
        for share, sums in zip(mixture.share.T, here.columns(mixture.choices), strict=True):
            loss = sums[f"{real.name} loss"] + search.crowd.change_cost * sums.get("changed", 0.0)
            happy = (worth / real.divisor * sums[f"{real.name} value"]).sum(axis=1)
            found += float(share @ (loss / search.total - happy))
        return found

    now = value(ground)
    for chance in ground.chances:
        more = replace(chance, at_least=chance.at_least + STEP)
        raised = tuple(more if one is chance else one for one in ground.chances)
        slope = (value(ground.keeping(raised)) - now) / STEP
        prices[chance.words] = prices.get(chance.words, 0.0) + max(slope, 0.0)
    return prices


def _generate(ground: Ground, requirements: Sequence[Requirement]) -> tuple[Generated, dict[str, float]]:
    """The mixture of least loss, and what the chances that people keep cost per unit."""
    search = Generator(ground, requirements)
    try:
        rows = search.reach(search.expected)
        stopped, duality_gap, optimum = search.descend(search.expected, rows)
    except InfeasibleError:
        if search.real is search.expected:
            raise
        # What the probabilities say is out of reach may still be met on the real labels.
        stopped, duality_gap, optimum = "out of reach by the probabilities", np.inf, np.inf
    if search.real is not search.expected:
        rows = search.reach(search.real)
        search.descend(search.real, rows)
        search.approach(range(len(search.alpha)))
    found = search.solved(search.real)
    free = checked_solution(search.master(search.real), [])
    mixture = search.policies.followed(found.q)
    generated = Generated(
        mixture=mixture,
        outcome=found.outcome,
        baseline=search.real.aggregates().baseline_or_none,
        unconstrained=free.outcome,
        plug_in=search.expected.aggregates().evaluate(found.q),
        plug_in_optimum=optimum,
        prices=found.prices,
        passes=search.passes,
        stopped=stopped,
        duality_gap=duality_gap,
        goals=found.goals,
        evidence=Evidence.of(search.real.aggregates(), found.q),
        slopes=slopes_of(search, found.outcome),
        left_out=search.real.left_out,
    )
    worth = found.worth
    return generated, {} if worth is None or not ground.chances else _slopes(search, mixture, worth)


def mixed_outcome(crowd: Crowd, ledger: Ledger, decisions: Floats, left_out: LeftOutBy) -> Outcome:
    """What decision probabilities of shape (n, K) do, valued by one ledger."""
    columns = Columns(crowd, "expected", Ledgers(crowd, ledger).totals(), dict(left_out))
    loss = np.zeros(len(crowd.groups))
    value = np.zeros((len(crowd.groups), len(crowd.measures)))
    for d in range(len(crowd.decisions)):
        part = replace(crowd, weight=crowd.weight * decisions[:, d])
        here = sums_of(part, ledger, np.full(len(decisions), d))
        loss, value = loss + here[0], value + here[1]
    columns.add({"expected loss": loss, "expected value": value})
    return columns.aggregates().evaluate(np.ones((len(crowd.groups), 1, 1)))
