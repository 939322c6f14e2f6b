"""Individual policies: every person's own features decide, with the happiness itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self, cast

import numpy as np

from felicific._files import check_shape, read_number, read_numbers, read_whole, refused
from felicific._people.checks import check_group_proba, check_proba
from felicific._people.lazy import used_columns
from felicific._people.people import People, joint_of
from felicific._people.roles import Roles
from felicific._policy.controls import WeightControls
from felicific._policy.explanation import Grounds, Person
from felicific._policy.grounds import grounds_of_individual
from felicific._policy.ledger import Calibration, expected_ledger
from felicific._policy.lottery import NEARLY, faces_lottery
from felicific._policy.policy import Policy, Wording
from felicific._problem.exploration import floors_of
from felicific._problem.expressions import Expression
from felicific._problem.happiness import (
    Happiness,
    HappinessLike,
    check_classes,
    function_from_json,
    function_to_json,
    resolve_happiness,
    with_counted,
)
from felicific._problem.loss import CHANGES, Loss
from felicific._problem.problem import Problem
from felicific._program.crowd import (
    CHOOSES,
    LIKELY,
    Ledger,
    Mixture,
    charged,
    choose,
    fixed_decisions,
    likeliest,
)
from felicific._program.generation import Generated
from felicific._program.signals import Individual
from felicific._program.slopes import Slopes
from felicific._tables.engine import Engine
from felicific._tables.groups import names_at
from felicific._tables.memory import count_rows
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError, PolicyFileError

#: What a policy says of itself that decides by how likely each group is.
INFERS = (
    "The policy does not see the group and infers the group from x: it weighs how likely a person is of each."
)


@dataclass(frozen=True)
class Search:
    """How the column generation ended.

    Attributes
    ----------
    passes : int
        Deterministic policies that were tried.
    stopped : str
        Why it stopped: the duality gap closed, stagnation, or too many passes.
    duality_gap, plug_in_optimum : float or None
        The best mixture for the calibrated probabilities had the loss ``plug_in_optimum``; no policy that sees x has
        a loss more than ``duality_gap`` below that, if those probabilities are right. None when those probabilities
        call the requirements out of reach, though the real labels meet them.
    plug_in_loss, plug_in_gaps : float, dict
        What the calibrated probabilities expect of the policy; ``Policy.loss`` and ``Policy.gaps`` are what
        really happened on the labelled rows.
    """

    passes: int
    stopped: str
    duality_gap: float | None
    plug_in_optimum: float | None
    plug_in_loss: float
    plug_in_gaps: dict[str, float]


@dataclass(frozen=True)
class Seen:
    """What a policy sees of people.

    Every decision's expected worth, the likeliest class, the slot of the group, and of two classes the score.
    """

    ledger: Ledger
    likely: Codes
    group: Codes
    score: Floats | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IndividualPolicy(Policy):
    """A mixture of deterministic policies of a person's features.

    Policy m decides what minimises ``alpha[m]`` times the expected loss minus ``kappa[m]`` times the expected
    happiness; group z follows policy m with probability ``share[z, m]``. ``slopes`` say how means follow kappa, where
    it can be steered; None in files that do not hold them.
    """

    mixture: Mixture
    calibration: Calibration
    origin: Floats
    problem: Problem
    search: Search
    slopes: Slopes | None = None

    @property
    def happiness(self) -> tuple[Happiness, ...]:
        """The functions that decide."""
        return self.problem.happiness

    @property
    def kind(self) -> str:
        """Individual."""
        return Individual.kind

    @property
    def sees_x(self) -> bool:
        """Yes."""
        return True

    @property
    def is_randomized(self) -> bool:
        """Whether some group follows more than one policy, or people keep a chance whatever these say."""
        return self.randomize and bool(self.explore or faces_lottery(self.mixture.share).any())

    @property
    def unrequired(self) -> Self:
        """One rule that takes the least expected loss, whatever that does to happiness."""
        return replace(self, mixture=self.mixture.by_loss, explore=())

    def columns_seen(self, engine: Engine, group: Any) -> tuple[str, ...] | None:
        """Columns that its functions look at."""
        return used_columns(engine, Roles(group=group), self.problem)

    def _mixed(self, scores: Array, group: Codes | None, x: Table, group_proba: Array | None) -> Floats:
        return np.asarray(self.follow([self], self.look(scores, group, x, group_proba))[0])

    @property
    def sight(self) -> object:
        """The calibration."""
        return self.calibration

    def look_at(self, people: People) -> Seen:
        """What may be expected of people who were checked."""
        scores = people.with_scores.score
        assert scores is not None, "an individual policy sees probabilities"
        return self.look(scores, self._groups_of(people), people.x, people.group_proba, people.rows)

    def look(
        self,
        scores: Array,
        group: Codes | None,
        x: Table,
        group_proba: Array | None = None,
        numbers: Codes | None = None,
    ) -> Seen:
        """What may be expected of people, whatever the mixture; ``numbers`` are those of their rows, for messages."""
        if x is None:
            raise DataError("An individual policy looks at the people themselves.", "Pass x=, their table.")
        rows = np.arange(len(scores)) if numbers is None else numbers
        if count_rows(x) != len(rows):
            raise DataError(f"There are {len(rows)} scores for {count_rows(x)} people.", "Pass one for each.")
        k, g = len(self.problem.labels), len(self.groups)
        names, scores = None, check_proba(scores, k, rows)
        if self.sees_group:
            names = names_at(self.groups, np.asarray(group))
            belief = self.calibration.apply(scores, np.asarray(group))
        else:
            belief = joint_of(scores, check_group_proba(group_proba, g, rows))
        likely = self.problem.as_decided(likeliest(scores))  # asked for only where labels are decisions
        now = self.problem.decisions[likely] if self.problem.looks_at_baseline else None
        ledger = expected_ledger(self.problem, self.groups, x, belief, names, self.origin, rows, now)
        if self.change_cost:
            ledger = replace(ledger, cost=charged(ledger.cost, likely, cast(float, self.change_cost)))
        slot = np.zeros(len(rows), dtype=np.intp) if group is None else group
        return Seen(ledger, likely, slot, scores[:, 1] if k == 2 else None)

    @classmethod
    def follow(cls, policies: Sequence[Self], seen: Seen) -> Floats:
        """What each policy that is mixed decides, with its share; one that several mix decides once for all."""
        ledger = seen.ledger
        probabilities = np.zeros((len(policies), *ledger.cost.shape))
        for z in range(len(policies[0].groups) if policies[0].sees_group else 1):
            rows = np.flatnonzero(seen.group == z)
            cost, value, likely = ledger.cost[rows], ledger.value[rows], seen.likely[rows]
            decided: dict[tuple[int, float, bytes], Codes] = {}
            for policy, mixed in zip(policies, probabilities, strict=True):
                mixture = policy.mixture
                for m in np.flatnonzero(mixture.share[z]):
                    kappa = mixture.kappa[m, z : z + 1] if policy.sees_group else mixture.kappa[m]
                    fixed, alpha = int(mixture.fixed[m]), float(mixture.alpha[m])
                    key = fixed, alpha, kappa.tobytes()
                    if key not in decided:
                        free = fixed == CHOOSES
                        decided[key] = (
                            choose(alpha, kappa, cost, value) if free else fixed_decisions(fixed, likely)
                        )
                    mixed[rows, decided[key]] += mixture.share[z, m]
        for policy, mixed in zip(policies, probabilities, strict=True):
            if policy.explore:
                chances = [one.chance for one in policy.explore]
                floors = floors_of(chances, seen.score, seen.group, mixed.shape[1])
                mixed *= 1.0 - floors.sum(axis=1, keepdims=True)
                mixed += floors
        return probabilities

    def controls(self, j: int, happiness: HappinessLike | None) -> WeightControls:
        """Weights of happiness."""
        return WeightControls(self, j, happiness)

    def grounds(self, person: Person, without: Mapping[str, Floats]) -> Grounds:
        """What every decision is expected to cost, and what happiness takes off."""
        return grounds_of_individual(self, person)

    @classmethod
    def rules_along(
        cls,
        policies: Sequence[Self],
        digits: int = 12,
        wording: Wording | None = None,
        most: int | None = None,
    ) -> list[list[str]]:
        """One sentence for every group and policy that is mixed."""
        if not policies:
            return []
        names = policies[0].wording if wording is None else wording
        return [policy._rules(digits, names, most) for policy in policies]

    def _rules(self, digits: int, names: Wording, most: int | None) -> list[str]:
        sentences = [] if self.sees_group else [INFERS]
        for one in self.explore:
            sentences.append(f"By lottery, people keep a {one.chance.words}; what follows decides the rest.")
        for z in range(len(self.groups[:most]) if self.sees_group else 1):
            who = f"In group {names.groups[z]}" if self.sees_group else "In any group"
            shares = self.mixture.share[z]
            for m in np.flatnonzero(shares).tolist():
                chance = f"{shares[m]:.2%}"
                draw = f"with probability {NEARLY.get(chance, chance)}, by lottery,"
                often = "always" if shares[m] == 1 else draw
                fixed = int(self.mixture.fixed[m])
                if fixed != CHOOSES:
                    likeliest = fixed == LIKELY
                    what = (
                        "the class that the model finds likeliest"
                        if likeliest
                        else f"{names.decisions[fixed]} for everybody"
                    )
                    sentences.append(f"{who}, {often} the decision is {what}.")
                    continue
                aim = self._aim(m, z, min(digits, 6), names, most)
                sentences.append(f"{who}, {often} that decision is taken which has the least {aim}.")
        return sentences

    def _aim(self, m: int, z: int, digits: int, names: Wording, most: int | None) -> str:
        parts = ["expected loss"] if self.mixture.alpha[m] else ["value of zero"]
        if self.change_cost and self.mixture.alpha[m]:
            cost = f"{self.change_cost:.{digits}g}"
            parts.append(f"plus {cost} if it is not the class that the model finds likeliest")
        for y in [z] if self.sees_group else range(len(names.groups[:most])):
            whose = "" if self.sees_group else f" if the person is of group {names.groups[y]}"
            for j, measure in enumerate(self.measures):
                weight = self.mixture.kappa[m, y, j]
                if weight:
                    sign, unit = ("less" if weight > 0 else "plus"), measure.unit or "unit"
                    parts.append(
                        f"{sign} {abs(weight):.{digits}g} per {unit} of expected {names.measures[j]}{whose}"
                    )
        others = 0 if self.sees_group else len(names.groups) - len(names.groups[:most])
        return " ".join([*parts, f"and so on for {others:,} more groups"] if others else parts)

    # -----------------------------------------------------------------------------------------------------
    # Files

    def _content(self) -> dict[str, Any]:
        loss = self.problem.loss
        stored: Any = loss.name if loss.matrix is None else loss.matrix.tolist()
        if isinstance(loss.function, Expression) and loss.name != CHANGES:
            stored = {"expression": loss.function.text}
        found = {
            "policy": {"kind": "individual"},
            "fixed": self.mixture.fixed.tolist(),
            "alpha": self.mixture.alpha.tolist(),
            "kappa": self.mixture.kappa.tolist(),
            "share": self.mixture.share.tolist(),
            "calibration": [
                [[x.tolist(), y.tolist()] for x, y in curves] for curves in self.calibration.knots
            ],
            "origin": self.origin.tolist(),
            "functions": [function_to_json(happiness) for happiness in self.happiness],
            "loss_function": stored,
            "search": asdict(self.search),
        }
        if self.slopes is not None:  # files that do not hold them keep their checksum
            found["slopes"] = self.slopes.to_json()
        return found

    @classmethod
    def _parsed(cls, content: dict[str, Any], common: dict[str, Any], **functions: Any) -> Policy:
        given = functions["happiness"]
        known = {}
        if given is not None:
            resolved = with_counted(resolve_happiness(given, *_asked_about(common)))
            known = {str(item.name): item for item in resolved}
        stored = zip(common["measures"], content["functions"], strict=True)
        happiness = [function_from_json(measure, written, known) for measure, written in stored]
        loss, decisions = content["loss_function"], common.get("decisions", common["classes"])
        if isinstance(loss, dict):
            loss = Expression(loss["expression"])
        elif isinstance(loss, str) and loss != CHANGES:
            loss = functions["loss"]
            if loss is None:
                raise PolicyFileError(
                    f"The loss of this policy is the Python {content['loss_function']}.",
                    "Pass loss= with it.",
                )
        return cls(
            mixture=Mixture(
                read_whole(content["fixed"], "fixed", LIKELY).astype(np.intp),
                *(read_numbers(content[name], name) for name in ("alpha", "kappa", "share")),
            ),
            calibration=Calibration(
                tuple(
                    tuple((read_numbers(x, "calibration"), read_numbers(y, "calibration")) for x, y in curves)
                    for curves in content["calibration"]
                )
            ),
            origin=read_numbers(content["origin"], "origin"),
            problem=Problem(
                decisions,
                common["classes"],
                tuple(happiness),
                Loss.of(loss, decisions, common["classes"]),
                sees_group=common["sees_group"],
                closed=tuple(measure.name for measure in common["measures"] if not measure.aside),
                order=common.get("order", ()),
                rising=common.get("rising"),
            ),
            search=_read_search(content["search"]),
            slopes=Slopes.from_json(content.get("slopes"), (len(common["groups"]), len(common["measures"]))),
            **common,
        )

    def _validate(self) -> None:
        super()._validate()
        g, k, j, m = len(self.groups), len(self.classes), len(self.measures), len(self.mixture.alpha)
        mixture = self.mixture
        check_shape("fixed", mixture.fixed.astype(np.float64), (m,))
        check_shape("alpha", mixture.alpha, (m,))
        check_shape("kappa", mixture.kappa, (m, g, j))
        check_shape("share", mixture.share, (g, m))
        check_shape("origin", self.origin, (j,))
        if (mixture.share < 0).any() or not (np.abs(mixture.share.sum(axis=1) - 1.0) <= 1e-9).all():
            raise refused("some mixture weights are negative or do not sum to one")
        if (mixture.fixed >= len(self.decisions)).any() or (mixture.alpha < 0).any():
            raise refused("a policy of the mixture is none")
        if self.change_cost == "auto":
            raise refused("its cost of changes is that of a score")
        if len(self.calibration.knots) != (g if self.sees_group else 0):
            raise refused("a group has no calibration")
        for curves in self.calibration.knots:
            if len(curves) != k:
                raise refused("a class has no calibration")
            for x, y in curves:
                check_shape("calibration", check_shape("calibration", y, x.shape), (len(y),))
                rising = (np.diff(x) >= 0).all() and (np.diff(y) >= 0).all()
                if not len(x) or not rising or y.min() < 0 or y.max() > 1 or not np.isfinite(x).all():
                    raise refused("a calibration curve does not rise from 0 to 1")
        for happiness in self.happiness:
            check_classes(happiness, self.decisions.tolist(), self.problem.labels.tolist())


def _asked_about(common: dict[str, Any]) -> tuple[list[Any], list[Any] | None, tuple[Any, ...]]:
    """Decisions, labels and the order that happiness is read for."""
    labels = common["classes"].tolist()
    if "decisions" not in common:
        return labels, None, common.get("order", ())
    return common["decisions"].tolist(), labels, ()


def _read_search(content: Any) -> Search:
    """How the search ended, each part of its type."""
    if not isinstance(content, dict) or set(content) != {field.name for field in fields(Search)}:
        raise refused("it does not say how the search ended")
    if type(content["stopped"]) is not str:
        raise refused("it does not say how the search ended")
    if not isinstance(content["plug_in_gaps"], dict):
        raise refused("it has no plug-in gaps")
    gaps = {name: read_number(gap, "a plug-in gap") for name, gap in content["plug_in_gaps"].items()}
    numbers = {
        name: None if content[name] is None and name != "plug_in_loss" else read_number(content[name], name)
        for name in ("duality_gap", "plug_in_optimum", "plug_in_loss")
    }
    passes = int(read_whole(content["passes"], "passes"))
    return Search(passes, content["stopped"], plug_in_gaps=gaps, **numbers)  # type: ignore[arg-type]  # plug_in_loss is a number


Policy.kinds["individual"] = IndividualPolicy


def search_of(found: Generated, names: list[str]) -> Search:
    """The part of a generation that a policy remembers."""
    gaps = dict(zip(names, found.plug_in.gaps.tolist(), strict=True))
    # A search that the probabilities call hopeless has no certificate; a file cannot hold infinity.
    certified = np.isfinite(found.plug_in_optimum)
    return Search(
        found.passes,
        found.stopped,
        float(found.duality_gap) if certified else None,
        float(found.plug_in_optimum) if certified else None,
        found.plug_in.loss,
        gaps,
    )
