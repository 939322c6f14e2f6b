"""The people of a file, with what the options say about its columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from felicific import Policy
from felicific._tables.groups import resolve_groups
from felicific._tables.memory import Array, take_column
from felicific.cli.inputs import (
    Source,
    needed_columns,
    open_source,
    read_class,
    read_classes,
    read_constraints,
    read_function,
    read_gap,
    read_proba,
)
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
    proba : dict of class to column, or None
    label, decision, weight, key : str or None
        Columns.
    happiness, loss, favourable :
        As the library takes them.
    policy : Policy or None
        The policy that decides.
    """

    source: Source
    original: list[str]
    pandas: bool
    group: list[str]
    classes: list[Any] | None
    proba: dict[Any, str] | None
    label: str | None
    decision: str | None
    weight: str | None
    key: str | None
    happiness: Any
    loss: Any
    favourable: Any
    policy: Policy | None

    @classmethod
    def find(
        cls,
        file: str,
        *,
        group: list[str],
        happiness: Any = (),
        loss: str = "error",
        table: str | None = None,
        label: str | None = None,
        proba: list[str] | None = None,
        decision: str | None = None,
        classes: list[str] | None = None,
        weight: str | None = None,
        key: str | None = None,
        favourable: str | None = None,
        policy: Path | None = None,
        every_column: bool = False,
        as_written: bool = False,
    ) -> People:
        """Open the file and check that it has what the options name; no row is read.

        With ``every_column`` those that play no role are kept, and ``as_written`` as the text that a CSV has.
        """
        cost = read_function(loss, "loss")
        rule = None if policy is None else Policy.load(policy, happiness=happiness or None, loss=cost)
        # Keys are text, and groups are what the policy knows: "007" of a CSV must not become 7.
        as_text = [] if key is None else [key]
        if rule is not None and len(group) == 1 and all(isinstance(name, str) for name in rule.groups):
            as_text += group
        looked_at = needed_columns(happiness, cost, getattr(rule, "happiness", ()))
        source = open_source(file, table, as_text)
        if as_written and looked_at is not None:
            used = {*group, decision, *looked_at}
            used |= {part for text in proba or () for part in (text, text.partition("=")[2])}
            source = open_source(file, table, [*as_text, *(c for c in source.columns if c not in used)])
        original = source.columns
        source.check(group=group, label=label, decision=decision, weight=weight, key=key)
        known = [] if rule is None else rule.classes.tolist()
        if rule is None and (proba or classes or favourable is not None):
            named = [column for column in (label, decision) if column is not None]
            known = sorted({value for column in named for value in source.distinct(column)}, key=_by_type)
        if classes:
            known = sorted(read_classes(classes, known), key=_by_type)
        best = None if favourable is None else read_class(favourable, known, "favourable")
        source, columns = read_proba(source, proba, known, best)
        if looked_at is not None:
            source.check(happiness=looked_at)
        if looked_at is not None and not every_column:
            roles = [*group, label, decision, weight, key, *(columns or {}).values(), *looked_at]
            source = source.select([name for name in roles if name is not None])
        return cls(
            source=source,
            original=original,
            pandas=looked_at is None,
            group=group,
            classes=known or None,
            proba=columns,
            label=label,
            decision=decision,
            weight=weight,
            key=key,
            happiness=happiness,
            loss=cost,
            favourable=best,
            policy=rule,
        )

    @property
    def sensitive_features(self) -> str | list[str]:
        """The group as the library takes it."""
        return self.group[0] if len(self.group) == 1 else self.group

    def task(
        self, gap: list[str] | None, floor: list[str] | None, budget: list[str] | None
    ) -> dict[str, Any]:
        """What is asked of a policy; a gap of 0 when nothing is said."""
        allowed = read_gap(gap)
        return {
            "gap": 0.0 if allowed is None else allowed,
            "constraints": read_constraints(floor, budget, self.happiness),
        }

    def rows(self) -> Any:
        """All rows, in memory."""
        return self.source.read(pandas=self.pandas)

    def scores(self, rows: Any) -> Array:
        """What the policy, or the model, says about some rows: probabilities, or labels where there are none."""
        self.check_scores()
        if self.proba is not None:
            return np.column_stack([take_column(rows, name, "--proba") for name in self.proba.values()])
        assert self.decision is not None, "checked"
        return take_column(rows, self.decision, "--decision")

    def check_scores(self) -> None:
        """Insist on what the policy, or the model, looks at."""
        if self.policy is not None and self.policy.needs_proba and self.proba is None:
            raise DataError("This policy looks at probabilities.", "Name their column(s) with --proba.")
        self.check_signal()

    def check_signal(self) -> None:
        """Insist on probabilities or decisions."""
        if self.proba is None and self.decision is None:
            raise DataError(
                "Nobody said what the model thinks of a person.",
                "Name the column(s) of its probabilities, --proba, or of its decisions, --decision.",
            )

    def chances(self, rows: Any) -> Array:
        """Probability of every decision that the policy takes about some rows."""
        assert self.policy is not None, "only a policy has chances"
        if self.policy.see_group and not self.group:
            raise DataError("This policy looks at the group.", "Name its column(s) with --group.")
        group = resolve_groups(rows, self.sensitive_features) if self.policy.see_group else None
        return self.policy.apply(self.scores(rows), group, rows)

    def decisions(self, rows: Any) -> Array:
        """What is decided about some rows: by the policy, in the file, or by the larger probability."""
        if self.policy is not None:
            return self.chances(rows)
        if self.decision is not None:
            return take_column(rows, self.decision, "--decision")
        likeliest = self.scores(rows).argmax(axis=1)
        return np.asarray(np.array(list(self.proba or ()), dtype=object)[likeliest])

    def in_memory(self) -> dict[str, Any]:
        """Decisions, rows, labels and weights, for an audit."""
        rows = self.rows()
        labels = None if self.label is None else take_column(rows, self.label, "--label")
        weight = None if self.weight is None else take_column(rows, self.weight, "--weight")
        return {"decisions": self.decisions(rows), "X": rows, "y": labels, "sample_weight": weight}

    def in_the_file(self) -> dict[str, Any]:
        """The same by names of columns, with the rows still where they are."""
        self.source.check_rows()
        named = {"X": self.source.relation, "y": self.label, "sample_weight": self.weight}
        if self.policy is None:
            return named | {"decisions": self.decision}
        self.check_scores()
        scores = {"predicted": self.decision} if self.proba is None else {"proba": self.proba}
        return named | {"decisions": self.policy} | scores


def _by_type(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
