"""Policies that see a signal: a table q(decision given signal, group)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Self

import numpy as np

from felicific._files import check_shape, read_numbers, read_whole, refused
from felicific._people.checks import CHUNK, check_proba, encode_labels, normalised_row
from felicific._people.people import People
from felicific._policy.apply import Lookup, cells_and_labels
from felicific._policy.basis import Basis
from felicific._policy.controls import RankControls
from felicific._policy.explanation import Grounds, Person
from felicific._policy.grounds import grounds_of_cells
from felicific._policy.lottery import NEARLY, faces_lottery
from felicific._policy.policy import Policy, Stretches, Wording
from felicific._policy.sql import case_expression
from felicific._problem.constraints import allowed_gaps
from felicific._problem.exploration import JUST, Chance, Explored, explored_in
from felicific._problem.happiness import HappinessLike
from felicific._problem.requirement import Requirement, Share, chances_of
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost, resolved
from felicific._program.evidence import Evidence
from felicific._program.lotteries import cells_of
from felicific._program.signal_names import SIGNALS, signal_from_json, signal_to_json
from felicific._program.signals import Signal, Spread
from felicific._program.solution import solve_beside_free, solve_program
from felicific._program.values import ValueCells, placed
from felicific._shown.parts import listed
from felicific._tables.memory import Entries
from felicific._typing import Array, Codes, Floats, Lazy, Table, Truths

#: Types of numbers that Python's own hold exactly.
FLOATS = (np.float64, np.float32)

#: The number of the only row.
ONE = np.zeros(1, dtype=np.intp)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellPolicy(Policy):
    """A policy that sees a signal: q(decision given signal, group).

    Attributes
    ----------
    signal : Signal
        What the policy sees besides the group.
    q : array of shape (groups, signals, D)
        Probability of each decision.
    mass : array of shape (groups, signals)
        Weight of the fitted people in each cell.
    unconstrained : Lazy of an array of shape (groups, signals, D), or None
        The table of the best policy of which nothing is required, at the same cost of changes; None in files that do
        not hold it.
    """

    signal: Signal
    q: Floats
    mass: Floats
    unconstrained: Lazy[Floats] | None = None

    @property
    def needs_proba(self) -> bool:
        """Whether the signal is made of probabilities."""
        return self.signal.needs_proba

    @property
    def of_values(self) -> bool:
        """Whether the signal is made of a decision function."""
        return self.signal.of_values

    @property
    def asks(self) -> str:
        """What its signal is made of."""
        if self.signal.of_values:
            return "decision_function"
        return "predict_proba" if self.signal.needs_proba else "predict"

    @property
    def kind(self) -> str:
        """That of its signal."""
        return self.signal.kind

    @property
    def sums_suffice(self) -> bool:
        """Unless a person's signal is decided at random."""
        return not self.signal.drawn

    @property
    def share_drawn(self) -> float | None:
        """Where people are is all there is to know of them, unless their signal is decided at random."""
        if not self.randomize:
            return 0.0
        if self.signal.drawn:
            return None
        cells = faces_lottery(self.q.reshape(-1, self.q.shape[2]))
        return float(np.average(cells, weights=self.mass.ravel()))

    @property
    def is_randomized(self) -> bool:
        """Whether some cell leaves more than one decision open, or a person's signal is decided at random."""
        table = self.q.reshape(-1, self.q.shape[2])
        return self.randomize and (self.signal.drawn or bool(faces_lottery(table).any()))

    @property
    def keeps_baseline(self) -> Truths:
        """Groups whose every cell gets what the model decides there; a label that is drawn tells nothing of it."""
        if self.signal.drawn or self.listed:
            return super().keeps_baseline
        kept = self.q[:, np.arange(self.q.shape[1]), self.signal.baseline(len(self.classes))]
        return np.asarray((kept >= 1.0).all(axis=1))

    def worsens(self, less: Truths, shares: Sequence[Share], seen: Sequence[People]) -> tuple[str, str]:
        """Nothing if no cell, of people or of nobody, leaves a decision open that is worth less than the model's."""
        k, line = len(self.classes), self.signal.line(len(self.classes))
        own = self.label_decisions[self.signal.baseline(k)]
        model = "label" if not self.needs_proba else "most probable label, as of everybody seen"
        if line is not None:
            model = f"own, {self.classes[1].item()!r} above a score of {line:g} as on everybody seen"
        if self.signal.drawn or self.of_values or line not in (None, 0.5) or (own < 0).any():
            return (
                "the border where the model's decision turns is not known, and may be inside a score bin",
                model,
            )
        for people in seen:
            ((cells, _),) = self.look_at(people)[1]
            if people.baseline is not None or (own[cells] != people.decisions_baseline()).any():
                return "the baseline is not told by the model's score alone", model
        worse = np.asarray(((self.q > 0.0) & less[own]).any(axis=(1, 2)))
        if any(worse.any() if share.z is None else worse[share.z] for share in shares):
            return (
                "in some score bin the policy may decide what is worth less than the model's decision",
                model,
            )
        return "", model

    @property
    def unrequired(self) -> Self:
        """By the table that was found without requirements."""
        assert self.unconstrained is not None, "a policy that was fitted here has it"
        return replace(self, q=self.unconstrained.value, explore=())

    def share_explored(self, one: Explored) -> float | None:
        """By the weight of the cells with just that chance; not where a person's signal is decided at random."""
        if self.signal.drawn:
            return None
        just = self.q[:, :, one.chance.decision] <= one.chance.at_least + JUST
        return float(self.mass[just & self._keeping(one.chance)].sum() / self.mass.sum())

    def least_chance(self, chance: Chance) -> float:
        """In all cells, somebody there or nobody."""
        return float(self.q[:, :, chance.decision][self._keeping(chance)].min(initial=1.0))

    def _keeping(self, chance: Chance) -> Truths:
        """The cells that keep a chance."""
        return cells_of(chance, self.signal, len(self.q), len(self.classes), self.rising)

    def _mixed(self, scores: Array, group: Codes | None, x: Table, group_proba: Array | None) -> Floats:
        if len(scores) == 1 and scores.ndim == 2 and self.signal.needs_proba and not self.of_values:
            score = check_proba(scores, len(self.classes), ONE)
            cell = self.signal.cell_of(score[0].tolist())
            if cell is not None:
                return self.q[None, 0 if group is None else group[0], cell]
        spread = self._spreads(scores)

        def part_of(part: slice) -> tuple[Codes | None, Spread]:
            return None if group is None else group[part], spread(part)

        return np.asarray(_look_up([self], len(scores), part_of)[0])

    def sure_of(self, scores: Array, group: Entries | None) -> int | None:
        """By the table; probabilities that are none, and groups that are not known.

        Are left to :meth:`probabilities`.
        """
        if not self.signal.needs_proba or self.of_values or scores.ndim != 2 or scores.dtype not in FLOATS:
            return None
        z: int | None = 0
        if self.sees_group:
            name = group.tolist() if isinstance(group, np.ndarray) else []
            if len(name) != 1 or type(name[0]) not in (str, int, bool):
                return None
            z = self._places.get(name[0])
        row = scores[0].tolist()
        if z is None or len(row) != len(self.classes):
            return None
        shares = normalised_row(row)
        cell = None if shares is None else self.signal.cell_of(shares)
        return None if cell is None else self._sure[z][cell]

    @cached_property
    def _places(self) -> dict[Any, int]:
        """Where each group is."""
        return {name: z for z, name in enumerate(self.groups)}

    @cached_property
    def _sure(self) -> list[list[int | None]]:
        """The position of the decision of every group and cell; None where draws decide."""
        drawn = faces_lottery(self.q.reshape(-1, self.q.shape[2])).reshape(self.q.shape[:2])
        best = self.q.argmax(axis=2).astype(object)
        if self.randomize:
            best[drawn] = None
        found: list[list[int | None]] = best.tolist()
        return found

    def _spreads(self, scores: Array) -> Callable[[slice], Spread]:
        """How some of these people fall into the signals."""
        rows = np.arange(len(scores))
        labels = scores.ndim == 1 and not self.signal.needs_proba
        coded = encode_labels(scores, self.classes, "prediction", rows) if labels else None

        def spread(part: slice) -> Spread:
            score = self.read(scores[part], rows[part]) if coded is None else None
            return self.signal.spread(score, None if coded is None else coded[part])

        return spread

    def spread(self, scores: Array) -> Spread:
        """The signals of people of whom the model says this, checked."""
        return self._spreads(scores)(slice(0, len(scores)))

    def controls(self, j: int, happiness: HappinessLike | None) -> RankControls:
        """Shares of people, in the order of their scores."""
        return RankControls(self, j, happiness)

    def read(self, said: Array, rows: Codes) -> Floats:
        """What the model says of some people, checked."""
        if isinstance(self.signal, ValueCells):
            return self.signal.read(said, rows)
        return check_proba(said, len(self.classes), rows)

    def reading(self, people: People) -> People:
        """With the places of values among its cuts, where it sees a decision function."""
        return placed(self.signal, people)

    def look_at(self, people: People) -> tuple[Codes | None, Spread]:
        """The group, and the signals with their weights."""
        needs = self.signal.needs_proba
        spread = self.signal.spread(
            people.with_scores.scores() if needs else None, None if needs else people.predictions()
        )
        return self._groups_of(people), spread

    def places(self, people: People) -> tuple[Codes, Codes] | None:
        """Of a score; probabilities that are none are left to whoever checks them."""
        k, score = len(self.classes), people.score
        cells = self.signal.of_bins(k)
        if (
            cells is None
            or score is None
            or score.dtype != np.float64
            or score.shape[1] != k
            or not len(score)
        ):
            return None
        return cells_and_labels(score, cells, self.signal.line(k) or 0.0)

    @classmethod
    def follow(cls, policies: Sequence[Self], seen: tuple[Codes | None, Spread]) -> Floats:
        """The row of each policy's table for everybody."""
        codes, spread = seen

        def part_of(part: slice) -> tuple[Codes | None, Spread]:
            shares = [(cell[part], None if share is None else share[part]) for cell, share in spread]
            return None if codes is None else codes[part], shares

        return _look_up(policies, len(spread[0][0]), part_of)

    @property
    def sight(self) -> object:
        """The signal."""
        return self.signal

    def stretches(self, groups: Sequence[int] | None = None) -> Stretches:
        """Along the score of two classes, or for every label of the model along its probability."""
        k, boundary = len(self.classes), self.signal.line(len(self.classes))
        ranges, rows = self.signal.ranges(k), []
        for z in (groups or range(len(self.groups))) if self.sees_group else (0,):
            for owner in range(k if boundary is None else 1):
                own = [s for s in range(len(ranges)) if boundary is not None or ranges[s][0] == owner]
                starts = _changes([(ranges[s][1], self.q[z, s].tolist()) for s in own])
                rows += [(z, owner, low, high, q) for low, high, q in _between(starts)]
        return Stretches(rows, boundary, self.signal.cuts_at())

    def lookup(self) -> Lookup | None:
        """Of a score."""
        return Lookup.of(self)

    def sql_writer(self) -> Callable[..., str]:
        """One ``CASE`` expression."""
        return partial(case_expression, self)

    @classmethod
    def of_sums(
        cls,
        joined: Aggregates,
        q: Floats,
        outcome: Outcome,
        free: Lazy[Any],
        *,
        basis: dict[str, Any],
        **own: Any,
    ) -> Self:
        """A table of the cells of some sums; ``free`` is the solution of which nothing is required."""
        return cls(
            classes=joined.classes,
            decisions=joined.decisions,
            groups=joined.groups,
            signal=joined.signal,
            q=q,
            mass=joined.mass,
            unconstrained=Lazy(lambda: free.value.q),
            measures=joined.measures,
            outcome=outcome,
            roles=joined.roles,
            attributes=joined.attributes,
            left_out=joined.left_out,
            order=joined.order,
            rising=joined.rising,
            labels=joined.labels,
            basis=Basis(
                joined.loss_name,
                joined.baseline_or_none,
                baseline_given=joined.baseline_given,
                notes=joined.notes,
                unconstrained=Lazy(lambda: free.value.outcome),
                **basis,
            ),
            **own,
        )

    @classmethod
    def rules_along(
        cls,
        policies: Sequence[Self],
        digits: int = 12,
        wording: Wording | None = None,
        most: int | None = None,
    ) -> list[list[str]]:
        """One sentence for every group and stretch of signals that is treated alike."""
        if not policies:
            return []
        one = policies[0]
        names = one.wording if wording is None else wording
        k = len(one.classes)
        baseline, runs = one.signal.baseline(k), one.signal.runs(k)
        tables = range(len(one.groups[:most]) if one.sees_group else 1)
        alike = [[treated_alike(policy.q[z], runs) for z in tables] for policy in policies]
        stretches = sorted({stretch for tables in alike for table in tables for stretch in table})
        if not one.randomize and one.signal.drawn:
            part = "the part of a person's probabilities that is for the label"
            persons = [f"{part} {names.classes[first]}" for first, _ in stretches]
        else:
            persons = one.signal.describe_all(stretches, names.classes, digits)
        who = dict(zip(stretches, persons, strict=True))
        return [
            policy._rules(found, who, baseline, names) for policy, found in zip(policies, alike, strict=True)
        ]

    def _rules(
        self,
        alike: list[list[tuple[int, int]]],
        who: dict[tuple[int, int], str],
        baseline: Codes,
        names: Wording,
    ) -> list[str]:
        """A sentence for each of the stretches of every group; ``who`` says whom a stretch is about."""
        sentences = []
        for z, stretches in enumerate(alike):
            mass = self.mass[z] if self.sees_group else self.mass.sum(axis=0)
            where = f"In group {names.groups[z]}" if self.sees_group else "In any group"
            weight, whole = mass.sum(), "of the group" if self.sees_group else "of all"
            for first, last in stretches:
                held = mass[first : last + 1].sum()
                share = f"{held / weight:.1%} {whole}" if weight > 0 else "nobody"
                now = None if self.listed else baseline[first : last + 1]
                treatment = self._treatment(self.q[z, first], now, names.decisions)
                sentences.append(f"{where}, {who[first, last]} ({share}) {treatment}.")
        return sentences

    def _treatment(self, q: Floats, baseline: Codes | None, decisions: Sequence[str]) -> str:
        if q.max() == 1.0:
            d = int(q.argmax())
            note = ", not as the label says" if baseline is not None and (baseline != d).all() else ""
            return f"is always decided {decisions[d]}{note}"
        open_to = np.flatnonzero(q).tolist()
        chances = (f"{q[d]:.2%}" for d in open_to)
        probabilities = [
            f"{decisions[d]} with probability {NEARLY.get(chance, chance)}"
            for d, chance in zip(open_to, chances, strict=True)
        ]
        how = "by lottery" if self.randomize else "rounded to the most probable one"
        return f"is decided {' and '.join(probabilities)}, {how}"

    def _achieved(self, most: int | None = None) -> list[str]:
        return self._told_apart(most) + super()._achieved(most)

    def cautions(self, *, warn: bool = False) -> list[str]:
        """Also that there is nothing left of a score, of which no fit warns."""
        return super().cautions(warn=warn) + ([] if warn else self._collapsed())

    def _collapsed(self) -> list[str]:
        """Whether a score tells no more than the label, because all people of a label are in one cell."""
        k, mass = len(self.classes), self.mass if self.sees_group else self.mass.sum(axis=0, keepdims=True)
        alike, baseline = self.signal.alike(mass, k), self.signal.baseline(k)
        if not self.signal.ordered:
            return []
        for z, held in enumerate(mass > 0):
            places = np.arange(len(held)) if alike is None else alike[z]
            if any(len({*places[held & (baseline == d)].tolist()}) > 1 for d in range(k)):
                return []
        return ["This policy is the label policy: in every group all people of a label are in one score bin."]

    def _told_apart(self, most: int | None) -> list[str]:
        """How many cells are left in each group, where those of few people are treated alike."""
        mass = self.mass if self.sees_group else self.mass.sum(axis=0, keepdims=True)
        alike, size = self.signal.alike(mass, len(self.classes)), mass.shape[1]
        counts = [] if alike is None else [len(set(places)) for places in alike.tolist()]
        if min(counts, default=size) == size:
            return []
        where = [f"group {group!r}" for group in self.groups] if self.sees_group else ["any group"]
        each = listed([f"{count} in {group}" for count, group in zip(counts, where, strict=True)], most)
        few = f"neighbours with fewer than {self.signal.least} people are treated alike"
        return [f"Of {size} score bins, {each} are told apart: {few}."]

    def grounds(self, person: Person, without: Mapping[str, Floats]) -> Grounds:
        """The signal, and the cuts around it."""
        return grounds_of_cells(self, person, without)

    def _content(self) -> dict[str, Any]:
        found = {"policy": signal_to_json(self.signal), "q": self.q.tolist(), "mass": self.mass.tolist()}
        if self.unconstrained is not None:  # files that do not hold it keep their checksum
            found["unconstrained"] = [write_runs(table) for table in self.unconstrained.value]
        return found

    @classmethod
    def _parsed(cls, content: dict[str, Any], common: dict[str, Any], **functions: Any) -> Policy:
        try:
            signal = signal_from_json(content["policy"])
        except ValueError as error:
            raise refused(str(error)) from error
        k = len(common["classes"])
        # Fewer than two classes are refused once all is read, by name.
        free, size = content.get("unconstrained") if k > 1 else None, signal.size(k)
        return cls(
            signal=signal,
            q=read_numbers(content["q"], "q"),
            mass=read_numbers(content["mass"], "mass"),
            unconstrained=None
            if free is None
            else Lazy.of(np.stack([read_runs(runs, size) for runs in free])),
            **common,
        )

    def _validate(self) -> None:
        super()._validate()
        g, k = len(self.groups), len(self.classes)
        s = self.signal.size(k)
        check_shape("mass", self.mass, (g, s))
        for table in (self.q, *([] if self.unconstrained is None else [self.unconstrained.value])):
            check_shape("q", table, (g, s, len(self.decisions)))
            if not (table >= 0).all() or not (np.abs(table.sum(axis=2) - 1.0) <= 1e-9).all():
                raise refused("some probabilities of q are negative or do not sum to one")
        if (self.mass < 0).any():
            raise refused("some mass is negative")
        self.signal.check(k)
        for one in self.explore:
            if self.least_chance(one.chance) < one.chance.at_least - JUST:
                raise refused("somebody does not keep the chance that everybody is to keep")
        if self.listed and self.signal.climbs(k):
            above = (self.q.cumsum(axis=2)[:, :, :-1] * (1 if self.rising else -1))[:, ::-1]
            if (np.diff(above, axis=1) < -1e-9).any():
                raise refused("a better decision becomes less likely where the score says that it should not")
        for chain, decision in [] if self.listed else self.signal.chains(k):
            if (np.diff(self.q[:, chain.start : chain.stop, decision], axis=1) < -1e-9).any():
                raise refused("a probability falls where the score rises")


