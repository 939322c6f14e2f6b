"""``felicific recalibrate``: a policy fitted anew to the people it will decide on, who have no labels yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from felicific.cli.options import (
    Answer,
    HappinessText,
    Limited,
    PolicyFile,
    Traced,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific import Policy
    from felicific._fit.fit import Recalibrated
    from felicific._people.people import People as Known
    from felicific._problem.problem import Problem
    from felicific._program.aggregates import Aggregates, Outcome
    from felicific.cli.options import RoleOptions
    from felicific.cli.people import People

HOLDS = (
    "This holds on these very people, in expectation over the lottery. Of other people nothing is shown: what was "
    "promised of the policy before is not promised of this one."
)


@dataclass(frozen=True, kw_only=True)
class RecalibrateOptions(Traced, Limited, Answer):
    """What ``felicific recalibrate`` is told."""

    policy: PolicyFile
    happiness: HappinessText = None
    labelled: Annotated[
        str | None,
        people_option(
            "FILE",
            "The people with labels that the policy was fitted on, or their sums from `felicific aggregate`: what "
            "is known of labels. An individual policy needs none.",
        ),
    ] = None
    out: Annotated[Path, output_option("FILE", "Where the new policy is written.")]


def recalibrate(options: RecalibrateOptions) -> None:
    """Fit a policy anew to people without labels, so that its gap is closed on them: it holds in expectation there.

    What is not asked for is as it was: gaps, the cost of changes, and the draws that people draw.

    Example: felicific recalibrate policy.json next.csv --labelled scores.csv --label repaid --score score --group sex
    --happiness "decision * loan" --out next.json
    """
    from felicific._fit.fit import recalibrate_stored
    from felicific.cli.options import RoleOptions
    from felicific.cli.outputs import check_target, print_json, working
    from felicific.cli.people import People

    check_target(options.out, [".json"], force=options.force)
    with working(f"Recalibrating on {options.file} ..."):
        # Those whom it is for have no labels.
        roles = replace(
            RoleOptions.of(options), label=None, missing_labels=None, label_proba=None, max_odds_ratio=1.0
        )
        people = People.find(roles)
        policy = people.policy
        assert policy is not None, "it is an argument"
        _insist(options, policy)
        problem = _problem(options, people, policy)
        labelled = None if policy.sees_x else _labelled(options, roles, policy, problem)
        found = recalibrate_stored(policy, problem, _known(people, policy, problem), labelled)
    found.policy.save(options.out)
    if options.as_json:
        print_json(_content(policy, found, options.out))
        return
    print("\n".join([*_lines(policy, found), f"Written to {options.out}."]))


def _insist(options: RecalibrateOptions, policy: Policy) -> None:
    """Refuse what is said of people with labels where it has no use, and its lack where it is needed."""
    from felicific.cli.options import USAGE
    from felicific.exceptions import DataError

    for name in ("kind", "blind"):
        if getattr(options, name) not in ("auto", False):
            option = {"kind": "policy", "blind": "without-group"}[name]
            raise DataError(
                f"The policy says what it sees, and --{option} has no use.", f"Leave --{option} out."
            )
    if policy.sees_x and options.labelled is not None:
        raise DataError("An individual policy knows what to expect of labels.", "Leave --labelled out.")
    if not policy.sees_x and options.labelled is None:
        raise DataError(
            "A policy file does not keep what is known of labels, so nobody can say what the policy would cost.",
            "Name the people with labels that it was fitted on, or their sums: --labelled FILE.",
        )
    if not policy.sees_x and not options.happiness:
        raise USAGE("Missing option '--happiness'.")


def _problem(options: RecalibrateOptions, people: People, policy: Policy) -> Problem:
    """What is asked: as it was, unless it is said anew."""
    from felicific._problem.problem import problem_of
    from felicific.cli.inputs import read_asked
    from felicific.exceptions import DataError

    happiness = people.happiness or list(getattr(policy, "happiness", ()))
    listed = policy.decisions_given
    loss = people.loss if policy.listed else "error"
    called = problem_of(policy.classes, decisions=listed, happiness=happiness, loss=loss).closed
    names = [one.name for one in policy.measures if not one.aside]
    if list(called) != names:
        raise DataError(
            f"The policy is about {', '.join(map(repr, names))}, and --happiness about "
            f"{', '.join(map(repr, called))}.",
            "Say --happiness and --name as to `felicific fit`.",
        )
    said = (options.floor, options.budget, options.ratio, options.worse_off, options.explore, options.between)
    told = any(one is not None for one in said)
    words = [asked.words for asked in policy.basis.requirements] + [
        one.chance.words for one in policy.explore
    ]
    if words and not told:
        raise DataError(
            f"More was asked of this policy than a file can repeat: {words[0]}.",
            "Say it again, as to `felicific fit`: --floor, --budget, --ratio, --worse-off, --explore, --between.",
        )
    gap, constraints = read_asked(options, happiness, options.gap)
    if options.gap is None and not options.between:
        gap = dict(policy.basis.allowed) or None
    return problem_of(
        policy.classes,
        decisions=listed,
        happiness=happiness,
        loss=people.loss,
        gap=gap,
        constraints=constraints,
        sees_group=policy.sees_group,
    )


def _known(people: People, policy: Policy, problem: Problem) -> Known:
    """The people whom the policy is for, checked."""
    from felicific._people.lazy import missing_first
    from felicific._people.people import People as Known
    from felicific._people.roles import Roles

    people.check_scores()
    policy.check_group_proba(people.group_proba)
    columns = Roles(
        people.sensitive_features,
        None,
        people.score,
        people.predicted,
        people.baseline,
        weight=people.weight,
        group_proba=people.group_proba,
        listed=policy.listed,
    ).for_groups(policy.groups)
    rows = people.rows()
    with missing_first(rows, columns):
        weight = columns.weights_in(rows)
        read = columns.read(rows, policy.classes, weight)
        return Known.of(rows, problem, **read | {"groups": policy.groups})


def _labelled(
    options: RecalibrateOptions, roles: RoleOptions, policy: Policy, problem: Problem
) -> Aggregates:
    """The sums of the people with labels: as a file holds them, or of their rows, by the cells of the policy."""
    from felicific.cli.documents import read_sums, what_is
    from felicific.cli.fit import sums
    from felicific.cli.people import People, remembered_roles
    from felicific.exceptions import DataError

    file = str(options.labelled)
    if what_is(file):
        return (
            read_sums(file)
            .completed(None if options.max_odds_ratio == 1.0 else options.max_odds_ratio)
            .joined()
        )
    if options.label is None and problem.looks_at_y:
        raise DataError("Nothing says which column of --labelled holds the labels.", "Name it with --label.")
    told: dict[str, Any] = {
        name: getattr(options, name) for name in ("label", "missing_labels", "label_proba", "max_odds_ratio")
    }
    classes = [str(one) for one in policy.classes.tolist()]
    own = remembered_roles(roles, policy)
    people = People.find(replace(own, file=file, policy=None, classes=classes, **told))
    signal: Any = policy.sight  # so that the same cells are filled
    kept = [one for one in problem.requirements if not one.is_plain_gap]
    return sums(people, signal, kept, groups=list(policy.groups)).completed()


def _content(policy: Policy, found: Recalibrated, out: Path) -> dict[str, Any]:
    names = [measure.name for measure in policy.measures]
    before = None if found.before is None else dict(zip(names, found.before.gaps.tolist(), strict=True))
    moved = zip(policy.groups, found.moved.tolist(), strict=True)
    return {
        "policy": str(out),
        "sha256": found.policy.sha256,
        "before_sha256": policy.sha256,
        "sentences": found.policy.sentences(),
        "expected_gaps_on_these_people": {"before": before, "after": found.policy.gaps},
        "decided_otherwise": [{"group": group, "share": share} for group, share in moved],
        "how": found.how,
        "no_longer_asked": _dropped(policy, found.policy),
        "holds": HOLDS,
    }


def _lines(policy: Policy, found: Recalibrated) -> list[str]:
    """The new policy, and what changes from the old one to it."""
    after = found.policy
    lines = [*after.sentences(digits=4)]
    for j, measure in enumerate(after.measures):
        if measure.aside:
            continue
        was = "not known" if found.before is None else measure.quantity(_gap(found.before, j))
        now = measure.quantity(_gap(after.outcome, j))
        lines.append(
            f"The gap of {measure.name!r} on these people: {was} by the policy before, {now} by this one; "
            f"{found.how.get(measure.name, '')}."
        )
    moved = ", ".join(
        f"{share:.2%} of group {group!r}"
        for group, share in zip(policy.groups, found.moved.tolist(), strict=True)
    )
    lines.append(f"Whose decision changes, compared with the policy before: {moved}.")
    return [*lines, *(f"No longer asked for: {words}." for words in _dropped(policy, after)), HOLDS]


def _gap(outcome: Outcome, j: int) -> float:
    """A gap for reading: what is left of an exact zero after rounding is zero."""
    gap, means = float(outcome.gaps[j]), outcome.means[:, j].tolist()
    return 0.0 if gap <= 1e-12 * max(abs(mean) for mean in means if mean == mean) else gap


def _dropped(policy: Policy, after: Policy) -> list[str]:
    """What was asked of the policy before, and is not of this one."""

    def asked(one: Policy) -> list[str]:
        return [part.words for part in one.basis.requirements] + [part.chance.words for part in one.explore]

    return [words for words in asked(policy) if words not in asked(after)]
