"""What a report says, as plain data: everything is computed here, and nothing after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._audit.names import labels
from felicific._audit.quantity import SHARE, Quantity
from felicific._audit.result import Interval, interval_to_dict, plain
from felicific._fit.assessment import Assessment, Known
from felicific._fit.tryout import Effect, Tryout
from felicific._frontier.frontier import Frontier
from felicific._policy.basis import outlook, write_outcome
from felicific._policy.policy import Policy
from felicific._problem.change import few_counted
from felicific._problem.loss import is_accuracy
from felicific._problem.problem import Problem
from felicific._program.aggregates import gaps_of
from felicific._report.data import (
    FORMAT,
    HARMLESS,
    VERSION,
    Place,
    Told,
    audited,
    describe_effect,
    describe_measure,
    find_places,
    fitted_reference,
    loss_of,
    methods_of,
    name_decisions,
    numbers_of,
    people_sha256,
    say,
    versions,
    who_has_labels,
    word,
)
from felicific._typing import Codes, Floats

#: Most sentences that a position spells out.
SENTENCES = 60


def describe_choice(
    tried: Tryout,
    line: Frontier,
    policy: Policy,
    along: Callable[[Sequence[float]], list[Policy]],
    told: Told,
) -> tuple[dict[str, Any], Assessment]:
    """Everything a report says about a policy, the frontier it lies on and some people, as plain data.

    Parameters
    ----------
    tried : Tryout
        People with labels and everything the model says about them, and what is asked; best not those the policy was
        fitted on.
    line : Frontier
        All the policies there are to choose from.
    policy : Policy
        The one that is proposed.
    along : callable
        The policies at some places of the frontier, as ``fair.at`` has them.
    told : Told
        What else the page says.

    Returns
    -------
    content, assessment
        The assessment has the verdict on the policy that is proposed.
    """
    told.check(tried.problem.decisions.tolist())
    places = find_places(line, policy, along, tried.reference)
    assessment = Assessment.of(
        tried,
        line,
        policy,
        confidence=told.confidence,
        places=max(1, len(places) - 1),
        certificate=told.certificate,
        in_sample=told.in_sample,
        labels=told.labels,
    )
    also, grows = measured_also(assessment, told.also)
    assessment = replace(assessment, others=tuple(grows))
    choice = Choice(tried, line, policy, told, places, assessment)
    return choice.content() | {"also": also}, assessment


@dataclass(frozen=True, eq=False)
class Choice:
    """A report in the making."""

    tried: Tryout
    line: Frontier
    policy: Policy
    told: Told
    places: list[Place]
    assessment: Assessment

    def content(self) -> dict[str, Any]:
        """Everything but the other measures."""
        told, policy, problem, positions = self.told, self.policy, self.tried.problem, self.positions
        found = next(i for i, place in enumerate(self.places) if place.proposed)
        by = told.grouped_by
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": "choice",
            **{name: getattr(told, name) for name in ("title", "period", "date", "confidence", "model")},
            "grouped_by": plain(by) if isinstance(by, str | None) else str(by),
            "decisions": name_decisions(problem, told.names),
            "best_decision": policy.best,
            "groups": self._groups(),
            "measures": self._measures(),
            "loss": self._loss(),
            "policy": self._policy(),
            "reference": self.tried.reference.key,
            "baseline": audited(self.assessment.before),
            "best": self._best(),
            "positions": positions,
            "mixes": self.line.mixes,
            "proposed": found,
            "nobody_worse": any(HARMLESS in position["names"] for position in positions),
            "certificate": None if told.certificate is None else told.certificate.to_dict(),
            "certified": found if self._promises_less() else None,
            "labels": None if policy.labels is None else who_has_labels(policy.labels),
            "label_source": told.labels,
            "requirements": [row.to_dict() for row in self.assessment.after.requirements],
            "worse_off": self._worse_off(),
            "points": {name: write_outcome(point) for name, point in policy.outcomes.items()},
            "impact": policy.impact(),
            "methods": methods_of([self.assessment.before, self.assessment.after], self.assessment.titles),
            "caveats": self._caveats(),
            "fitted_baseline": fitted_reference(self.line, policy, self.tried.reference).gaps.tolist(),
            "premises": policy.premises(),
            "outlook": outlook(policy),
            "fingerprints": {"people": people_sha256(self.tried.people)},
            "versions": versions(),
            "command": told.command,
        }

    def _promises_less(self) -> bool:
        """Whether the certificate promises less than the baseline's gaps; one that promises more is none."""
        facts = self.assessment.facts(self.assessment.proposed, self.assessment.known)
        return bool(facts.promise) and all(shift.certified for shift in facts.closed)

    # -----------------------------------------------------------------------------------------------------
    # About whom, and what

    def _groups(self) -> list[dict[str, Any]]:
        persons, compared = self.assessment.baseline.persons, np.asarray(self.assessment.compared.any(axis=1))
        scores = None if self.scored is None else self.scored.people()
        return [
            {
                "name": plain(group),
                "people": people,
                "compared": bool(compared[z]),
                "scores": None if scores is None else scores[z],
            }
            for z, (group, people) in enumerate(zip(persons.groups, persons.sizes.tolist(), strict=True))
        ]

    def _measures(self) -> list[dict[str, Any]]:
        problem, told = self.tried.problem, self.assessment
        return [
            describe_measure(measure, happiness)
            | {
                "step": told.quantities[j].step,
                "has_gap": told.before.measures[j].gap is not None,
                "asked": self.policy.basis.allowed.get(measure.name),
                "closed": j in told.closed,
            }
            for j, (happiness, measure) in enumerate(zip(problem.happiness, problem.measures, strict=True))
        ]

    def _loss(self) -> dict[str, Any]:
        name, quantity = self.tried.problem.loss.name, self.assessment.cost_quantity
        accuracy = is_accuracy(name)
        majority = self.assessment.majority if accuracy else None
        return {"name": name, "accuracy": accuracy, "step": quantity.step, "majority": majority}

    def _policy(self) -> dict[str, Any]:
        policy, seen = self.policy, self.policy.stretches()
        plain_gaps = {
            f"gap of {c.name!r} at most {c.quantity(policy.basis.allowed[c.name])}"
            for c in policy.measures
            if c.name in policy.basis.allowed
        }
        return {
            "kind": policy.kind,
            "sees_group": policy.sees_group,
            "infers_group": policy.infers_group,
            "randomize": policy.randomize,
            "chosen": self.told.chosen,
            "requirements": [
                *(asked.words for asked in policy.basis.requirements if asked.words not in plain_gaps),
                *(one.chance.words for one in policy.explore),
            ],
            "boundary": None if seen is None else seen.boundary,
            "values": None if seen is None or not seen.cuts else values_at(seen.cuts, TICKS),
            "blindness": self.told.blindness,
        }

    def _best(self) -> dict[str, Any]:
        persons, tau = self.assessment.at_best, self.line.points[-1].tau
        assert persons is not None, "the frontier has an end"
        free = not self.policy.basis.requirements and not self.policy.explore
        gaps = numbers_of(gaps_of(persons.means, self.assessment.compared))
        return {"tau": tau, "loss": loss_of(persons), "gaps": gaps, "free": free}

    def _worse_off(self) -> list[dict[str, Any]]:
        return [
            {
                "at_most": row.at_most,
                "loss": row.loss,
                "loses": None if row.loses is None else [row.loses.get(group) for group in self.line.groups],
            }
            for row in self.told.worse_off
        ]

    def _caveats(self) -> list[str]:
        """What to beware of."""
        told, assessment = self.told, self.assessment
        measures = self.tried.problem.measures
        was, then = (effect.persons.means for effect in (assessment.baseline, assessment.proposed))
        groups = [repr(name) for name in labels(self.line.groups)]
        few = few_counted(measures, groups, was, then, "on these people")
        found = [*few, *CAVEATS, *told.notes]
        found += [note for audit in (assessment.before, assessment.after) for note in audit.notes]
        if told.certificate is not None and told.certificate.basis == "none":
            found.append(f"The policy carries no certificate. {told.certificate.sentence}")
        if told.certificate is not None and told.certificate.large_samples:
            found.append(
                "The certificate holds by large samples: where rare people have much larger values than any in the "
                "sample, it may not."
            )
        if not self.line.mixes:
            found.append("Between two positions no policy is known: each was solved for by itself.")
        return [say(text, measures) for text in dict.fromkeys(found) if not text.startswith(SAID_ABOVE)]

    # -----------------------------------------------------------------------------------------------------
    # Positions

    @cached_property
    def scored(self) -> Scored | None:
        """The people along the line of scores, if the policy sees one."""
        return Scored.of(self.tried, self.policy)

    @cached_property
    def positions(self) -> list[dict[str, Any]]:
        """Everything about every place of the slider."""
        others = [place.policy for place in self.places if place.policy is not None and not place.proposed]
        effects, rules = iter(self.tried.effects(others)), iter(self._sentences(others))
        found = []
        for place, price in zip(self.places, self._prices(), strict=True):
            if place.policy is None:
                effect, said = self.assessment.baseline, []
                known = self.assessment.known_of(effect)
            elif place.proposed:
                effect, said = self.assessment.proposed, self._sentences([self.policy])[0]
                known = self.assessment.known
            else:
                effect, said = next(effects), next(rules)
                known = self.assessment.known_of(effect)
            found.append(self._position(place, effect, known) | {"rules": said, "price": price})
        self._name_harmless(found)
        return found

    def _prices(self) -> list[float | None]:
        """What closing a little more of the gap costs, in loss per unit of tau, on the fitted people."""
        return [*numbers_of(self.line.price_at([place.tau for place in self.places[:-1]])), None]

    def _name_harmless(self, positions: list[dict[str, Any]]) -> None:
        """Name the first position at which every group has at least the baseline of what people want."""
        wanted = [
            j
            for j in self.assessment.told
            if self.tried.problem.measures[j].wanted and j in self.assessment.closed
        ]
        for position in positions[:-1]:
            changes = [
                mean["change"]["estimate"]
                for j in wanted
                for mean in position["measures"][j]["means"]
                if mean["change"]["estimate"] is not None
            ]
            if changes and min(changes) >= 0.0 and sum(position["changed"]) > 0:
                position["names"].append(HARMLESS)
                return

    def _position(self, place: Place, effect: Effect, known: Known) -> dict[str, Any]:
        verdict = self.assessment.verdict_on(effect, known)
        policy = place.policy
        return {
            "tau": place.tau,
            "names": [*place.names],
            "baseline": policy is None,
            "proposed": place.proposed,
            "hash": self._hash(place),
            "aimed": [*place.aimed],
            "python": self._python(place),
            **describe_effect(effect, known, of_baseline=policy is None),
            **self._by_score(policy, effect),
            "policy_sha256": None if policy is None else policy.sha256,
            "verdict": verdict.to_dict(),
        }

    def _by_score(self, policy: Policy | None, effect: Effect) -> dict[str, Any]:
        if self.scored is None:
            return dict.fromkeys(("steps", "up", "down", "person"))
        up, down = self.scored.moved(effect)
        one = self.assessment.baseline.persons
        change = effect.persons.values - one.values + (effect.persons.origin - one.origin)
        person = None if policy is None else self.scored.person(effect, change)
        below, above = (0.0, 1.0) if self.policy.best == 1 else (1.0, 0.0)
        seen = self.policy.stretches()
        assert seen is not None, "it sees a line of scores"
        now = [[[0.0, seen.boundary, below], [seen.boundary, 1.0, above]]] * len(self.line.groups)
        if self.tried.people.baseline is not None:  # what another system decides is no function of the score
            now = [[] for _ in self.line.groups]
        steps = now if policy is None else self.scored.steps(policy)
        return {"steps": steps, "up": up, "down": down, "person": person}

    def _sentences(self, policies: Sequence[Policy]) -> list[list[str]]:
        """Policies that differ in their probabilities alone in words, as many sentences of each as a reader reads."""
        said = []
        wording = word(self.policy, name_decisions(self.tried.problem, self.told.names))
        for rules in policies[0].rules_along(policies, 4, wording) if policies else []:
            left = len(rules) - SENTENCES
            more = f"And {left} more such sentences; see the policy's file."
            said.append(rules if left <= 0 else [*rules[:SENTENCES], more])
        return said

    def _hash(self, place: Place) -> str:
        """How the address of the page names a position."""
        if place.policy is None:
            return self.tried.reference.data_key
        numbers = self._numbers(place)
        return f"gap={numbers.pop() if len(numbers) == 1 else place.tau!r}"

    def _aimed(self, place: Place) -> dict[str, float]:
        return {
            measure.name: gap
            for measure, gap in zip(self.line.measures, place.aimed, strict=True)
            if gap is not None
        }

    def _numbers(self, place: Place) -> set[float]:
        """What is aimed at as one number, where one says it for all gaps; else several."""
        units = {measure.unit for measure in self.line.measures if measure.name in self._aimed(place)}
        found = {*self._aimed(place).values()}
        return found if len(units) == 1 else found | {-1.0}

    def _python(self, place: Place) -> str | None:
        """How the policy at a position is had in Python."""
        if place.policy is None or place.proposed:
            return "fair.policy_" if place.proposed else None
        aimed, numbers = self._aimed(place), self._numbers(place)
        return f"fair.at(gap={numbers.pop() if len(numbers) == 1 else aimed!r}).policy_"


