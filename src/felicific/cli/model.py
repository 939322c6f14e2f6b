"""A file of scores as a classifier, for what needs one: individual policies, tests on rows held out, reports."""

from __future__ import annotations

import re
import warnings
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from felicific._policy.lottery import PROBA_REPEAT
from felicific._program.signal_names import choose_policy
from felicific._program.signals import Individual
from felicific._sklearn.classifier import FairClassifier
from felicific._sklearn.inputs import ScoreColumns
from felicific._tables.groups import find_groups, refuse_identifiers, resolve_groups
from felicific._tables.memory import distinct, take_column
from felicific._typing import Table
from felicific.cli.options import PolicyKind
from felicific.cli.people import People
from felicific.exceptions import DataError, LotteryWarning


def classifier(people: People, rows: Table, kind: PolicyKind, **settings: Any) -> FairClassifier:
    """A fitted classifier around the scores of some rows."""
    people.check_signal()
    labels = None if people.label is None else take_column(rows, people.label, "--label")
    held = take_column(rows, people.predicted, "--predicted") if labels is None else labels
    classes = people.classes or distinct(held)
    model = ScoreColumns(
        [people.score[one] for one in classes] if people.score else (), classes, people.predicted
    )
    believed = settings.pop("group_proba", None)
    fair = FairClassifier(
        FrozenEstimator(model),
        happiness=people.happiness,
        decisions=people.listed,
        loss=people.loss,
        sensitive_features=people.sensitive_features,
        policy=kind if believed is None else Individual(group_proba=believed),
        missing_labels=people.missing_labels,
        **settings,
    )
    said = people.evidence(rows)
    with warnings.catch_warnings():
        # Who people are is said where the policy is applied.
        warnings.filterwarnings("ignore", re.escape(PROBA_REPEAT), LotteryWarning)
        fair.fit(rows, labels, weight_kind=people.weight_kind, baseline=people.baseline, **said)
    if believed is not None and kind == "auto":
        fair._chosen = choose_policy(len(classes), sees_group=False, scored=True)[1]
    return fair


def halves(
    rows: Table,
    group: list[str],
    seed: int | None,
    cluster: str | None = None,
) -> tuple[Table, Table]:
    """Two random halves with the same mix of groups; no cluster is in both."""
    found = resolve_groups(rows, group, columns_only=True)
    refuse_identifiers(find_groups(found), len(rows))
    if cluster is not None:
        by_draw = GroupShuffleSplit(1, test_size=0.5, random_state=seed)
        first, second = next(by_draw.split(rows, groups=rows[cluster]))
        return rows.iloc[first], rows.iloc[second]
    try:
        first, second = train_test_split(rows, test_size=0.5, random_state=seed, stratify=found)
    except ValueError as error:
        raise DataError(
            f"The file cannot be halved with people of every group in both halves: {error}",
            "Name other people with --test.",
        ) from error
    return first, second
