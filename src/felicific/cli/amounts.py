"""Amounts on the command line: fit, sum up, trace and apply where ``--predicted`` names amounts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from felicific import FairRegressor
from felicific._files import POLICY, format_of
from felicific._people.roles import Roles
from felicific._policy.apply import with_remembered
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_fit import fitted_to_sums
from felicific._policy.numeric_outcome import AmountOutcome
from felicific._problem.numeric import Allowed
from felicific._program.numeric import AmountAggregates
from felicific._program.numeric_tables import aggregates_of_amounts
from felicific.cli.documents import read_any_policy
from felicific.cli.files import Source, open_source
from felicific.cli.inputs import read_asked, read_decisions, read_function, read_happiness, read_range
from felicific.cli.options import Measures, RoleOptions, Scores, Traced
from felicific.cli.people import join_groups
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.numeric_fit import FittedAmounts

#: Options that speak of classes, or of what amounts do not have on the command line, and what to do instead.
_REFUSED = {
    "score": "Scores are of classes, a predicted amount is a number: give one of them.",
    "group_proba": "Leave it out.",
    "classes": "Leave it out: amounts have no classes.",
    "missing_labels": "Leave it out, and the rows without a label.",
    "label_proba": "Leave it out.",
    "max_odds_ratio": "Leave it out.",
    "worse_off": "Leave it out; --floor 'decision=baseline' keeps every group's mean amount.",
    "explore": "Leave it out.",
    "blind": "Use FairRegressor(sees_group=False) in Python, or leave it out.",
    "change_cost": "Leave it out: a change of an amount costs what the loss says.",
    "confidence": "Use FairRegressor(confidence=...) in Python, or leave it out.",
    "cluster": "Leave it out.",
    "test": "Leave it out, apply the policy to those people, and audit their amounts.",
    "min_cell": "Leave it out.",
    "min_people": "Leave it out.",
    "with_proba": "Leave it out: an amount has no probabilities.",
    "steer": "Leave it out: policies of amounts are not steered.",
    "signed": "Leave it out: decisions about amounts are signed on paper.",
    "chart": "Leave it out.",
}

#: How options are called whose fields are called otherwise.
_CALLED = {"blind": "without-group", "with_proba": "with-proba", "classes": "class"}


def refuse_classes(options: object) -> None:
    """Refuse options that have no use where amounts are predicted, or beside a policy of amounts."""
    for field in fields(options):  # type: ignore[arg-type]  # options are dataclasses
        value = getattr(options, field.name)
        if field.name in _REFUSED and value != field.default:
            option = _CALLED.get(field.name, field.name).replace("_", "-")
            raise DataError(f"--{option} is not taken where amounts are predicted.", _REFUSED[field.name])
    kind = getattr(options, "kind", "auto")
    if kind not in ("auto", "score"):
        raise DataError(
            f"--policy {kind} is not taken where amounts are predicted.",
            "Use FairRegressor in Python, or --policy score.",
        )


def read_allowed(text: str | None) -> Any:
    """Which amounts there may be: LOW:HIGH, LOW:HIGH:STEP, or a list."""
    ends = read_range(text)
    if ends is not None:
        return ends
    listed = read_decisions(text)
    if listed is not None and any(isinstance(one, str) for one in listed):
        raise DataError(
            f"--decisions {text} lists words, and amounts are numbers.",
            "Write LOW:HIGH, LOW:HIGH:STEP, or numbers.",
        )
    return listed


def opened(options: Scores | Measures, file: str, *, every_group: bool = True) -> tuple[Source, RoleOptions]:
    """The file with the columns that the options name; nothing is read."""
    roles, prediction = RoleOptions.of(options, file), getattr(options, "predicted", None)  # type: ignore[arg-type]  # both
    source = open_source(file, roles.table, [])
    source.check(**{"predicted": prediction} | roles.columns())
    return join_groups(source, roles, every_group=every_group)


def said_of(options: Any, roles: RoleOptions) -> dict[str, Any]:
    """What the options say of people, as the library takes it."""
    group, loss = roles.group or [], read_function(roles.loss, "loss")
    return {
        "predicted": options.predicted,
        "y": roles.label,
        "sensitive_features": group[0] if len(group) == 1 else group,
        "happiness": read_happiness(roles),
        "loss": "squared" if loss == "error" else loss,  # which is that of classes
        "decisions": read_allowed(roles.decisions),
        "baseline": roles.baseline,
        "sample_weight": roles.weight,
        "key": roles.key,
    }


def fitted(options: Traced, gap: Sequence[str] | None, seed: int | None) -> FittedAmounts:
    """The policy of least loss for the people of a file: of their sums, or of rows where these do not tell the loss."""
    refuse_classes(options)
    source, roles = opened(options, options.file)
    said = said_of(options, roles)
    if said["loss"] == "squared" and roles.baseline is None:
        return fitted_to(summed(options, options.file, None, every_group=True), options, gap, seed)
    width, constraints = read_asked(options, said["happiness"], gap)
    used = [options.predicted, roles.label, *(roles.group or ()), roles.baseline, roles.weight]
    rows = source.select([name for name in dict.fromkeys(used) if name is not None]).read(pandas=True)
    given, weight = (None if one is None else rows[one] for one in (said.pop("y"), said.pop("sample_weight")))
    fair = FairRegressor(said.pop("predicted"), gap=width, constraints=constraints, random_state=seed, **said)
    return fair.fit(rows, given, sample_weight=weight)._fitted


def fitted_to(
    sums: AmountAggregates, options: Traced, gap: Sequence[str] | None, seed: int | None
) -> FittedAmounts:
    """The policy of least loss for people of whom sums were made before."""
    refuse_classes(options)
    names = [str(part.name) for part in sums.asked.happiness] + [sums.asked.parity] * bool(sums.asked.parity)
    width, constraints = read_asked(options, names if len(names) > 1 else names[0], gap)
    return fitted_to_sums(sums, gap=width, constraints=constraints, random_state=seed)


def summed(
    options: Any, file: str, groups: list[Any] | None, *, every_group: bool = False
) -> AmountAggregates:
    """The sums of the people of one file."""
    refuse_classes(options)
    source, roles = opened(options, file, every_group=every_group)
    source.check_rows()
    return aggregates_of_amounts(source.relation, groups=groups, **said_of(options, roles))


def check_sites(options: Any, files: Sequence[str]) -> None:
    """Insist on bounds where sums of several files are to add."""
    if len(files) > 1 and Allowed.of(read_allowed(options.decisions)).bounds is None:
        raise DataError(
            f"The bins of {len(files)} files have to be the same, and nothing says from where to where they go.",
            "Say --decisions LOW:HIGH, the least and the largest amount.",
        )


# ---------------------------------------------------------------------------------------------------------
# What is printed


def lines_of(policy: AmountPolicy) -> list[str]:
    """What a policy of amounts does, for reading."""
    return [*policy.sentences(4), *policy.impact()]


def summary(policy: AmountPolicy) -> dict[str, Any]:
    """The same as plain data."""

    def outcome(reached: AmountOutcome) -> dict[str, Any]:
        means = reached.means.tolist()
        return {
            "loss": None if reached.loss != reached.loss else reached.loss,
            "gaps": policy.gaps_in(reached),
            "amounts": [
                [group, mean] for group, mean in zip(policy.groups, reached.amounts.tolist(), strict=True)
            ],
            "means": [
                {"measure": measure.name, "group": group, "mean": means[z][j]}
                for j, measure in enumerate(policy.measures)
                for z, group in enumerate(policy.groups)
            ],
        }

    return {
        "kind": policy.kind,
        "sentences": policy.sentences(),
        "decisions": list(policy.bounds if policy.listed is None else policy.listed),
        "fitted": outcome(policy.outcome),
        "baseline": outcome(policy.baseline),
        "unconstrained": outcome(policy.unconstrained),
        "asked": policy.asked,
        "prices": policy.prices,
        "share_randomized": policy.share_randomized,
        "loss": policy.loss_name,
        "sha256": policy.sha256,
    }


# ---------------------------------------------------------------------------------------------------------
# Policies in files


def holds_amounts(path: Path | str) -> bool:
    """Whether a file holds a policy of amounts; what is wrong with another file is said by whoever reads it."""
    if format_of(path) != POLICY:
        return False
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, OSError):
        return False
    kind = content.get("policy")
    return isinstance(kind, dict) and kind.get("kind") in AmountPolicy.kinds


def amounts_of(path: Path, named: Roles) -> tuple[AmountPolicy, Roles] | None:
    """The policy of amounts in a file, and the columns that are named or that it remembers; None of another policy."""
    if holds_amounts(path):
        policy = read_any_policy(path)
        assert isinstance(policy, AmountPolicy), "its file says so"
        if policy.kind != AmountPolicy.kind:
            raise DataError(
                f"This policy is of kind {policy.kind!r}, which looks at the people themselves.",
                "Apply it in Python, where their columns are at hand: policy.amounts(...).",
            )
        named = with_remembered(policy, named)
        if named.predicted is None:
            raise DataError(
                "This policy gives amounts by what a model predicts.", "Name the column with --predicted."
            )
        return policy, named
    return None


def open_people(file: str, table: str | None, policy: AmountPolicy, named: Roles) -> Source:
    """The people of a file that a policy of amounts is applied to; what has no role stays as a CSV has it."""
    group = named.group_names
    known = open_source(file, table, [])
    known.check(predicted=named.predicted, group=group, key=named.key)
    typed = {named.predicted, *([] if all(isinstance(name, str) for name in policy.groups) else group)}
    return open_source(file, table, [name for name in known.columns if name not in typed])