Policy.kinds.update(dict.fromkeys(SIGNALS, CellPolicy))


def solve_cells(
    joined: Aggregates,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool,
    salt: str,
    change_cost: ChangeCost = 0.0,
) -> CellPolicy:
    """The policy of least loss that sees the cells of some aggregates."""
    joined, cost = joined.comparing(requirements), resolved(joined, change_cost)
    solution, free = solve_beside_free(joined, requirements, sees_group=sees_group, change_cost=cost)
    decisions = joined.decisions.tolist()
    chances = chances_of(requirements, decisions, joined.groups)
    losses = []
    for chance in chances:
        others = [one for one in requirements if chance not in one.chances(decisions, joined.groups)]
        without = solve_program(joined, others, sees_group=sees_group, change_cost=cost)
        losses.append(solution.outcome.loss - without.outcome.loss)
    return CellPolicy.of_sums(
        joined,
        solution.q,
        solution.outcome,
        free,
        prices=solution.prices,
        salt=salt,
        sees_group=sees_group,
        explore=explored_in(chances, losses) if chances else (),
        basis={
            "allowed": allowed_gaps(requirements, joined.measures),
            "requirements": solution.goals,
            "change_cost": cost,
            "evidence": Evidence.of(joined, solution.q),
            "least_loss": joined.least_of(solution.q),
        },
    )