#: What is to be said of every report.
CAVEATS = (
    "Intervals speak of people like these, and not of those on whom the model or the policy was fitted; rows, or "
    "clusters of them where some are named, are taken to be independent of each other.",
    "Group means are compared, not lives: inside a group some people may be worse off.",
    "Whether this is the right measure of happiness, and who is missing from the data, no computation can say.",
)

#: How remarks begin that the verdict has said already.
SAID_ABOVE = ("Every group loses", "It levels down", "Nothing to repair")


def measured_also(assessment: Assessment, also: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Other measures under the baseline and under the policy that is proposed; and those whose gap is shown to grow."""
    if also is None:
        return [], []
    own = assessment.tried.problem
    problem = Problem.of(
        own.decisions,
        also,
        labels=own.labels if own.listed else None,
        loss=own.loss,
        order=own.order,
        sees_group=own.sees_group,
    )
    people = replace(assessment.tried.people, decisions=own.decisions)
    beside = Assessment(
        tried=Tryout(problem, people, assessment.tried.reference),
        policy=assessment.policy,
        closed=tuple(range(len(problem.measures))),
        confidence=assessment.confidence,
    )
    found, grows = [], []
    names = labels(measure.title for measure in problem.measures)
    for j in range(len(problem.measures)):
        part, known = beside.before.measures[j], beside.known
        gap, change = known.gaps[j], known.gap_changes[j]
        if part.gap is None or gap is None or change is None:
            continue
        halves = [(one.high - one.low) / 2.0 for one in (part.gap, gap, change)]
        unit = part.measure.unit or (SHARE if problem.happiness[j].rate else "")
        found.append(
            {
                "name": names[j],
                "unit": unit,
                "step": Quantity.of(unit, halves, [part.gap.estimate, gap.estimate]).step,
                "baseline": _limits(part.gap),
                "then": _limits(gap),
                "change": _limits(change),
                "groups": [_limits(mean) for mean in known.mean_changes[j]],
                "grows": change.low > 0.0,
            }
        )
        grows += [names[j]] if change.low > 0.0 else []
    return found, grows


def _limits(found: Interval) -> dict[str, Any]:
    told = interval_to_dict(found)
    return {name: told[name] for name in ("estimate", "low", "high")}


# ---------------------------------------------------------------------------------------------------------
# Who has which score, and whose decision changes; and one worked person, who is nobody's row.


#: Bins of the histogram, cells in which a person is looked for, and the fewest people such a cell may have.
BINS, CELLS, FEWEST = 60, 100, 10

#: Places along the cells of a decision function at which the page says its value.
TICKS = (0.25, 0.5, 0.75)

#: From this chance on a decision is as good as certain.
CERTAIN = 0.9995


@dataclass(frozen=True, eq=False)
class Scored:
    """People along the line of scores that a policy of two decisions sees.

    Attributes
    ----------
    tried : Tryout
    best : int
        Position of the best decision.
    scores : array of shape (n,)
    cuts : list of (float, float)
        Of a decision function, see :class:`felicific._policy.policy.Stretches`.
    """

    tried: Tryout
    best: int
    scores: Floats
    cuts: list[tuple[float, float]]

    @classmethod
    def of(cls, tried: Tryout, policy: Policy) -> Scored | None:
        """None where no policy of this kind sees one line of scores."""
        seen, score = policy.stretches(), tried.people.scores()
        if seen is None or seen.boundary is None or score is None:
            return None
        return cls(tried, policy.best, np.asarray(score[:, -1]), seen.cuts)

    def people(self) -> list[list[float]]:
        """How many people of every group there are in each bin."""
        return self._binned(np.ones(len(self.scores)))

    def moved(self, effect: Effect) -> tuple[list[list[float]], list[list[float]]]:
        """How many people of each bin are now decided favourably, and how many no longer."""
        now, chance = self._baseline == self.best, effect.probabilities[:, self.best]
        return self._binned(np.where(now, 0.0, chance)), self._binned(np.where(now, 1.0 - chance, 0.0))

    def _binned(self, share: Floats) -> list[list[float]]:
        people, groups = self.tried.people, len(self.tried.people.groups)
        bins = np.minimum((self.scores * BINS).astype(np.intp), BINS - 1)
        counts = np.bincount(people.codes * BINS + bins, self._weights * share, minlength=groups * BINS)
        return [[float(f"{number:.6g}") for number in row] for row in counts.reshape(groups, BINS).tolist()]

    @staticmethod
    def steps(policy: Policy) -> list[list[list[float]]]:
        """Of every group the stretches of scores that are treated alike: from, to, and the chance of the best."""
        seen = policy.stretches()
        assert seen is not None, "it sees a line of scores"
        found: list[list[list[float]]] = [[] for _ in policy.groups]
        best = policy.best
        for z, _, low, high, q in seen.rows:
            chance = q[best] if policy.randomize else float(np.argmax(q) == best)
            found[z].append([low, high, chance])
        return found if policy.sees_group else [found[0]] * len(policy.groups)

    # -----------------------------------------------------------------------------------------------------
    # One worked person

    def person(self, effect: Effect, change: Floats) -> dict[str, Any] | None:
        """The score at which most people of a group move, as somebody there meets it; None where too few do.

        A cell of at least ten people of whom at least half move; preferably one where another group is decided on
        otherwise. ``change`` is what everybody's happiness changes by, of shape (n, measures).
        """
        moved = self._by_cell(1.0 - effect.probabilities[np.arange(len(self.scores)), self._baseline])
        count, chance = self._count, self._by_cell(effect.probabilities[:, self.best])
        with np.errstate(invalid="ignore", divide="ignore"):
            share, mean = moved / count, chance / count
        able = (self._rows >= FEWEST) & (share >= 0.5)
        if not able.any():
            return None
        held = count > 0
        most, least = np.where(held, mean, 0.0).max(axis=0), np.where(held, mean, 1.0).min(axis=0)
        apart = able & (most - least >= 0.5)[None, :]
        z, cell = np.unravel_index(
            np.argmax(np.where(apart if apart.any() else able, moved, -1.0)), moved.shape
        )
        rows = (self._cell == cell) & (self.tried.people.codes == z)
        weight = self._weights[rows]
        baseline = int(np.argmax(np.bincount(self._baseline[rows], weight)))
        others = [g for g in range(len(count)) if g != z and count[g, cell] > 0]
        other = max(others, key=lambda g: abs(mean[g, cell] - mean[z, cell]), default=None)
        return {
            "group": int(z),
            **self._between(float(cell / CELLS), float((cell + 1) / CELLS)),
            "people": float(count[z, cell]),
            "baseline": baseline,
            **self._then(effect, int(z), int(cell)),
            "other": None if other is None else {"group": other, **self._then(effect, other, int(cell))},
            "changes": [float(number) for number in weight @ change[rows] / weight.sum()],
        }

    def _between(self, low: float, high: float) -> dict[str, float | None]:
        """From which score to which; of a decision function, between which values all people of these places are."""
        if not self.cuts:
            return {"low": low, "high": high}
        inner = [place for place, _ in self.cuts]
        middles = (np.array([0.0, *inner]) + np.array([*inner, 1.0])) / 2
        cells = np.flatnonzero((middles >= low) & (middles < high))
        below, above = int(cells[0]) - 1, int(cells[-1])
        return {
            "low": self.cuts[below][1] if below >= 0 else None,
            "high": self.cuts[above][1] if above < len(self.cuts) else None,
        }

    def _then(self, effect: Effect, z: int, cell: int) -> dict[str, Any]:
        """The decision about people of a group and a cell; None where it is decided at random.

        Then one that may be drawn is told with its chance: the best one, or the likeliest where nobody gets that.
        """
        rows = (self._cell == cell) & (self.tried.people.codes == z)
        probabilities = np.average(effect.probabilities[rows], axis=0, weights=self._weights[rows])
        likely = int(np.argmax(probabilities))
        sure = bool(probabilities[likely] >= CERTAIN)
        drawn = self.best if sure or probabilities[self.best] > 1.0 - CERTAIN else likely
        return {"then": likely if sure else None, "drawn": drawn, "chance": float(probabilities[drawn])}

    @cached_property
    def _weights(self) -> Floats:
        return self.tried.people.weights

    @cached_property
    def _baseline(self) -> Codes:
        return self.tried.people.decisions_baseline()

    @cached_property
    def _cell(self) -> Codes:
        return np.minimum((self.scores * CELLS).astype(np.intp), CELLS - 1)

    @cached_property
    def _count(self) -> Floats:
        return self._by_cell(np.ones(len(self.scores)))

    @cached_property
    def _rows(self) -> Floats:
        """How many rows there are in each cell, whatever they weigh."""
        return self._by_cell(np.ones(len(self.scores)), weighted=False)

    def _by_cell(self, share: Floats, *, weighted: bool = True) -> Floats:
        people, groups = self.tried.people, len(self.tried.people.groups)
        held = share * self._weights if weighted else share
        counts = np.bincount(people.codes * CELLS + self._cell, held, minlength=groups * CELLS)
        return np.asarray(counts.reshape(groups, CELLS), dtype=np.float64)


def values_at(cuts: list[tuple[float, float]], places: tuple[float, ...]) -> list[tuple[float, float]]:
    """The cuts of a decision function that are nearest to some places, each once."""
    nearest = [min(cuts, key=lambda cut: abs(cut[0] - place)) for place in places]
    return list(dict.fromkeys(nearest))
