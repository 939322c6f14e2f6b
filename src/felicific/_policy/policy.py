"""A policy: q(decision given signal, group), with what it does to the people it was fitted on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from felicific._files import (
    check_distinct,
    check_means,
    check_shape,
    plain,
    read_classes,
    read_decisions,
    read_document,
    read_means,
    read_number,
    read_numbers,
    read_prices,
    read_values,
    refused,
    write_classes,
    write_decisions,
)
from felicific._people.people import People
from felicific._people.roles import Roles, ordered_groups
from felicific._policy.apply import SeenColumns, decide_table, proba_columns, refuse_taken
from felicific._policy.basis import (
    OUT_OF_FOLD,
    SHARES,
    UNCHANGED,
    Basis,
    cautions_of,
    check_shares,
    expected_gaps,
    expected_reached,
    harms_of,
    named_outcome,
    outlook,
    read_left_out,
    read_share,
    write_left_out,
    write_outcome,
)
from felicific._policy.controls import Controls
from felicific._policy.explain import explain_person
from felicific._policy.explanation import Explanation, Grounds, Person, one_key, one_of
from felicific._policy.lottery import (
    SaltedPolicy,
    check_keys,
    draw,
    keys_as_text,
)
from felicific._policy.numeric import AmountPolicy, not_among_classes
from felicific._policy.words import picture_of
from felicific._problem.change import (
    baseline_words,
    harm_sentences,
    three_points,
)
from felicific._problem.decisions import label_positions
from felicific._problem.exploration import Chance, Explored
from felicific._problem.happiness import (
    HappinessLike,
    Measure,
    fractions_of,
    measured,
    read_measure,
)
from felicific._problem.loss import is_accuracy, loss_text, loss_words
from felicific._problem.requirement import Share
from felicific._problem.unions import (
    Attribute,
    LeftOutBy,
    compared_by,
    read_attributes,
    whom_left_out,
)
from felicific._program.aggregates import Outcome
from felicific._program.change_cost import ChangeCost, words_of
from felicific._program.label_completion import KnownLabels
from felicific._shown.parts import GROUPS, Displayed, Lines, Part, listed, more_groups
from felicific._tables.dialect import Dialect, SqlDialect, dialect_of
from felicific._tables.engine import Engine, find_engine
from felicific._tables.groups import UNDECIDED, encode_groups, without_null
from felicific._tables.memory import Entries, as_entries, one_row
from felicific._typing import Array, Codes, Floats, GapLike, ProbaColumns, Table, Truths
from felicific.exceptions import ConstraintError, DataError, GroupError, PolicyFileError

if TYPE_CHECKING:
    from felicific._policy.apply import Lookup
    from felicific._policy.steering import Steering

#: How likely people are of each group: by group, or one column each.
GroupChances: TypeAlias = Mapping[Any, ArrayLike] | Array | None


def _no_decisions() -> Array:
    """What stands for the classes where decisions are not listed."""
    return np.empty(0)


class Stretches(NamedTuple):
    """Scores that are treated alike.

    ``rows`` hold the position of the group, that of the model's label, from which score to which, and the probability
    of every decision; ``boundary`` is the model's own, along one line of scores. Of a decision function, these are
    places along its cells: ``cuts`` are the places between them, each with the value there.
    """

    rows: list[tuple[int, int, float, float, list[float]]]
    boundary: float | None
    cuts: list[tuple[float, float]] = []  # noqa: RUF012  # nobody changes it

    def scale(self) -> tuple[dict[float | None, float], tuple[float, float]]:
        """Values of a decision function at the places where steps may be, with some room at its ends; and the ends.

        Of scores no values, and from 0 to 1.
        """
        if not self.cuts:
            return {}, (0.0, 1.0)
        first, last = self.cuts[0][1], self.cuts[-1][1]
        room = 0.05 * (last - first) or 1.0
        ends = first - room, last + room
        return {0.0: ends[0], **dict(self.cuts), 1.0: ends[1]}, ends


class Wording(NamedTuple):
    """How sentences write the groups, the labels, the decisions and the measures of a policy."""

    groups: Sequence[str]
    classes: Sequence[str]
    decisions: Sequence[str]
    measures: Sequence[str]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Policy(SaltedPolicy, Displayed, ABC):
    """What is decided on a person, and what that does to the people it was fitted on.

    Attributes
    ----------
    classes : array of shape (K,)
        The labels of the model.
    decisions : array of shape (D,)
        The decisions: the classes, unless others are listed.
    listed : bool
        Whether the decisions are listed, from the worst to the best for the person.
    groups : tuple
        The groups.
    measures : tuple of Measure
        What was measured.
    outcome : Outcome
        Loss, group means and gaps on the fitted people.
    prices : dict
        Loss given up per unit by which each gap (by measure) or other requirement (by its words) is
        tightened, what further changes cost (``change_cost``) included.
    salt : str
        128 bits of the lottery, as hexadecimal text. Whoever knows it can compute everybody's draw; one that begins
        with ``seed-`` comes from ``random_state``, so anybody can.
    randomize : bool
        False when each person gets the most probable decision instead of a draw.
    sees_group : bool
        False when the policy does not need the group to decide.
    expected : bool
        True when the outcome is what is expected of people without labels, not what was measured.
    basis : Basis
        What the numbers rest on, and what they are compared with: the name of the loss, what the baseline's decisions
        do, the gaps that were asked for, and whether each person's probabilities came from a model not fitted on that
        person.
    attributes : tuple of str or int
        What the groups are made of: names of columns, or positions where they have none.
    left_out : dict of measure name to LeftOut
        Which groups the gap of a measure does not compare, with how many people, where there are any.
    labels : KnownLabels, or None
        Who has a label, where some are missing.
    order : tuple
        The decisions from the worst to the best for the person, where they stand in another order.
    rising : bool, or None
        Where decisions are others than the classes: whether better ones go with higher scores of the last class.
    explore : tuple of Explored
        Chances that people keep, see :class:`felicific.Exploration`.
    roles : Roles
        The names of its columns, as far as columns were named: where a table has them, nobody has to name them again.

    Examples
    --------
    >>> from felicific import Policy, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, gap=0.0, random_state=0)
    >>> policy.probabilities([0.6, 0.6], group=["f", "m"]).tolist()  # probability of 0 and of 1
    [[0.0, 1.0], [1.0, 0.0]]
    >>> policy.apply({"id": ["a", "b"], "sex": ["f", "m"], "score": [0.6, 0.6]},
    ...              score="score", sensitive_features="sex", key="id")["decision"].tolist()
    [1, 0]
    >>> Policy.from_json(policy.to_json()).loss == policy.loss
    True
    """

    classes: Array
    groups: tuple[Any, ...]
    measures: tuple[Measure, ...]
    outcome: Outcome
    prices: dict[str, float]
    salt: str = field(repr=False)
    randomize: bool = True
    sees_group: bool = True
    expected: bool = False
    basis: Basis = field(default_factory=Basis)
    attributes: tuple[Attribute, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    labels: KnownLabels | None = None
    order: tuple[Any, ...] = ()
    rising: bool | None = None
    explore: tuple[Explored, ...] = ()
    decisions: Array = field(default_factory=_no_decisions)
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it

    _whole: ClassVar[str] = "sentences() says all of it."

    of_amounts: ClassVar[bool] = False

    #: Kinds of policy by the name that files give them.
    kinds: ClassVar[dict[str, type[Policy]]] = {}

    def __post_init__(self) -> None:
        if not len(self.decisions):
            object.__setattr__(self, "decisions", self.classes)

    @property
    def needs_proba(self) -> bool:
        """Whether it is applied to probabilities, or else to predicted labels."""
        return True

    @property
    def of_values(self) -> bool:
        """Whether it is applied to values of a decision function, not to probabilities."""
        return False

    @property
    def asks(self) -> str:
        """Which method of a model says what it is applied to."""
        return "predict_proba" if self.needs_proba else "predict"

    @property
    def applied_to(self) -> str:
        """What has to be said of people for it to decide on them."""
        if self.of_values:
            return "the decision function"
        return "probabilities" if self.needs_proba else "probabilities or predictions"

    @property
    def labels_seen(self) -> list[Any]:
        """The labels whose probabilities it sees, or one of which it does."""
        return list(self.classes.tolist())

    @property
    @abstractmethod
    def kind(self) -> str:
        """What ``policy=`` calls it."""

    @property
    def sees_x(self) -> bool:
        """Whether it looks at the people themselves, and not only at what the model says of them."""
        return False

    @property
    def infers_group(self) -> bool:
        """Whether it decides by how likely a person is of each group, because it does not see the group."""
        return self.sees_x and not self.sees_group

    @property
    def sums_suffice(self) -> bool:
        """Whether sums over people tell what another policy of this kind would do to each of them."""
        return False

    @property
    def share_drawn(self) -> float | None:
        """Share of the fitted people who face a lottery; None when it cannot be told without them."""
        return None

    def share_explored(self, one: Explored) -> float | None:
        """Share of the fitted people who have just the chance that they keep; None where that is not known."""
        return one.share

    def least_chance(self, chance: Chance) -> float:
        """The least that anybody has of a chance that people keep."""
        return chance.at_least

    @property
    def keeps_baseline(self) -> Truths:
        """Groups in which it decides on everybody as the model does; none where that cannot be told."""
        return np.zeros(len(self.groups), dtype=bool)

    def worsens(self, less: Truths, shares: Sequence[Share], seen: Sequence[People]) -> tuple[str, str]:
        """Why it may give ``less`` than the model does, to those of whom ``shares`` speak; and what the model gives."""
        return "it decides on each person by more than what the model says", "decision"

    @property
    @abstractmethod
    def unrequired(self) -> Self:
        """The policy of the same sight that has the least loss on the fitted people, of which nothing is required."""

    @property
    def best(self) -> int:
        """Position of the best decision."""
        return self.decisions.tolist().index(self.order[-1]) if self.order else len(self.decisions) - 1

    @property
    def listed(self) -> bool:
        """Whether its decisions are others than the classes, listed from the worst to the best."""
        return self.rising is not None

    @property
    def decisions_given(self) -> list[Any] | None:
        """Its decisions from the worst to the best, as a user lists them; None for the classes in their order."""
        return list(self.order) or (self.decisions.tolist() if self.listed else None)

    @property
    def label_decisions(self) -> Codes:
        """Position of every label among the decisions; -1 where it is none."""
        return label_positions(self.classes, self.decisions)

    def decided(self, people: People) -> People:
        """The people with what it decides on each."""
        return replace(people, probabilities=self.probabilities_of(people), drawn=self.is_randomized)

    def sure_of(self, scores: Array, group: Entries | None) -> int | None:
        """Position of the decision on the one person there is; None where draws decide, or it takes longer to say."""
        return None

    def lookup(self) -> Lookup | None:
        """Its decisions by group and score, where that is all it looks at."""
        return None

    def columns_seen(self, engine: Engine, group: Any) -> tuple[str, ...] | None:
        """Roles of x that it looks at; None when it must see the library's own rows."""
        return ()

    @abstractmethod
    def _mixed(self, scores: Array, group: Codes | None, x: Table, group_proba: Array | None) -> Floats:
        """Probability of every decision, before any rounding."""

    def reading(self, people: People) -> People:
        """The people as it reads what the model says of them."""
        return people

    @abstractmethod
    def look_at(self, people: People) -> Any:
        """What it sees of people who were checked, for :meth:`follow`."""

    def places(self, people: People) -> tuple[Codes, Codes] | None:
        """The cell of each of some people who were not checked, and the model's label; None where that is not quick."""
        return None

    @classmethod
    @abstractmethod
    def follow(cls, policies: Sequence[Self], seen: Any) -> Floats:
        """Probability of every decision about people who were looked at, before any rounding.

        Of policies of one sight; the result is of shape (policies, n, D).
        """

    @property
    @abstractmethod
    def sight(self) -> object:
        """What it looks by: policies of the same sight see the same of people."""

    def _groups_of(self, people: People) -> Codes | None:
        """Positions of people's groups among those of the policy, if it sees them."""
        if not self.sees_group:
            return None
        if people.groups == self.groups:
            return people.codes
        return encode_groups(people.group_entries, self.groups, people.rows)

    def probabilities_of(self, people: People) -> Floats:
        """Probability of every decision about people who were checked."""
        return self.rounded(self.follow([self], self.look_at(people))[0])

    @classmethod
    @abstractmethod
    def rules_along(
        cls,
        policies: Sequence[Self],
        digits: int = 12,
        wording: Wording | None = None,
        most: int | None = None,
    ) -> list[list[str]]:
        """What :meth:`rules` says of each of some policies that differ in their probabilities alone.

        Names stand in the sentences as ``wording`` says; by default as Python writes them. Of more groups than the
        ``most``, the first are spoken of.
        """

    def rules(self, digits: int = 12) -> list[str]:
        """Sentences that say what is decided on whom, with numbers of so many digits."""
        return self.rules_along([self], digits)[0]

    @property
    def wording(self) -> Wording:
        """Names as Python writes them."""
        return Wording(
            [repr(group) for group in self.groups],
            [repr(label) for label in self.classes.tolist()],
            [repr(decision) for decision in self.decisions.tolist()],
            [repr(measure.name) for measure in self.measures],
        )

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """What a file holds of this kind of policy alone."""

    @classmethod
    @abstractmethod
    def _parsed(cls, content: dict[str, Any], common: dict[str, Any], **functions: Any) -> Policy:
        """Read what :meth:`_content` wrote."""

    @property
    def loss(self) -> float:
        """Expected loss per person on the fitted people."""
        return self.outcome.loss

    @property
    def loss_range(self) -> tuple[float, float]:
        """The least and the most that the loss can be, where hidden reasons leave it open; else the loss, twice."""
        least = self.basis.least_loss
        return (self.loss if least is None else least), self.loss

    @property
    def gaps(self) -> dict[str, float]:
        """Gap of every measure on the fitted people, in its unit."""
        names = [measure.name for measure in self.measures]
        return dict(zip(names, self.outcome.gaps.tolist(), strict=True))

    @property
    def gap(self) -> float:
        """The gap, when there is one measure, but for those that only requirements or fractions speak of."""
        own = measured(self.measures)
        if len(own) != 1:
            raise ConstraintError(f"There are {len(own)} measures, so there is no single gap.", "Read .gaps.")
        return float(self.outcome.gaps[own[0]])

    @property
    def reached(self) -> dict[str, float]:
        """What it makes of every requirement besides gaps of all groups, by its words.

        A gap, a ratio or a mean; of chances that people keep, the least that anybody has.
        """
        found = {asked.words: asked.reached(self.outcome.means) for asked in self.basis.requirements}
        return found | {one.chance.words: self.least_chance(one.chance) for one in self.explore}

    @property
    def not_constrained(self) -> dict[str, dict[Any, float]]:
        """Who is not compared by the gap of which measure, or by which requirement, and how many people they are."""
        own = {measure: dict(part.people) for measure, part in self.left_out.items()}
        return own | {
            asked.words: dict(asked.left_out) for asked in self.basis.requirements if asked.left_out
        }

    @property
    def means(self) -> dict[str, dict[Any, float]]:
        """Mean happiness, by measure and group."""
        return {
            measure.name: dict(zip(self.groups, self.outcome.means[:, j].tolist(), strict=True))
            for j, measure in enumerate(self.measures)
        }

    @property
    def change_cost(self) -> ChangeCost:
        """What a decision that is not the baseline's cost beside the loss; ``loss`` is without it.

        A number, or "auto" where that charged something.
        """
        return self.basis.change_cost

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """What is done to the fitted people ``"baseline"``, ``"unconstrained"`` and as ``"proposed"`` by this policy.

        Unconstrained is a policy of the same kind, at the same cost of changes, of which nothing is required: from
        the baseline to there decisions are tuned, and from there on made fair. What is not known is left out, such as
        of files that older versions wrote. Print one, or read its ``to_dict()``, for the names of groups and
        measures.
        """
        free = self.basis.unconstrained
        points = {
            "baseline": self.basis.baseline,
            "unconstrained": None if free is None else free.value,
            "proposed": self.outcome,
        }
        return {name: named_outcome(self, outcome) for name, outcome in points.items() if outcome is not None}

    # -----------------------------------------------------------------------------------------------------
    # What to expect of others

    def expected_gaps(self, people: float | Mapping[Any, float] | None = None) -> dict[str, float]:
        """The gap of every measure that is to be expected on new people, in its unit.

        On them the means of groups are off by chance: from having been known of so many people, and from there being
        so many new ones. People are taken to be independent, and like those it was fitted on.

        Parameters
        ----------
        people : number, or dict of group to number, optional
            How many new people: altogether, in the mix of groups that was fitted; or of every group. By default as many
            as it was fitted on, or those it was recalibrated for, on whom what ignores the label is known exactly.
            ``math.inf`` for the gap that would be found in the end.

        Examples
        --------
        >>> from felicific import aggregate, solve
        >>> people = {"sex": ["f", "m"] * 50, "score": [0.2, 0.7, 0.6, 0.4] * 25, "repaid": [0, 1, 1, 0] * 25}
        >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex",
        ...                  happiness="statistical_parity")
        >>> policy = solve(sums, gap=0.0, random_state=0)
        >>> [round(list(policy.expected_gaps(n).values())[0], 2) for n in (100, 1_000, 100_000)]
        [0.11, 0.08, 0.08]
        """
        return expected_gaps(self, people)

    def expected_reached(self, people: float | Mapping[Any, float] | None = None) -> dict[str, float]:
        """What new people are expected to make of every requirement that compares others than all groups, by its words.

        The gap or the ratio of :attr:`reached`, expected as :meth:`expected_gaps` expects gaps.

        Parameters
        ----------
        people : number, or dict of group to number, optional
            As for :meth:`expected_gaps`.
        """
        return expected_reached(self, people)

    def cautions(self, *, warn: bool = False) -> list[str]:
        """What whoever fitted it should know, the worst first; with ``warn``, only what a fit warns of."""
        return cautions_of(self, warn=warn)

    # -----------------------------------------------------------------------------------------------------
    # Use

    def probabilities(
        self, scores: Any, group: Any = None, x: Table = None, group_proba: Any = None
    ) -> Floats:
        """Probability of every decision for every person, from arrays.

        Parameters
        ----------
        scores : array of shape (n, K) or (n,)
            The model's probabilities, columns in the order of ``classes``; with two classes the score of the second
            will do. Or, for a label policy, its predicted labels; of a model without probabilities, the values of its
            decision function, of shape (n,).
        group : array of shape (n,)
            The groups; one that was never fitted is an error. Not needed by a policy that does not see them.
        x : table of n rows
            The people; only an individual policy looks at them.
        group_proba : {group: array of shape (n,)}, or array of shape (n, groups)
            How likely each person is of each group; only an individual policy that does not see the group looks at it.
        """
        array, codes, group_proba = self.arrays(scores, group, group_proba)
        return self.rounded(self._mixed(array, codes, x, group_proba))

    def arrays(
        self, scores: object, group: object, group_proba: GroupChances
    ) -> tuple[Array, Codes | None, Array | None]:
        """Scores, positions of groups and their probabilities, as arrays that go together."""
        if find_engine(scores) is not None:
            raise DataError(
                "The scores are in a table that is not in memory.",
                "Use policy.apply(table, ...), and name its columns: score={class: column}, sensitive_features=, key=.",
            )
        array = scores.to_numpy() if hasattr(scores, "to_numpy") else np.asarray(scores)
        codes = None
        if self.sees_group:
            if group is None:
                raise GroupError("This policy sees the group, and none was given.", "Pass group=.")
            vector = as_entries(group, "group")
            if len(vector) != len(array):
                raise DataError(
                    f"There are {len(vector)} groups for {len(array)} scores.",
                    "Pass one group for every row.",
                )
            codes = encode_groups(without_null(vector, UNDECIDED), self.groups)
        self.check_group_proba(group_proba)
        if isinstance(group_proba, Mapping):
            group_proba = np.column_stack(ordered_groups(group_proba, self.groups))
        return array, codes, group_proba

    def check_group_proba(self, given: Any) -> None:
        """Insist on the probabilities of the groups where the policy decides by them, and nowhere else."""
        if self.infers_group and given is None:
            raise DataError(
                "This policy infers the group from x, and nobody said how likely each group is.",
                "Pass group_proba={group: column}: what a model of the group says, fitted on other people "
                "(group_model_ of a FairClassifier).",
            )
        if given is not None and not self.infers_group:
            what = "sees the group" if self.sees_group else "sees a signal alone"
            raise DataError(f"This policy {what}, and group_proba= has no use.", "Leave group_proba= out.")

    def apply(
        self,
        table: Table,
        *,
        score: ProbaColumns | None = None,
        predicted: str | None = None,
        sensitive_features: str | Sequence[str] | None = None,
        key: str | None = None,
        group_proba: Mapping[Any, str] | None = None,
        column: str = "decision",
        with_proba: bool = False,
    ) -> Any:
        """The table with the decisions as one more column; a lazy table stays lazy.

        Parameters
        ----------
        table : table in memory, lazy table, or path of Parquet files
            A lazy table draws the same draws as Python, whatever its engine.
        score, predicted : column, {class: column} or list of columns; column
            Where the model's probabilities, or its own labels, are; with two classes the score of the second will do.
            For a policy of a model without probabilities, ``score`` is the column of its decision function. Roles
            that are not named are those that were named when it was fitted.
        sensitive_features, key : column(s), column
            Where the groups are, and what identifies a person (strings or integers).
        group_proba : {group: column}
            Where it is said how likely each group is, for an individual policy that does not see the group.
        column : str
            How the column of decisions is called.
        with_proba : bool, default=False
            Whether to add the chance that everybody had: of two classes a column ``probabilities``, of the best
            decision; of more, a column ``proba_<class>`` of each.
        """
        named = Roles(sensitive_features, None, score, predicted, key=key, group_proba=group_proba)
        return decide_table(table, self, SeenColumns.of(self, named), column, with_proba=with_proba)

    def rounded(self, decisions: Floats) -> Floats:
        """Decision probabilities as they are, or the most probable decision when the policy does not randomize.

        Decisions are the last axis; any may come before it.
        """
        if self.randomize:
            return decisions
        return np.asarray(np.eye(len(self.decisions))[decisions.argmax(axis=-1)])

    def decide(
        self, scores: Any, group: Any = None, key: Any = None, x: Table = None, group_proba: Any = None
    ) -> Array:
        """Decide on every person: the same key always draws the same number.

        Parameters
        ----------
        scores, group, x, group_proba : as in :meth:`probabilities`
        key : array of shape (n,)
            Strings or integers that identify the people.
        """
        if key is None:
            raise DataError("There are no keys.", "Pass key=, one string or integer per person.")
        keys, probabilities = check_keys(key), self.probabilities(scores, group, x, group_proba)
        if len(keys) != len(probabilities):
            raise DataError(
                f"There are {len(keys)} keys for {len(probabilities)} people.", "Pass one key per person."
            )
        codes = draw(probabilities, lambda rows: keys_as_text(keys[rows]), self.salt)
        return np.asarray(self.decisions[codes])

    def steer(
        self,
        happiness: HappinessLike | None = None,
        gap: GapLike = None,
        pace: float | None = None,
        reach: float = 0.25,
    ) -> Steering:
        """Begin to decide so that the gap closes while people come: what some got too much, the next ones pay back.

        Where a policy that stays as it was fitted leaves the gap that chance and change make, a steered one moves the
        threshold of every group (of an individual policy the weight of happiness) by what its people have had so far.

        Parameters
        ----------
        happiness : function, expression or Happiness, optional
            As the policy was fitted; an individual policy holds it itself. It may look at the decision, at x and at the
            group, and not at the label, which is not known when deciding.
        gap : number, or {measure: number}, optional
            The largest gap between all groups; by default what the policy was fitted to: a gap, a
            :class:`felicific.Floor` of a number, or a :class:`felicific.Budget`.
        pace : number, optional
            How many people may come until an error that stays has shrunk to a third (1/e). By default as many as bring
            300 of the smallest group. Fewer leave a smaller gap, and make decisions jump about more.
        reach : number above 0, at most 1, default=0.25
            How far controls may go from where they began: the share of a group whose decision may change. What
            cannot be paid back now is paid back later.

        Returns
        -------
        Steering
            Its ``decide`` takes the arguments of :meth:`decide`; ``save`` it afterwards.

        Examples
        --------
        >>> from felicific import aggregate, solve
        >>> people = {"sex": ["f", "m"] * 50, "score": [0.2, 0.7, 0.6, 0.4] * 25, "repaid": [0, 1, 1, 0] * 25}
        >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
        >>> policy = solve(sums, gap=0.0, random_state=0)
        >>> steering = policy.steer(happiness="decision")
        >>> steering.decide([0.2, 0.6, 0.7], ["f", "f", "m"], ["a", "b", "c"]).tolist()
        [0, 1, 1]
        >>> steering.means
        {'f': 0.5, 'm': 1.0}
        """
        from felicific._policy.steering import begin

        return begin(self, happiness, gap, pace, reach)

    @abstractmethod
    def controls(self, j: int, happiness: HappinessLike | None) -> Controls:
        """How it is steered by the means of a measure; refused where it cannot be."""

    def explain(
        self,
        scores: object,
        group: object = None,
        key: str | int | Array | None = None,
        x: Table = None,
        group_proba: GroupChances = None,
        *,
        baseline: object = None,
    ) -> Explanation:
        """Why it decides on one person as it does, in sentences and as data.

        These are not the legal reasons for a refusal, which the explanation says too: they tell how a score became a
        decision, not why the model gave that score.

        Parameters
        ----------
        scores : number, label, or array of shape (K,) or (1, K)
            What the model says of the person: its probabilities, or with two classes the score of the second; for a
            label policy its label.
        group : group
            The person's; not needed by a policy that does not see it.
        key : str or int, optional
            Identifies the person. Without it a draw is not drawn, and the decision is None where one decides.
        x : row of a table, dict of values, or table of one row
            The person; only an individual policy looks at it.
        group_proba : dict of group to number, or array of shape (groups,)
            How likely the person is of each group; only an individual policy that does not see the group looks at it.
        baseline : decision, optional
            What the existing system decides on the person; by default what the model decides by itself.

        Returns
        -------
        Explanation
            Print it; ``.decision``, ``.probabilities``, ``.cuts``, ``.distance``, ``.draw``, ``.otherwise`` (groups
            that would be decision changes), ``.unconstrained``, ``.requirements``, and ``.to_dict()`` for all of it.

        Examples
        --------
        >>> from felicific import aggregate, solve
        >>> people = {
        ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
        ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
        ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
        ... }
        >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
        >>> policy = solve(sums, gap=0.0, random_state=0)
        >>> why = policy.explain(0.6, "m", key="anna")
        >>> why.decision, why.baseline, why.otherwise
        (0, 1, {'f': {0: 0.0, 1: 1.0}})
        >>> why.sentences[1]
        "The model's decision: 1, which the policy changes."
        """
        person = self._person(scores, group, x, group_proba)
        return explain_person(self, person, None if key is None else one_key(key), baseline=baseline)

    def _person(self, scores: object, group: object, x: Table, group_proba: GroupChances) -> Person:
        """One person, as arrays and a table of one row."""
        known = one_of(scores, "scores", len(self.classes) if self.needs_proba else 0)
        named = None if group is None else one_of(group, "groups")
        if isinstance(group_proba, Mapping):
            group_proba = {name: one_of(chance, "chances") for name, chance in group_proba.items()}
        elif group_proba is not None:
            group_proba = np.atleast_2d(np.asarray(group_proba))
        array, codes, chances = self.arrays(known, named, group_proba)
        row = None if x is None or not self.sees_x else one_row(x)
        return Person(array, None if codes is None else int(codes[0]), row, chances)

    @abstractmethod
    def grounds(self, person: Person, without: Mapping[str, Floats]) -> Grounds:
        """What it knows of why it decides on a person; ``without`` are tables that lack one requirement each."""

    def to_sql(
        self,
        dialect: SqlDialect = "duckdb",
        *,
        score: ProbaColumns | None = None,
        predicted: str | None = None,
        sensitive_features: str | Sequence[str] | None = None,
        key: str | None = None,
        with_proba: bool = False,
    ) -> str:
        """Write the policy as one SQL ``CASE`` expression that draws the same draws.

        ``SELECT *, <the expression> AS decision FROM people``. The arguments name columns as in :meth:`apply`; names
        and values are quoted, whatever they hold. A row about which nothing may be decided (an unknown or missing
        group, impossible probabilities, no key) raises inside the database, and so does a column of another type than
        that of the fitted groups or classes, which a database would cast to compare them. Several group columns must
        be text or whole numbers. Only for policies that see a signal.

        The text holds the salt of the lottery: whoever reads it can compute everybody's draw.

        Parameters
        ----------
        dialect : {"duckdb", "spark", "databricks", "postgres", "snowflake", "bigquery"}
            The SQL to write. The tests run that of DuckDB, PostgreSQL, Spark and, on Spark, Databricks; that of
            Snowflake and BigQuery is parsed in its dialect and computed by what is documented of its functions.
        score, predicted, sensitive_features, key : column(s)
            As in :meth:`apply`, and remembered as there.
        with_proba : bool, default=False
            Whether to write a select list: the expression ``AS decision``, and the columns of probabilities that
            :meth:`apply` adds, each an expression of its own.

        Examples
        --------
        >>> from felicific import aggregate, solve
        >>> people = {"score": [0.2, 0.7, 0.6, 0.4] * 15, "sex": ["f", "m"] * 30, "repaid": [0, 1, 1, 0] * 15}
        >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
        >>> policy = solve(sums, gap=0.0, random_state=0)
        >>> text = policy.to_sql("postgres", score="score", sensitive_features="sex", key="id")
        >>> text.splitlines()[0], text.splitlines()[-1], '"sex" COLLATE "C" = ' in text
        ('CASE', 'END', True)
        """
        spoken, named = dialect_of(dialect), Roles(sensitive_features, None, score, predicted, key=key)
        columns = self.sql_columns(spoken, named, with_proba=with_proba)
        if not with_proba:
            return columns["decision"]
        return ", ".join(f"{text} AS {spoken.quote_name(name)}" for name, text in columns.items())

    def sql_columns(
        self, dialect: Dialect, named: Roles, column: str = "decision", *, with_proba: bool = False
    ) -> dict[str, str]:
        """The decision as an expression, and with it the probabilities, by the name of its column."""
        write = self.sql_writer()
        if write is None:
            raise no_sql()
        names = SeenColumns.of(self, named).placed(dialect.quote_name)
        chances = proba_columns(self) if with_proba else {}
        for name in chances:
            refuse_taken([column], name, "Choose another name in column=, or leave with_proba= out.")
        positions: dict[str, int | None] = {column: None, **chances}
        return {name: write(dialect, names, position) for name, position in positions.items()}

    def stretches(self, groups: Sequence[int] | None = None) -> Stretches | None:
        """Stretches of scores that are treated alike, of some groups; None where functions of x decide."""
        return None

    def sql_writer(self) -> Callable[..., str] | None:
        """How the policy is written as SQL; None where functions of x decide.

        It is called with a dialect, the columns as they are called there, and for probabilities the position of a
        decision.
        """
        return None

    # -----------------------------------------------------------------------------------------------------
    # Words

    def sentences(self, digits: int = 12) -> list[str]:
        """Spell the whole policy out in plain sentences, thresholds with so many digits, and what it achieved."""
        return self.rules(digits) + self._achieved()

    @property
    def whom(self) -> str:
        """Of which people it states what it does."""
        return f"on the people it was {'recalibrated for' if self.expected else 'fitted on'}"

    def _achieved(self, most: int | None = None) -> list[str]:
        """What it does to the people it was fitted on; of more groups than the ``most``, to the first."""
        if self.basis.steered:
            return list(self.basis.steered)
        whom = self.whom
        what = ("expected " if self.expected else "") + loss_words(self.basis.loss_name)
        name, least = self.basis.loss_name, self.basis.least_loss
        best = "" if least is None else f" at worst, and {loss_text(name, least, 6)} at best"
        found = [f"{whom.capitalize()}, the {what} is {loss_text(name, self.loss, 6)}{best}."]
        for j, measure in enumerate(self.measures):
            each = [
                f"{'of nobody' if math.isnan(mean) else measure.quantity(mean)} in group {group!r}"
                for group, mean in zip(self.groups, self.outcome.means[:, j].tolist(), strict=True)
            ]
            means = listed(each, most)
            # What is left of an exact zero after rounding is zero to a reader.
            negligible = self.outcome.gaps[j] <= 1e-12 * np.nanmax(np.abs(self.outcome.means[:, j]))
            gap = measure.quantity(0.0 if negligible else float(self.outcome.gaps[j]))
            mean = "Expected mean" if self.expected else "Mean"
            worst = " at worst" if measure.ends else ""
            ending = "" if measure.aside else f": a gap of {gap}{worst}"
            found.append(f"{mean} {measure.name!r} is {means}{ending}.")
        if self.labels is not None:
            found += self.labels.sentences(" among the people it was fitted on" if self.expected else "")
        left_out = whom_left_out(self.left_out)
        found += left_out[:most] + [f"{len(left_out):,} groups are not compared."] * (
            left_out[:most] != left_out
        )
        found += self.basis.reached(self.measures, self.outcome.means, most) + self._explored()
        cost = words_of(self.change_cost, baseline_words(self.basis.baseline_given))
        found += [*cost, outlook(self), *self.premises()]
        idle = self.basis.nothing_to_repair(self.measures, self.outcome, whom)
        return found + idle + self.cautions() + [*self.basis.notes]

    def _explored(self) -> list[str]:
        """Who is explored, and what that costs."""
        found = []
        for one in self.explore:
            share, price = self.share_explored(one), self.prices.get(one.chance.words)
            told = [] if share is None else [f"{share:.2%} of the people have just that chance"]
            if one.loss is not None:
                told.append(f"it adds {one.loss:.6g} to the loss")
            if price is not None:
                included = ", what changes cost included" if self.change_cost else ""
                told.append(f"a chance larger by 0.01 would add about {0.01 * price:.4g}{included}")
            found.append(f"Asked for: {one.chance.words}." + (f" {_sentence(told)}." if told else ""))
        return found

    def impact(self) -> list[str]:
        """What tuning did and what fairness did, apart: from the baseline to the least loss, and on to this policy."""
        groups, reference = self.wording.groups, baseline_words(self.basis.baseline_given)
        told = three_points(self.measures, groups, self.basis.loss_name, self.outcomes, reference)
        told += harm_sentences(harms_of(self, self.outcome))
        if self.labels is None or self.labels.max_odds_ratio == 1:
            return told
        return [*told, f"What looks at the label is said at worst, {self.labels.condition}."]

    def premises(self) -> list[str]:
        """What to know of the loss, the means and the gaps that it states for the people it was fitted on."""
        if self.expected:
            names = [repr(measure.name) for measure in self.measures if measure.looks_at_y]
            accuracy = is_accuracy(self.basis.loss_name)
            names.append("the accuracy" if accuracy else "the loss, as far as it looks at the label,")
            return [f"The expectation of {' and '.join(names)} is made {UNCHANGED}."]
        return [OUT_OF_FOLD] if self.basis.out_of_fold else []

    def __str__(self) -> str:
        return "\n".join(
            [*(line for part in self._printed_rules() for line in part.lines), *self._achieved(GROUPS)]
        )

    def _printed_rules(self, whole: str = "") -> list[Lines]:
        """The rules of some groups, and how many more there are; ``whole`` says where."""
        whole = whole or self._whole
        others = more_groups(self.groups, whole) if self.sees_group else []
        return [Lines(self.rules_along([self], 4, most=GROUPS)[0], whole, listed=True), Lines(others)]

    def _parts(self) -> list[Part]:
        """Never the salt: who sees a notebook could compute everybody's draw."""
        cautions, picture = self.cautions(), picture_of(self)
        achieved = [sentence for sentence in self._achieved(GROUPS) if sentence not in cautions]
        return [
            Lines([self._headline], strong=True),
            Lines(cautions, self._whole),
            *([] if picture is None else [picture]),
            *self._printed_rules(),
            Lines(achieved, self._whole),
        ]

    @property
    def _headline(self) -> str:
        decisions = self.wording.decisions
        shown = ", ".join(decisions[:-1][:4]) + (f" or {decisions[-1]}" if len(decisions) <= 5 else ", ...")
        seen = "sees" if self.sees_group else "does not see"
        share = self.share_drawn
        randomized = (
            f", by lottery about {share:.2%} of them" if share else ", by no lottery" if share == 0.0 else ""
        )
        return (
            f"A policy of kind {self.kind!r} that {seen} the group decides {shown} about people of "
            f"{len(self.groups):,} groups{randomized}."
        )

    # -----------------------------------------------------------------------------------------------------
    # Files

    def _everything(self) -> dict[str, Any]:
        return {
            "classes": write_classes(self.classes),
            **write_decisions(self.decisions, self.order, self.rising),
            "groups": plain(list(self.groups), "group"),
            "measures": [asdict(measure) for measure in self.measures],
            **write_outcome(self.outcome),
            "prices": [[name, price] for name, price in self.prices.items()],
            "salt": self.salt,
            "randomize": self.randomize,
            "sees_group": self.sees_group,
            "expected": self.expected,
            "basis": self.basis.to_json(),
            "attributes": list(self.attributes),
            "left_out": write_left_out(self.left_out),
            "labels": None if self.labels is None else self.labels.to_json(),
            "roles": self.roles.to_json(),
            "explore": [one.to_json() for one in self.explore],
            **self._content(),
        }

    @classmethod
    def from_json(cls, text: str, *, happiness: Any = None, loss: Any = None) -> Policy | AmountPolicy:
        """Read a policy, of decisions or of amounts, refusing whatever is not exactly one.

        ``happiness`` and ``loss`` are the Python functions of an individual policy, which a file cannot hold.
        """
        content = read_document(text)
        try:
            if content["policy"]["kind"] in AmountPolicy.kinds:
                return AmountPolicy.kinds[content["policy"]["kind"]].read(content, happiness=happiness)
            kind = cls.kinds[content["policy"]["kind"]]
            policy = kind._parsed(content, _common(content), happiness=happiness, loss=loss)
            policy._validate()
            extra = set(content) - set(policy._everything())
        except PolicyFileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise refused(f"a part is missing or of another type ({error!r})") from error
        if extra:
            raise refused(f"it holds {sorted(extra)}, which no policy has")
        return policy

    def _validate(self) -> None:
        """Refuse a policy whose parts do not fit together."""
        g, k, j = len(self.groups), len(self.classes), len(self.measures)
        names = [measure.name for measure in self.measures]
        check_distinct(classes=self.classes.tolist(), groups=self.groups, measures=names)
        free = ~compared_by(self.left_out, names, self.groups)  # of whom nobody may be counted
        free[:, [i for i, _ in fractions_of(self.measures)]] = True
        if self.basis.steered:
            numbers = np.concatenate([self.outcome.means.ravel(), self.outcome.gaps])
            if numbers.shape != (g * j + j,) or not np.isnan(numbers).all():
                raise refused("it holds numbers, and says that nobody measured it")
        else:
            check_means("means", self.outcome.means, (g, j), free)
            check_shape("gaps", self.outcome.gaps, (j,))
        if self.basis.baseline is not None:
            check_means("means of the baseline", self.basis.baseline.means, (g, j), free)
        check_shares(self.outcome, (g, j))
        if (self.outcome.gaps < 0).any():
            raise refused("a gap is negative")
        self._check_salt()
        if k < 2:
            raise refused("it has fewer than two classes")
        if not all(isinstance(flag, bool) for flag in (self.randomize, self.sees_group, self.expected)):
            raise refused("randomize, sees_group or expected is neither true nor false")