def _look_up(
    policies: Sequence[CellPolicy], n: int, part_of: Callable[[slice], tuple[Codes | None, Spread]]
) -> Floats:
    """The row of each policy's table for everybody; ``part_of`` are the groups and signals of some.

    The policies see the same signal; the result is of shape (policies, n, D).
    """
    g, size, k = policies[0].q.shape
    tables = [policy.q.reshape(g * size, k) for policy in policies]
    probabilities = np.zeros((len(policies), n, k))
    for start in range(0, n, CHUNK):  # what stays in the processor's cache is faster
        part = slice(start, start + CHUNK)
        group, spread = part_of(part)
        for cell, share in spread:
            place = cell if group is None else group * size + cell
            for table, mixed in zip(tables, probabilities, strict=True):
                if share is None:
                    table.take(place, axis=0, out=mixed[part], mode="clip")
                else:
                    mixed[part] += share[:, None] * table.take(place, axis=0)
    return probabilities


def treated_alike(table: Floats, runs: list[range]) -> list[tuple[int, int]]:
    """First and last signal of every stretch that is treated alike, by the probabilities of one group."""
    stretches = []
    for run in runs:
        if not run:
            continue
        rows = table[run.start : run.stop]
        changes = np.flatnonzero((np.abs(rows[1:] - rows[:-1]) > 1e-9).any(axis=1)) + 1
        starts = [0, *changes.tolist(), len(run)]
        stretches += [(run.start + a, run.start + b - 1) for a, b in pairwise(starts)]
    return stretches


