"""What a report says about a policy of amounts, as plain data: everything is computed here, and nothing after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._audit.result import Audit, Interval, plain
from felicific._fit.numeric_assessment import AmountAssessment, AmountTryout, verdict_on_amounts
from felicific._frontier.numeric import AmountFrontier
from felicific._policy.numeric_fit import FittedAmounts
from felicific._policy.words import loss_title
from felicific._report.data import (
    FORMAT,
    VERSION,
    Told,
    audited,
    describe_measure,
    interval_of,
    methods_of,
    number_of,
    people_sha256,
    say,
    versions,
)
from felicific._statistics.distributions import Distributions
from felicific.exceptions import InfeasibleError

#: Amounts at which distributions are drawn, and the share of people left out at either end, who would squeeze them.
STEPS, ENDS = 160, 0.002

#: Places of the frontier that the page shows.
PLACES = 11

#: Most sentences that the page spells out.
SENTENCES = 60

#: What is compared, as the content calls it.
POINTS = ("baseline", "free", "proposed")


def describe_amounts(
    tried: AmountTryout, fitted: FittedAmounts, told: Told
) -> tuple[dict[str, Any], AmountAssessment]:
    """Everything a report says about a policy of amounts and some people, as plain data; and what the verdict rests on.

    Parameters
    ----------
    tried : AmountTryout
        People with labels and what the model predicts of them; best not those the policy was fitted on.
    fitted : FittedAmounts
        The policy that is proposed, and its frontier.
    told : Told
        What else the page says.
    """
    told.check([])
    assessment = tried.assessed(
        fitted, confidence=told.confidence, in_sample=told.in_sample, certificate=told.certificate
    )
    return _Described(tried, fitted, told, assessment).content(), assessment


@dataclass(frozen=True, eq=False)
class _Described:
    """A report in the making."""

    tried: AmountTryout
    fitted: FittedAmounts
    told: Told
    assessment: AmountAssessment

    @property
    def audits(self) -> dict[str, Audit]:
        """The baseline's amounts, those of least loss, and those that are proposed."""
        made = self.assessment
        return dict(zip(POINTS, (made.before, made.free, made.after), strict=True))

    def content(self) -> dict[str, Any]:
        """All of it."""
        told, made, by = self.told, self.assessment, self.told.grouped_by
        told_once = {name: getattr(told, name) for name in ("title", "period", "date", "confidence", "model")}
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": "amounts",
            **told_once,
            "grouped_by": plain(by) if isinstance(by, str | None) else str(by),
            "groups": self._groups(),
            "measures": [self._measure(j) for j in range(len(made.measures))],
            "loss": self._loss(),
            "policy": self._policy(),
            "points": {name: self._point(audit) for name, audit in self.audits.items()},
            "changes": self._changes(),
            "randomized": made.randomized,
            "lines": self._lines(),
            "distributions": self._distributions(),
            "frontier": self._frontier(),
            "requirements": [row.to_dict() for row in made.requirements],
            "certificate": None if told.certificate is None else told.certificate.to_dict(),
            "verdict": verdict_on_amounts(made).to_dict(),
            "impact": self.fitted.policy.impact(),
            "methods": methods_of([*self.audits.values()], made.titles),
            "notes": self._notes(),
            "fingerprints": {"people": people_sha256(self.tried.decided(self.tried.people.decided_baseline))},
            "versions": versions(),
            "command": told.command,
        }

    # -----------------------------------------------------------------------------------------------------
    # About whom, and what

    def _groups(self) -> list[dict[str, Any]]:
        persons, made = self.assessment.before.persons, self.assessment
        compared = set(made.anywhere)
        columns = (persons.groups, persons.sizes.tolist(), made.more.tolist(), made.less.tolist())
        return [
            {"name": plain(group), "people": people, "compared": z in compared, "more": more, "less": less}
            for z, (group, people, more, less) in enumerate(zip(*columns, strict=True))
        ]

    def _measure(self, j: int) -> dict[str, Any]:
        made, problem = self.assessment, self.assessment.problem
        measure, parity = made.measures[j], made.is_parity(j)
        asked = made.policy.asked.get(measure.name)
        return describe_measure(measure, None if parity else problem.happiness[j]) | {
            "title": made.titles[j],
            "step": made.quantities[j].step,
            "has_gap": made.before.measures[j].gap is not None,
            "asked": None if asked is None else number_of(asked),
            "closed": j in made.closed,
            "parity": parity,
            "amount": made.is_amount(j),
        }

    def _loss(self) -> dict[str, Any]:
        made = self.assessment
        return {
            "name": made.policy.loss_name,
            "title": loss_title(made.policy.loss_name),
            "accuracy": False,
            "step": made.cost_quantity.step,
            "root": made.root_cost is not None,
            "root_unit": made.root_quantity.unit,
            "root_step": made.root_quantity.step,
        }

    def _policy(self) -> dict[str, Any]:
        policy, rules = self.fitted.policy, self.fitted.policy.rules(digits=4)
        return {
            "bounds": list(policy.bounds),
            "listed": None if policy.listed is None else len(policy.listed),
            "sees_group": policy.sees_group,
            "randomize": policy.randomize,
            "expected": policy.expected,
            "out_of_fold": policy.out_of_fold,
            "sha256": policy.sha256,
            "prices": [[name, number_of(price)] for name, price in policy.prices.items()],
            "requirements": [asked.words for asked in self.fitted.goals],
            "rules": rules[:SENTENCES],
            "rules_left_out": max(len(rules) - SENTENCES, 0),
            "fitted_baseline": self._gaps_of(policy.gaps_in(policy.baseline)),
        }

    def _gaps_of(self, gaps: dict[str, float]) -> list[float | None]:
        """Gaps on the fitted people, by measure."""
        return [number_of(gaps.get(measure.name, math.nan)) for measure in self.assessment.measures]

    # -----------------------------------------------------------------------------------------------------
    # What is done to them

    def _point(self, audit: Audit) -> dict[str, Any]:
        found = audited(audit)
        for part, measured in zip(found["measures"], audit.measures, strict=True):
            part["at"] = measured.at
        return found | {"root": self._root(audit.loss)}

    def _root(self, loss: Interval | None) -> dict[str, Any] | None:
        """The root of a mean squared error: limits of the one are those of the other."""
        if loss is None or not self.assessment.problem.squared:
            return None
        ends = {"estimate": loss.estimate, "low": loss.low, "high": loss.high}
        return {name: number_of(math.sqrt(max(end, 0.0))) for name, end in ends.items()}

    def _changes(self) -> dict[str, Any]:
        made = self.assessment
        names = ("cost", "cost_free", "root_cost", "root_cost_free")
        return {name: interval_of(getattr(made, name)) for name in names} | {
            "measures": [
                {"gap": interval_of(gap), "means": [interval_of(mean) for mean in means]}
                for gap, means in zip(made.gap_changes, made.mean_changes, strict=True)
            ]
        }

    def _lines(self) -> list[dict[str, Any]]:
        """What every group gets for which prediction, where 98 of 100 fitted people of it are."""
        found = []
        for line in self.fitted.policy.lines:
            prediction, amount = line.typical
            atoms = [
                [atom.high, float(atom.amounts[0]), float(atom.amounts[-1]), atom.share]
                for atom in line.atoms
                if self.fitted.policy.randomize
            ]
            found.append({"prediction": prediction.tolist(), "amount": amount.tolist(), "atoms": atoms})
        return found

    def _distributions(self) -> dict[str, Any]:
        """The share of every group that gets more than each of some amounts."""
        both = {name: self._spread(self.audits[name]) for name in ("baseline", "proposed")}
        everything = np.concatenate([one.amounts for one in both.values()])
        held = np.concatenate([one.mass.sum(axis=0) for one in both.values()])
        order = np.argsort(everything, kind="stable")
        reached = held[order].cumsum() / held.sum()
        low, high = (float(everything[order][np.searchsorted(reached, end)]) for end in (ENDS, 1.0 - ENDS))
        places = np.linspace(low, high, STEPS + 1) if high > low else np.array([low, low + 1.0])
        return {"amounts": places.tolist(), "left_out": ENDS} | {
            name: _above(one, places) for name, one in both.items()
        }

    @staticmethod
    def _spread(audit: Audit) -> Distributions:
        found = audit.persons.distributions
        assert found is not None, "amounts were audited"
        return found

    def _frontier(self) -> dict[str, Any] | None:
        """What a smaller gap costs: policies of the frontier on these people; None where there is nothing to choose."""
        line, policy = AmountFrontier.of(self.fitted), self.fitted.policy
        widest = {name: width for name, width in line.widest.items() if width > 0.0}
        if not widest:
            return None
        try:
            looked_at = line.looked_at(PLACES)
        except InfeasibleError:
            return None
        places = sorted(looked_at)
        outcomes = [self.tried.outcome(looked_at[place]) for place in places]
        far = [[] if one.distance is None else [one.distance.value] for one in outcomes]
        gaps = [
            [*map(number_of, one.gaps.tolist()), *distance]
            for one, distance in zip(outcomes, far, strict=True)
        ]
        asked = [policy.asked.get(name, math.inf) / width for name, width in widest.items()]
        return {
            "places": places,
            "widest": self._gaps_of(widest),
            "proposed": min(max(asked), 1.0),
            "loss": [number_of(outcome.loss) for outcome in outcomes],
            "gaps": gaps,
        }

    def _notes(self) -> list[str]:
        made, policy = self.assessment, self.fitted.policy
        found = [*self.told.notes, *policy.cautions()]
        for audit in self.audits.values():
            found += audit.notes
        return list(dict.fromkeys(say(text, made.measures) for text in found))


def _above(spread: Distributions, places: Any) -> list[list[float]]:
    """The share of every group above each of some amounts."""
    at = np.searchsorted(spread.amounts, places, side="right") - 1
    shares = np.where(at >= 0, spread.above[:, at.clip(min=0)], 1.0)
    return np.round(shares, 6).tolist()  # type: ignore[no-any-return]  # an array of two dimensions is a list of lists
