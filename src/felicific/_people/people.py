"""People: rows with their roles, each checked once. Here, and nowhere else, a row of weight 0 is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.checks import (
    WeightKind,
    are_sampling,
    as_amounts,
    as_columns,
    check_amounts,
    check_group_proba,
    check_label_proba,
    check_length,
    check_proba,
    check_weights,
    encode_labels,
    number_clusters,
    refuse_missing_labels,
    refuse_no_cluster,
)
from felicific._people.evaluate import BATCH, differs, idle, worth_of
from felicific._people.roles import Roles, ordered_groups
from felicific._people.user_functions import Batch, Looks, no_baseline
from felicific._problem.missing_labels import MissingLabels
from felicific._problem.problem import Problem
from felicific._problem.unions import Attribute, LeftOutBy
from felicific._tables.groups import encode_groups, find_groups, refuse_identifiers
from felicific._tables.memory import (
    Coded,
    Entries,
    as_entries,
    as_vector,
    code_text,
    count_rows,
    null_rows,
    row_argmax,
    slice_rows,
    take_rows,
    widener,
)
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError

#: Fields of people that hold an entry for every row, beside their table; the probabilities of decisions are none.
BY_ROW: tuple[str, ...] = ("rows", "group_entries", "codes", "y", "labels", "weight", "cluster", "score")
BY_ROW += ("predicted", "baseline", "label_proba", "amounts", "amounts_baseline", "amounts_predicted")
BY_ROW += ("group_proba", "chances")


@dataclass(frozen=True, eq=False)
class People:
    """Rows of positive weight in memory, with what is known of each.

    Attributes
    ----------
    x : table
        What a happiness function gets as ``x``.
    rows : array of shape (n,)
        Numbers of the rows in the user's table, for messages.
    group_entries, codes, groups : entries of shape (n,), array of shape (n,), tuple
        The group of each, as :attr:`group` but of text by its codes, its position among the groups, and the groups.
    y, labels : array of shape (n,), or None
        The label of each, and its position among the label classes; -1 where it is missing, and y then any of them.
    weight : array of shape (n,), or None
        None for ones.
    weight_kind : {"frequency", "sampling"}, or None
        What weights are; None where nobody said.
    cluster : array of shape (n,), or None
        What people have in common who are not independent; None where all are.
    score : array of shape (n, L), or None
        The model's probabilities; those of :meth:`scores` are checked.
    predicted, baseline : array of shape (n,), or None
        Positions of the label that the model predicts, where it says so itself, and of the baseline.
    probabilities : array of shape (n, D), or None
        Probability of each decision, where the decisions themselves are measured.
    drawn : bool
        Whether some of these may be drawn at random, of these people or of others.
    amounts, amounts_baseline, amounts_predicted : array of shape (n,), or None
        What is decided on each, what is by the baseline, and what the model predicts, where decisions are amounts;
        ``probabilities`` are then ones, and labels are numbers that have no position.
    group_proba : array of shape (n, groups), or None
        p(group given x), checked, for individual policies that do not see the group.
    checked : bool
        Whether all of ``score`` is checked.
    decisions : array of shape (D,), or None
        What may be decided, where some function asks for the baseline.
    decided_as : array of shape (L,), or None
        Position of every label among the decisions, -1 where it is none; None where the decisions are the labels.
    attributes : tuple of str or int
        What the groups are made of.
    left_out : dict of measure name to LeftOut
        Which groups the gap of a measure does not compare.
    roles : Roles
        The columns that are named, which a policy for these people remembers.
    missing : MissingLabels, or None
        What is known of missing labels; None where none may be missing.
    label_proba : array of shape (n,), or None
        With which chance each was to have a label, where that is known person by person.
    by_score : bool
        Whether that is what score and group tell.
    chances : array of shape (n, L), or None
        How likely each label is, also of those whose label is known, where it is believed; see
        :mod:`felicific._people.labels`.
    supposed : frozenset of str
        ``"y"`` where labels are supposed, and not known.
    """

    x: Table
    rows: Codes
    group_entries: Entries
    codes: Codes
    groups: tuple[Any, ...]
    y: Array | None = None
    labels: Codes | None = None
    weight: Floats | None = None
    weight_kind: WeightKind = None
    cluster: Array | None = None
    score: Array | None = None
    predicted: Codes | None = None
    baseline: Codes | None = None
    probabilities: Floats | None = None
    drawn: bool = False
    amounts: Floats | None = None
    amounts_baseline: Floats | None = None
    amounts_predicted: Floats | None = None
    group_proba: Floats | None = None
    checked: bool = False
    decisions: Array | None = None
    decided_as: Codes | None = None
    attributes: tuple[Attribute, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    missing: MissingLabels | None = None
    label_proba: Floats | None = None
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it
    by_score: bool = False
    chances: Floats | None = None
    supposed: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        x: Table,
        problem: Problem,
        *,
        group: Any,
        y: Any = None,
        score: Any = None,
        predicted: Any = None,
        baseline: Any = None,
        decided: Any = None,
        weight: Any = None,
        weight_kind: WeightKind = None,
        cluster: Any = None,
        groups: Sequence[Any] | None = None,
        first_row: int | None = None,
        group_proba: Any = None,
        rows: Codes | None = None,
        attributes: tuple[Attribute, ...] = (),
        missing: MissingLabels | None = None,
        label_proba: Any = None,
        roles: Roles | None = None,
    ) -> People:
        """Check everything that is said about some rows.

        Parameters
        ----------
        x : table
            The people.
        problem : Problem
            Decisions and labels that there are.
        group, y, score, predicted, baseline : arrays with one entry per row
            As in the class; values, not positions.
        decided : array of shape (n,) or (n, D)
            What is decided on each, or with which probability.
        weight : array of shape (n,), optional
            Weight 2 is the row twice, in every sum; weight 0 the row absent.
        weight_kind, cluster :
            As in the class.
        groups : sequence, optional
            All groups there are; by default those that occur.
        attributes, missing, label_proba, roles :
            As in the class.
        first_row : int, optional
            When these rows are a part of a larger table: what messages call the first of them.
        group_proba : {group: array of shape (n,)}, or array of shape (n, groups), optional
            p(group given x).
        rows : array of shape (n,), optional
            Or what messages call each of them, where rows of weight 0 were left out, and weights checked, before.
        """
        n = count_rows(x)
        given: dict[str, Any] = {
            "labels y": None if y is None else _vector(y, "y"),
            "groups": _vector(group, "group"),
            "probabilities": None if score is None else np.asarray(score),
            "predictions": None if predicted is None else _vector(predicted, "predictions"),
            "baseline decisions": None if baseline is None else _vector(baseline, "baseline"),
            "decisions": None if decided is None else _decisions(decided),
            "clusters": None if cluster is None else _vector(cluster, "cluster"),
            "group probabilities": None if group_proba is None else _by_group(group_proba),
            "label_proba": None if label_proba is None else _vector(label_proba, "label_proba"),
        }
        for what, column in given.items():
            check_length(column, n, what)
        checked = check_weights(weight, n, first_row) if rows is None else weight
        rows = np.arange(n) + (first_row or 0) if rows is None else rows
        if checked is not None and not checked.all():
            present = np.flatnonzero(checked)
            x, rows, checked = take_rows(x, present), rows[present], checked[present]
            given = {
                what: _present(column, present, "probabilities" in what) for what, column in given.items()
            }
        labels, values = given["labels y"], given["groups"]
        refuse_no_cluster(given["clusters"], rows)
        known = find_groups(values) if groups is None else _plain(groups)
        if groups is None and first_row is None:
            refuse_identifiers(known, len(values), None if checked is None else float(checked.sum()))

        def coded(what: str, classes: Array, name: str, among: str = "classes") -> Codes | None:
            column = given[what]
            return None if column is None else encode_labels(column, classes, name, rows, among)

        amounts: dict[str, Floats] = {}
        if problem.of_amounts:
            for what, name in AMOUNTS.items():
                within = None if what == "labels y" else problem.amount_limits
                if given[what] is not None:
                    amounts[what] = check_amounts(given[what], name, rows, within)
            labels, given = None, given | {"decisions": None, "baseline decisions": None}
        decisions, truths = problem.decisions, problem.labels
        probabilities, flat = _probabilities(given["decisions"], decisions, rows)
        truth = _labels(labels, problem, values, rows, missing, given["label_proba"])
        # As a happiness function sees them: arithmetic on narrow numbers would wrap.
        seen: dict[str, Any] = {"group": values} | ({"y": np.asarray(truth["y"])} if truth else {})
        wide = widener(seen)(seen)
        people = cls(
            x=x,
            rows=rows,
            group_entries=wide["group"],
            codes=encode_groups(values, known, rows),
            groups=known,
            y=amounts.get("labels y", wide.get("y")),
            labels=truth.get("labels"),
            weight=checked,
            weight_kind=weight_kind,
            cluster=given["clusters"],
            score=None if given["probabilities"] is None else as_columns(given["probabilities"], len(truths)),
            predicted=coded("predictions", truths, "prediction"),
            baseline=coded("baseline decisions", decisions, "baseline decision", "decisions"),
            probabilities=np.ones((len(rows), 1)) if "decisions" in amounts else probabilities,
            drawn=not flat,
            amounts=amounts.get("decisions"),
            amounts_baseline=amounts.get("baseline decisions"),
            group_proba=_chances(given["group probabilities"], group_proba, known, rows),
            decisions=decisions if problem.looks_at_baseline else None,
            decided_as=problem.decided_as,
            attributes=tuple(name if type(name) in (str, int) else str(name) for name in attributes),
            missing=truth.get("missing"),
            label_proba=truth.get("label_proba"),
            roles=roles or Roles(),
        )
        if people.missing is not None and problem.listed and not people.knows_baseline:
            raise DataError(
                "Labels are missing, decisions are listed, and there is no baseline.",
                "Pass baseline=, the column of the present decisions: what is supposed of labels is compared with it.",
            )
        return people

    @classmethod
    def predicted_amounts(
        cls,
        x: Table,
        *,
        prediction: Any,
        y: Any,
        group: Entries,
        weight: Any = None,
        baseline: Any = None,
        rows: Codes | None = None,
        groups: tuple[Any, ...] | None = None,
        **known: Any,
    ) -> People:
        """People of whom a model predicts an amount; ``groups`` are those that are known already.

        Their baseline is what it predicts, unless another is given; ``known`` are further fields.
        """
        n = len(group)
        numbers = np.arange(n) if rows is None else rows
        weights = check_weights(weight, n)
        given = {"prediction": prediction, "y": y, "baseline": baseline}
        if weights is not None and not weights.all():
            some = np.flatnonzero(weights)
            vectors = {
                what: None if part is None else as_vector(part, what)[some] for what, part in given.items()
            }
            chances = known.pop("group_proba", None)
            return cls.predicted_amounts(
                None if x is None else take_rows(x, some),
                group=group[some],
                weight=weights[some],
                rows=numbers[some],
                groups=groups,
                group_proba=None if chances is None else chances[some],
                **vectors,
                **known,
            )
        if not n:
            raise DataError("There is nobody.", "Pass at least one row of positive weight.")
        found = find_groups(group) if groups is None else groups
        if groups is None:
            refuse_identifiers(found, n, None if weights is None else float(weights.sum()))
        predicted = as_amounts(prediction, "prediction", numbers, n)
        now = predicted if baseline is None else as_amounts(baseline, "amount of the baseline", numbers, n)
        return cls(
            np.empty((n, 0)) if x is None else x,
            rows=numbers,
            group_entries=group,
            codes=encode_groups(group, found, numbers),
            groups=tuple(found),
            y=None if y is None else as_amounts(y, "label y", numbers, n),
            weight=weights,
            amounts_baseline=now,
            amounts_predicted=predicted,
            **known,
        )

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def group(self) -> Array:
        """The group of each."""
        return np.asarray(self.group_entries)

    @property
    def weights(self) -> Floats:
        """One weight per row."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def take(self, rows: Codes) -> People:
        """Some of them."""
        parts = {name: getattr(self, name) for name in BY_ROW}
        chosen: dict[str, Any] = {name: None if part is None else part[rows] for name, part in parts.items()}
        return replace(self, x=take_rows(self.x, rows), **chosen)

    @cached_property
    def sampling(self) -> bool:
        """Whether weights are sampling weights; an error where that matters and nobody said."""
        if self.weight is None:
            return False
        whole = bool((self.weight == np.rint(self.weight)).all())
        return are_sampling(self.weight_kind, whole, float(self.weight.sum()), len(self))

    @cached_property
    def cluster_codes(self) -> Codes | None:
        """The cluster of each as a number."""
        return None if self.cluster is None else number_clusters(self.cluster)

    @property
    def knows_labels(self) -> bool:
        """Whether there are labels: classes, or numbers where decisions are amounts."""
        return self.labels is not None or (self.amounts is not None and self.y is not None)

    @property
    def prediction(self) -> Floats:
        """The amounts that the model predicts, where it does."""
        assert self.amounts_predicted is not None, "amounts are predicted"
        return self.amounts_predicted

    @property
    def decided_baseline(self) -> Floats:
        """The amounts of the baseline, where there are some."""
        assert self.amounts_baseline is not None, "there is a baseline"
        return self.amounts_baseline

    @property
    def as_baseline(self) -> People:
        """The same with the amounts that are decided by the baseline in the place of the others."""
        return self.given(self.decided_baseline)

    def given(self, amounts: Floats) -> People:
        """The same with these amounts decided."""
        return replace(self, amounts=amounts, probabilities=np.ones((len(self), 1)), drawn=False)

    # -----------------------------------------------------------------------------------------------------
    # Labels that are missing

    @cached_property
    def labelled(self) -> Truths:
        """Who has a label."""
        assert self.labels is not None, "some have one"
        return np.asarray(self.labels >= 0)

    @cached_property
    def with_labels(self) -> People:
        """Those who have a label, as people of whom none is missing."""
        plain = replace(self, missing=None, label_proba=None, chances=None)
        whole = self.missing is None or self.labelled.all()
        return plain if whole else plain.take(np.flatnonzero(self.labelled))

    @cached_property
    def without_labels(self) -> People:
        """The others; their labels have to be supposed."""
        plain = replace(self, missing=None, label_proba=None, chances=None)
        return plain.take(np.flatnonzero(~self.labelled))

    def supposing(self, k: int, classes: Array) -> People:
        """The same as if everybody had the label of this position."""
        codes = np.full(len(self), k, dtype=np.intp)
        return replace(self, y=classes[codes], labels=codes, missing=None, supposed=frozenset({"y"}))

    def cases(self, classes: Array) -> list[People]:
        """People of whom no label is missing: those who have one, and the others as if they had each of the labels."""
        if self.missing is None or self.labelled.all():
            return [self]
        others = self.without_labels
        return [self.with_labels, *(others.supposing(k, classes) for k in range(len(classes)))]

    # -----------------------------------------------------------------------------------------------------
    # What the model says

    def scores(self, part: slice = slice(None)) -> Floats | None:
        """Checked probabilities of some of them, if there are any."""
        if self.score is None:
            return None
        share = self.score[part]
        return share if self.checked else check_proba(share, share.shape[1], self.rows[part])

    @cached_property
    def with_scores(self) -> People:
        """The same with all probabilities checked, for whoever asks for them more than once."""
        if self.checked or self.score is None:
            return self
        return replace(self, score=self.scores(), checked=True)

    @property
    def joint(self) -> Floats | None:
        """p(label, group given x) of shape (n, L, groups), as if the label told nothing more of the group."""
        score = self.with_scores.score
        return None if self.group_proba is None or score is None else joint_of(score, self.group_proba)

    def predictions(self, part: slice = slice(None), scores: Floats | None = None) -> Codes:
        """The model's own label: as it says, or the first of the most probable ones."""
        if self.predicted is not None:
            return self.predicted[part]
        scores = self.scores(part) if scores is None else scores
        if scores is None:
            raise DataError("There are neither probabilities nor predictions.", "Pass score= or predicted=.")
        return row_argmax(scores)

    @property
    def knows_baseline(self) -> bool:
        """Whether there is a baseline: it was given, or what the model predicts may be decided."""
        if self.baseline is not None:
            return True
        says = self.predicted is not None or self.score is not None
        known = self.decided_as
        return says and (known is None or (len(known) > 0 and bool((known >= 0).all())))

    def decisions_baseline(self, part: slice = slice(None), scores: Floats | None = None) -> Codes:
        """The baseline, by default what the model predicts; only where that is known."""
        if self.baseline is not None:
            return self.baseline[part]
        own = self.predictions(part, scores)
        if not self.knows_baseline:
            raise no_baseline("What is compared here")
        return own if self.decided_as is None else self.decided_as[own]

    # -----------------------------------------------------------------------------------------------------
    # Batches

    def batches(self, times: int = 1) -> Iterator[tuple[slice, Batch]]:
        """Some of them at a time, so many times a cache's worth, as a happiness function sees them."""
        wide, size = widener(self.x), times * BATCH
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield part, self._batch(part, wide)

    @property
    def batch(self) -> Batch:
        """All of them, as a happiness function sees them."""
        return self._batch(slice(0, len(self)), widener(self.x))

    def _batch(self, part: slice, wide: Callable[[Table], Table]) -> Batch:
        table = wide(slice_rows(self.x, part.start, part.stop))
        some: dict[str, Any] = {
            name: None if own is None else own[part]
            for name, own in {"y": self.y, "labels": self.labels, "amounts": self.amounts}.items()
        }
        group, baseline = self.group_entries[part], self.baseline_of(part)
        some |= {"rows": self.rows[part], "supposed": self.supposed, "looks": self._looks}
        return Batch(x=table, group=group, baseline=baseline, **some)

    @cached_property
    def _looks(self) -> Looks:
        return Looks(self.x)

    def baseline_of(self, part: slice) -> Array | None:
        """The baseline of some of them, where somebody asks and it is known."""
        if self.amounts_baseline is not None:
            return self.amounts_baseline[part]
        if self.decisions is None or not self.knows_baseline:
            return None
        return np.asarray(self.decisions[self.decisions_baseline(part)])