def policy_of(decides: object) -> Policy | None:
    """What decides, if that is a policy; None for anything else. A policy of amounts is refused."""
    if isinstance(decides, AmountPolicy):
        return among_classes(decides, "this")
    return decides if isinstance(decides, Policy) else None


def among_classes(policy: Policy | AmountPolicy, what: str) -> Policy:
    """A policy that decides among classes or listed decisions; one of amounts is refused by ``what`` wants it."""
    if isinstance(policy, AmountPolicy):
        raise not_among_classes(what)
    return policy


def no_sql() -> DataError:
    """The error of a policy that cannot be SQL."""
    return DataError(
        "This policy decides on each person by functions of x, which have no SQL.",
        "Apply it where Python runs, or fit a policy that sees the score.",
    )


def _sentence(parts: list[str]) -> str:
    """Parts of a sentence, as one."""
    joined = ", and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
    return joined[:1].upper() + joined[1:]


def _common(content: dict[str, Any]) -> dict[str, Any]:
    """What every kind of policy has."""
    measures = content["measures"]
    if not isinstance(measures, list):
        raise refused("its measures are no list")
    means = read_means(content["means"], "means")
    basis = Basis.from_json(content["basis"], means.shape)
    if basis.steered:  # nobody measured it
        loss, gaps = math.nan, read_means([content["gaps"]], "gaps")[0]
    else:
        loss, gaps = read_number(content["loss"], "loss"), read_numbers(content["gaps"], "gaps")
    shares = [read_share(content.get(name), name) for name in SHARES]
    classes, groups = read_classes(content["classes"]), tuple(read_values(content["groups"], "group"))
    read = tuple(read_measure(measure) for measure in measures)
    explore = content.get("explore", [])
    if not isinstance(explore, list):
        raise refused("the chances that people keep are no list")
    decided = read_decisions(content, classes)
    return decided | {
        "classes": classes,
        "groups": groups,
        "measures": read,
        "outcome": Outcome(
            loss,
            means,
            gaps,
            *shares,
            groups=groups,
            measures=tuple(measure.name for measure in read),
        ),
        "prices": read_prices(content["prices"]),
        "salt": content["salt"],
        "randomize": content["randomize"],
        "sees_group": content["sees_group"],
        "expected": content["expected"],
        "basis": basis,
        "attributes": read_attributes(content.get("attributes", [])),
        "left_out": read_left_out(content["left_out"], groups, [one.name for one in read]),
        "labels": KnownLabels.from_json(content.get("labels"), groups),
        "roles": Roles.from_json(content["roles"]),
        "explore": tuple(
            Explored.from_json(one, len(decided.get("decisions", classes)), len(groups)) for one in explore
        ),
    }
