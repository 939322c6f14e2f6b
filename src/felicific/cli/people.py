"""The people of a file, with what the options say about its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from felicific import Policy
from felicific._people.checks import check_inference
from felicific._people.roles import Roles, ordered_groups, stacked
from felicific._policy.apply import with_remembered
from felicific._problem.missing_labels import MissingLabels
from felicific._program.signal_names import choose_policy
from felicific._tables.groups import UNDECIDED, find_groups, resolve_groups
from felicific._tables.memory import Entries, take_column
from felicific._typing import Array, Table
from felicific.cli.documents import read_policy
from felicific.cli.files import Source, open_source
from felicific.cli.inputs import (
    needed_columns,
    read_classes,
    read_decisions,
    read_function,
    read_group_proba,
    read_happiness,
    read_join,
    read_missing_labels,
    read_proba,
)
from felicific.cli.options import PolicyKind, RoleOptions, Scores, Traced, WeightKind
from felicific.exceptions import DataError


@dataclass(frozen=True)
class People:
    """A table and the roles of its columns.

    Attributes
    ----------
    source : Source
        Where the rows come from; only the columns that play a role, unless all were asked for.
    original : list of str
        The columns that the file itself has.
    pandas : bool
        Whether a Python function of the user's will look at the rows.
    group : list of str
        Columns of the group.
    classes : list or None
        The decisions there are, as far as they are known before the rows are read.
    score : dict of class to column, or None
    group_proba : dict of group to column, or None
    label, predicted, baseline, decision, weight, cluster, key : str or None
        Columns.
    weight_kind : str or None
        What weights are.
    missing_labels : MissingLabels or None
        What is known of missing labels.
    happiness, loss :
        As the library takes them.
    policy : Policy or None
        The policy that decides.
    listed : list or None
        What may be decided, from the worst to the best; None for the classes in their order.
    """

    source: Source
    original: list[str]
    pandas: bool
    group: list[str]
    classes: list[Any] | None
    score: dict[Any, str] | None
    group_proba: dict[Any, str] | None
    label: str | None
    predicted: str | None
    baseline: str | None
    decision: str | None
    weight: str | None
    cluster: str | None
    weight_kind: WeightKind | None
    missing_labels: MissingLabels | None
    key: str | None
    happiness: Any
    loss: Any
    policy: Policy | None
    listed: list[Any] | None = None

    @classmethod
    def find(
        cls,
        options: Scores | RoleOptions,
        file: str | None = None,
        *,
        every_column: bool = False,
        as_written: bool = False,
        a_part: bool = False,
        classes: Sequence[Any] = (),
    ) -> People:
        """Open the file, or another one, and check that it has what the options name; no row is read.

        With ``every_column`` those that play no role are kept, and ``as_written`` as the text that a CSV has. Of
        ``a_part`` of the people some groups and classes may be missing. ``classes`` are the decisions, where they are
        known.
        """
        roles = RoleOptions.of(options, file)
        happiness, cost = read_happiness(roles), read_function(roles.loss, "loss")
        rule = None
        if roles.policy is not None:
            rule = read_policy(roles.policy, happiness=happiness or None, loss=cost)
            roles = roles if roles.decision else remembered_roles(roles, rule)
        looked_at = needed_columns(happiness, cost, getattr(rule, "happiness", ()))
        source = _open(roles, rule, looked_at if as_written else None)
        original = source.columns
        source.check(**roles.columns())
        source, roles = join_groups(source, roles, every_group=rule is None and not a_part)
        known = list(classes) or _known_classes(roles, rule, source)
        taken = source.distinct(roles.decision) if roles.decision and roles.decisions else ()
        believed = read_group_proba(source, roles.group_proba, _known_groups(roles, rule, source))
        source, score = read_proba(source, roles.score, known, of_values=rule is not None and rule.of_values)
        if looked_at is not None:
            source.check(happiness=looked_at)
        if looked_at is not None and not every_column:
            scores = [*(score or {}).values(), *(believed or {}).values()]
            source = source.select([*_named(roles), *scores, *looked_at])
        return cls(
            source=source,
            original=original,
            pandas=looked_at is None,
            group=roles.group or [],
            classes=known or None,
            score=score,
            group_proba=believed,
            label=roles.label,
            predicted=roles.predicted,
            baseline=roles.baseline,
            decision=roles.decision,
            weight=roles.weight,
            cluster=roles.cluster,
            weight_kind=roles.weight_kind,
            missing_labels=read_missing_labels(roles),
            key=roles.key,
            happiness=happiness,
            loss=cost,
            policy=rule,
            listed=read_decisions(roles.decisions, known, taken),
        )

    @property
    def sensitive_features(self) -> str | list[str]:
        """The group as the library takes it."""
        return self.group[0] if len(self.group) == 1 else self.group

    @property
    def roles(self) -> Roles:
        """The columns that the file itself has, for a policy to remember."""
        score = {one: column for one, column in (self.score or {}).items() if column in self.original}
        named = Roles(
            self.sensitive_features, self.label, score or None, self.predicted, self.baseline, key=self.key
        )
        return replace(named, group_proba=self.group_proba).remembered(self.original)

    @property
    def decided_among(self) -> list[Any] | None:
        """The decisions that are listed, or known before the rows are read; a policy knows its own."""
        return self.listed or (self.classes if self.policy is None else None)

    def held_groups(self) -> list[Any]:
        """The groups that stand in the file."""
        return _groups_in(self.source, self.group)

    def seen(self, options: Traced) -> dict[str, Any]:
        """Whether the policy sees the group, or how it infers the group, as FairClassifier takes it."""
        sees_x, sees_group = self.kind(options)[0] == "individual", not options.blind
        if sees_x and not sees_group and self.group_proba is None:
            raise DataError(
                "An individual policy that decides without the group infers it, and nobody said how likely each is.",
                "Name a column for every group, --group-proba GROUP=COLUMN; or use --policy score, which needs none "
                "and may level every group down.",
            )
        check_inference(self.group_proba, sees_x=sees_x, sees_group=sees_group)
        return {"sees_group": sees_group, "group_proba": self.group_proba}

    def rows(self) -> Table:
        """All rows, in memory."""
        return self.source.read(pandas=self.pandas)

    def kind(self, options: Traced) -> tuple[PolicyKind, str | None]:
        """What the policy will see, and why if that was left to the library."""
        if options.kind != "auto":
            return options.kind, None
        scored, classes = self.score is not None, len(self.classes or ())
        chosen, why = choose_policy(classes, sees_group=not options.blind, scored=scored)
        return cast("PolicyKind", chosen.kind), why

    def scores(self, rows: Table) -> Array:
        """What the policy, or the model, says about some rows: probabilities, or labels where there are none."""
        self.check_scores()
        if self.reads_label:
            return take_column(rows, self.predicted, "--predicted")
        assert self.score is not None, "checked"
        return np.column_stack([take_column(rows, name, "--score") for name in self.score.values()])

    @property
    def reads_label(self) -> bool:
        """Whether the policy is told the predicted label, which one of kind label prefers to probabilities."""
        return self.predicted is not None and not (self.policy is not None and self.policy.needs_proba)

    def check_scores(self) -> None:
        """Insist on what the policy, or the model, looks at."""
        if self.policy is not None and self.policy.needs_proba and self.score is None:
            raise DataError(
                f"This policy looks at {self.policy.applied_to}.", "Name their column(s) with --score."
            )
        self.check_signal()

    def check_signal(self) -> None:
        """Insist on probabilities or predicted labels."""
        if self.score is None and self.predicted is None:
            raise DataError(
                "Nobody said what the model thinks of a person.",
                "Name the column(s) of its probabilities, --score, or of the labels that it predicts, --predicted.",
            )

    def check_audited(self) -> None:
        """Insist on one thing whose decisions are audited."""
        if self.policy is not None and self.decision is not None:
            raise DataError(
                "Both --policy-file and --decision say what is audited.",
                "Leave one out; what a policy of kind label reads is --predicted.",
            )
        if self.policy is None and self.predicted is not None:
            raise DataError(
                "--predicted is what a policy reads, and there is no --policy-file.",
                "Name the decisions that are audited with --decision.",
            )
        if self.policy is None and self.score is None and self.decision is None:
            raise DataError(
                "Nobody said which decisions are audited.",
                "Name their column, --decision, or the model's probabilities, --score.",
            )

    def chances(self, rows: Table) -> Array:
        """Probability of every decision that the policy takes about some rows."""
        assert self.policy is not None, "only a policy has chances"
        scores, group, believed = self.sight(rows)
        return self.policy.probabilities(scores, group, rows, believed)

    def sight(self, rows: Table) -> tuple[Array, Entries | None, Array | None]:
        """What the policy sees of some rows besides x: scores or labels, groups, and how likely each group is."""
        assert self.policy is not None, "only a policy sees"
        if self.policy.sees_group and not self.group:
            raise DataError("This policy looks at the group.", "Name its column(s) with --group.")
        group = None
        if self.policy.sees_group:
            group = resolve_groups(rows, self.group, columns_only=True, remedy=UNDECIDED)
        self.policy.check_group_proba(self.group_proba)
        believed = None
        if self.group_proba is not None:
            believed = stacked(rows, ordered_groups(self.group_proba, self.policy.groups))
        return self.scores(rows), group, believed

    def decisions(self, rows: Table) -> Array:
        """What is decided on some rows without a policy: in the file, or by the larger probability."""
        if self.decision is not None:
            return take_column(rows, self.decision, "--decision")
        likeliest = self.scores(rows).argmax(axis=1)
        return np.asarray(np.array(list(self.score or ()), dtype=object)[likeliest])

    def in_memory(self) -> dict[str, Any]:
        """Decisions, rows, labels and weights, for an audit."""
        rows = self.rows()
        named = {"X": rows, "y": self.label} | self.evidence(rows)
        return named | (self._by_policy() if self.policy else {"decided": self.decisions(rows)})

    def evidence(self, rows: Table) -> dict[str, Any]:
        """What some rows count for: weights and clusters."""
        columns = {"sample_weight": (self.weight, "--weight"), "cluster": (self.cluster, "--cluster")}
        return {
            role: None if name is None else take_column(rows, name, option)
            for role, (name, option) in columns.items()
        }

    def in_the_file(self) -> dict[str, Any]:
        """The same by names of columns, with the rows still where they are."""
        self.source.check_rows()
        named = {"X": self.source.relation, "y": self.label}
        named |= {"sample_weight": self.weight, "cluster": self.cluster}
        return named | (self._by_policy() if self.policy else {"decided": self.decision})

    def _by_policy(self) -> dict[str, Any]:
        """The policy whose decisions are audited, and what it decides by."""
        self.check_scores()
        assert self.policy is not None, "its file was named"
        roles = replace(self.policy.roles, group_proba=self.group_proba)
        scores = {"predicted": self.predicted} if self.reads_label else {"score": self.score}
        return {"decided": replace(self.policy, roles=roles)} | scores


def join_groups(source: Source, roles: RoleOptions, *, every_group: bool) -> tuple[Source, RoleOptions]:
    """With small groups taken as one, in columns of their own; each has to be there, unless some may be missing.

    Groups that are missing in the file have a name from here on, where there is one.
    """
    columns = list(roles.group or ())
    if roles.missing_group is not None:
        source = source.filled(columns, roles.missing_group)
    for column, names in read_join(roles.join, columns).items():
        held = {str(value) for value in source.distinct(column)} if every_group else set(names)
        unknown = sorted(set(names) - held)
        if unknown:
            shown = ", ".join(sorted(held)[:20])
            raise DataError(
                f"--join: there is no {unknown[0]!r} in the column {column!r}.", f"It holds {shown}."
            )
        source, columns[columns.index(column)] = source.joined(column, names)
    return source, replace(roles, group=columns or None)


def remembered_roles(roles: RoleOptions, rule: Policy) -> RoleOptions:
    """With the columns that a policy decides by, and remembers, where no option names others."""
    given = Roles(roles.group or None, None, roles.score or None, roles.predicted, key=roles.key)
    named = with_remembered(rule, replace(given, group_proba=roles.group_proba or None))
    score = [named.score] if isinstance(named.score, str) else named.score
    if isinstance(score, list) and len(score) == len(rule.classes) and not roles.score:
        score = dict(zip(rule.classes.tolist(), score, strict=True))
    return replace(
        roles,
        group=named.group_names or None,
        score=_as_typed(score),
        predicted=named.predicted,
        key=named.key,
        group_proba=_as_typed(named.group_proba),
    )


def _as_typed(columns: Any) -> list[str] | None:
    """Columns by class or group as options name them; others as they are."""
    if isinstance(columns, dict) and len(columns) > 1:
        return [f"{one}={column}" for one, column in columns.items()]
    return None if columns is None else list(columns.values() if isinstance(columns, dict) else columns)


def _named(roles: RoleOptions) -> list[str]:
    """The columns that options name outright."""
    given = roles.columns().values()
    return [name for names in given for name in ([names] if isinstance(names, str) else names or ())]


def _open(roles: RoleOptions, rule: Policy | None, looked_at: set[str] | None) -> Source:
    """Open the file; if it is known what is ``looked_at``, all other columns of a CSV are taken as they are written."""
    # Keys are text, and groups are what the policy knows: "007" of a CSV must not become 7.
    as_text = [] if roles.key is None else [roles.key]
    group = roles.group or []
    if rule is not None and len(group) == 1 and all(isinstance(name, str) for name in rule.groups):
        as_text += group
    source = open_source(roles.file, roles.table, as_text)
    if looked_at is None:
        return source
    used = {*group, roles.predicted, *looked_at}
    used |= {part for text in roles.score or () for part in (text, text.partition("=")[2])}
    used |= {text.rpartition("=")[2] for text in roles.group_proba or ()}
    return open_source(
        roles.file, roles.table, [*as_text, *(name for name in source.columns if name not in used)]
    )


def _known_classes(roles: RoleOptions, rule: Policy | None, source: Source) -> list[Any]:
    """The decisions that there are, as far as they must be known before the rows are read."""
    known = [] if rule is None else rule.classes.tolist()
    if rule is None and (roles.score or roles.classes):
        now = (roles.baseline, roles.decision) if roles.decisions is None else ()
        named = (roles.label, roles.predicted, *now)
        held = {value for column in named if column is not None for value in source.distinct(column)}
        known = sorted(held, key=_by_type) if any(named) else _spoken_of(roles.score or ())
    return sorted(read_classes(roles.classes, known), key=_by_type) if roles.classes else known


def _spoken_of(score: Sequence[str]) -> list[Any]:
    """The classes that have a column of probabilities each, where no column holds classes."""
    if not all("=" in text for text in score):
        raise DataError(
            "There is no --label, so nothing says which classes there are.",
            "Name the baseline with --baseline, or every class: --score CLASS=COLUMN; or --label.",
        )
    texts = [text.partition("=")[0] for text in score]
    return [int(text) for text in texts] if all(text.isdecimal() for text in texts) else texts


def _known_groups(roles: RoleOptions, rule: Policy | None, source: Source) -> list[Any]:
    """The groups that there are, where something is said of how likely they are."""
    if not roles.group_proba:
        return []
    if rule is not None:
        return list(rule.groups)
    return _groups_in(source, roles.group or [])


def _groups_in(source: Source, group: list[str]) -> list[Any]:
    """The groups that a file holds."""
    held = source.select(group).relation.distinct().to_arrow_table().drop_null()
    return list(find_groups(resolve_groups(held, group, columns_only=True)))


def _by_type(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