#: Numbers, where decisions are amounts, and what messages call one of them.
AMOUNTS = {"decisions": "decision", "baseline decisions": "baseline decision", "labels y": "label"}

#: What is known of a measure: nobody is counted, nobody is changed, somebody is.
NOBODY, IDLE, CHANGED = range(3)


def changes(problem: Problem, people: People) -> Codes:
    """What people with labels say of every measure; they are asked until one is changed."""
    found = np.full(len(problem.happiness), NOBODY)
    for _, batch in (batch for case in people.cases(problem.labels) for batch in case.batches()):
        worth = worth_of(problem, batch)
        for j in np.flatnonzero(found < CHANGED).tolist():
            values, counted = worth.values(j)
            if counted is None or counted.any():
                moved = problem.happiness[j].may_be_idle or differs(values)
                found[j] = CHANGED if moved else IDLE
        if (found == CHANGED).all():
            break
    return found


def _labels(
    y: Entries | None,
    problem: Problem,
    group: Entries,
    rows: Codes,
    missing: MissingLabels | None,
    label_proba: Array | None,
) -> dict[str, Any]:
    """The labels of some people, checked; nothing where some are missing and nobody looks at them."""
    lost = np.empty(0) if y is None else null_rows(y)
    if y is None or ((len(lost) or missing is not None) and not problem.looks_at_y):
        return {}
    if not len(lost) and missing is None:
        return {"y": y, "labels": encode_labels(y, problem.labels, "label", rows)}
    if missing is None:
        refuse_missing_labels(y, group, rows)
    known = np.ones(len(y), dtype=bool)
    known[lost] = False
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[known] = encode_labels(y[known], problem.labels, "label", rows[known])
    own = problem.labels[codes.clip(min=0)] if len(lost) else y
    chances = None if label_proba is None else check_label_proba(label_proba, known, rows)
    return {"y": own, "labels": codes, "missing": missing, "label_proba": chances}