def _changes(starts: list[tuple[float, list[float]]]) -> list[tuple[float, list[float]]]:
    """The steps at which something changes; the first begins at 0."""
    kept: list[tuple[float, list[float]]] = []
    for start, value in starts:
        if not kept or value != kept[-1][1]:
            kept.append((max(start, 0.0), value))
    return kept


def _between(starts: list[tuple[float, list[float]]]) -> list[tuple[float, float, list[float]]]:
    """Start, end and value of every step up to 1."""
    ends = [start for start, _ in starts[1:]] + [1.0]
    return [(start, end, value) for (start, value), end in zip(starts, ends, strict=True)]


def write_runs(table: Floats) -> list[list[Any]]:
    """A group's table by the signals at which its probabilities change: without requirements, few."""
    changes = np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1
    return [[s, table[s].tolist()] for s in (0, *changes.tolist())]


def read_runs(content: object, size: int) -> Floats:
    """Read what :func:`write_runs` wrote, for a table of so many signals."""
    if not isinstance(content, list) or not content:
        raise refused("a table of what would be decided without requirements is empty")
    starts = read_whole([start for start, _ in content], "unconstrained").tolist()
    rows = read_numbers([row for _, row in content], "unconstrained")
    if starts[0] != 0 or any(b <= a for a, b in pairwise([*starts, size])):
        raise refused("a table of what would be decided without requirements is out of order")
    return np.repeat(rows, np.diff([*starts, size]), axis=0)