def refuse_idle(problem: Problem, found: Codes) -> None:
    """Raise if no decision changes some measure for anybody, by what :func:`changes` found."""
    for happiness, known in zip(problem.happiness, found.tolist(), strict=True):
        if known == IDLE:
            raise idle(str(happiness.name), problem.decisions.tolist())


def one_hot(decided: Any, decisions: Array, rows: Codes) -> Floats:
    """Probability one of what was decided on each person."""
    codes = encode_labels(decided, decisions, "decision", rows)
    return np.asarray(np.eye(len(decisions))[codes])


def joint_of(score: Floats, group_proba: Floats) -> Floats:
    """p(label, group given x) of shape (n, L, groups), as if the label told nothing more of the group."""
    return np.asarray(score[:, :, None] * group_proba[:, None, :])


def _present(column: Entries | None, rows: Codes, numbers: bool) -> Entries | None:
    """Some rows of a column; numbers again, where only a missing one, in an absent row, made them objects."""
    if column is None:
        return None
    held = column[rows]
    return np.array(held.tolist()) if numbers and held.dtype.kind == "O" else held


def _probabilities(decided: Entries | None, decisions: Array, rows: Codes) -> tuple[Floats | None, bool]:
    """The probability of each decision, and whether each person's was one of them and not drawn."""
    if decided is None or decided.ndim == 1:
        return None if decided is None else one_hot(decided, decisions, rows), True
    return check_proba(decided, len(decisions), rows), False


def _chances(given: Array | None, said: Any, groups: tuple[Any, ...], rows: Codes) -> Floats | None:
    """p(group given x), in the order of the groups."""
    if given is None:
        return None
    if isinstance(said, Mapping):
        given = given[:, list(ordered_groups({name: i for i, name in enumerate(said)}, groups))]
    return check_group_proba(given, given.shape[-1], rows)


def _by_group(group_proba: Any) -> Array:
    several = isinstance(group_proba, Mapping)
    return np.column_stack(list(group_proba.values())) if several else np.asarray(group_proba)


def _decisions(decided: Any) -> Entries:
    """Decisions, or the probability of each."""
    coded = decided if isinstance(decided, Coded) else code_text(decided)
    return np.asarray(decided) if coded is None else coded


def _vector(values: Any, what: str) -> Entries:
    """A one-dimensional array; what is one of numbers already stays as it is."""
    plain = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufU"
    return values if plain else as_entries(values, what)


def _plain(groups: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value.item() if isinstance(value, np.generic) else value for value in groups)
