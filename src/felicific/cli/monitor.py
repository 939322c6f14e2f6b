"""``felicific monitor``: whether a gap has opened, asked again and again while decisions are taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicific.cli.options import (
    Baseline,
    Compared,
    Decision,
    GroupName,
    HappinessText,
    Json,
    Limited,
    Scored,
    asked_option,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific._audit.monitored import Monitor
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class MonitorOptions(Compared, Scored, Limited):
    """What ``felicific monitor`` is told."""

    happiness: HappinessText = None
    decision: Decision = None
    policy: Annotated[
        Path | None,
        people_option(
            "FILE",
            "A policy: its groups, the names, units and bounds of its happiness, and its gaps hold here; and its "
            "happiness, if it keeps it and none is said. Given what it decides by (--score), and no column of "
            "decisions, its expected happiness is monitored, without the luck of the draw.",
            "--policy-file",
        ),
    ] = None
    label: Annotated[
        str | None,
        people_option(
            "COLUMN",
            "Column of the truth, for a happiness that looks at it: give rows once all outcomes of their time are "
            "known.",
        ),
    ] = None
    baseline: Baseline = None
    group_name: GroupName = None
    confidence: Annotated[
        float,
        asked_option(
            "NUMBER",
            "With which no alarm is ever raised if the gap is never more than --gap, however often one looks.",
        ),
    ] = 0.95
    state: Annotated[
        Path | None,
        output_option(
            "FILE",
            "What was counted so far: read if it is there, and written anew after all rows were read. Without it, "
            "the file is the whole history.",
        ),
    ] = None
    picture: Annotated[
        Path | None, output_option("FILE", "Draw it to this .svg or .png file, anew each time.")
    ] = None
    as_json: Json = False


def monitor(options: MonitorOptions) -> None:
    """Say whether a gap has opened among people in the order in which they came; exit code 4 if there is an alarm.

    It may be asked after every row, for years: a system that keeps to --gap ever raises an alarm with a probability of
    at most 1 - confidence. Each time, give the people who came since, and the same options.

    Example: felicific monitor week.csv --decision approved --group sex --happiness decision --gap 0.05 --state
    monitor.json
    """
    from felicific.cli.outputs import check_chart, check_target, print_json, printable, working

    check_target(options.state, [".json"], force=True)
    check_chart(options.picture, force=True)
    before = _held(options.state)
    with working(f"Monitoring {options.file} ..."):
        found = _monitored(options)
    if options.picture is not None:
        from felicific import plots

        plots.save(found.plot(), options.picture)
    if options.state is not None:
        _check_unchanged(options.state, before)
        found.save(options.state)  # last: rows count when all of it is done
    if options.as_json:
        print_json(found.to_dict())
    else:
        lines = [*found.sentences(), *found.notes]
        print("\n".join(printable(line) for line in lines))
    if found.alarm is not None:
        raise typer.Exit(4)


def _held(state: Path | None) -> bytes | None:
    """What stands in the file of the state; None if there is none."""
    return state.read_bytes() if state is not None and state.exists() else None


def _check_unchanged(state: Path, before: bytes | None) -> None:
    """Refuse to write over what another command has counted meanwhile."""
    from felicific.exceptions import DataError

    if _held(state) != before:
        raise DataError(
            f"{str(state)!r} was written by another command meanwhile, and what that counted would be lost.",
            "Run this one again: no row of it was counted. Let one command at a time use a --state.",
        )


def _monitored(options: MonitorOptions) -> Monitor:
    """The people of the file, after those of the state."""
    from felicific._audit.monitor import monitor as begin
    from felicific.cli.documents import read_monitor
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    people = People.find(options, a_part=True)
    happiness = _happiness(people, options)
    if people.decision is None and (
        people.policy is None or (people.score is None and people.predicted is None)
    ):
        raise DataError(
            "Nobody said which decisions are monitored.",
            "Name their column, --decision, or a policy and what it decides by, --policy-file and --score.",
        )
    # What was decided counts, and not what a policy would decide.
    whose = people if people.decision is None else replace(people, policy=None)
    rows = whose.in_memory() if whose.pandas else whose.in_the_file()
    rows = {name: value for name, value in rows.items() if name not in ("cluster", "sample_weight")}
    rows |= {"sensitive_features": people.sensitive_features, "baseline": people.baseline}
    settings = _settings(people, options, happiness)
    if options.state is None or not options.state.exists():
        return begin(**rows, **settings)
    known = read_monitor(options.state, happiness)
    _check_same(known, settings, options.state)
    return known.add(**rows)


def _settings(people: People, options: MonitorOptions, happiness: Any) -> dict[str, Any]:
    """What is monitored, however many people come."""
    from felicific.cli.inputs import read_classes, read_gap

    policy, named = people.policy, options.group_name
    gap, groups = read_gap(options.gap), None if policy is None else policy.groups
    if named:
        groups = tuple(sorted(read_classes(named, people.held_groups(), "group-name")))
    return {
        "happiness": happiness,
        "gap": policy.basis.allowed if gap is None and policy is not None else gap,
        "groups": groups,
        "decisions": people.decided_among
        if policy is None
        else people.listed or policy.decisions_given or policy.classes.tolist(),
        "confidence": options.confidence,
    }


def _happiness(people: People, options: MonitorOptions) -> Any:
    """What is asked for; a policy tells the name, the unit and the bounds of the one thing that it is about."""
    from felicific._problem.criteria import CRITERIA
    from felicific._problem.happiness import Happiness, measured
    from felicific.exceptions import HappinessError

    policy, said = people.policy, people.happiness
    if policy is None:
        if not said:
            raise HappinessError("Nobody said what makes a person happy.", "Say it: --happiness.")
        return said
    own = [policy.measures[j] for j in measured(policy.measures)]
    stored: Any = getattr(policy, "happiness", ())
    if not said:
        if not stored:
            raise HappinessError(
                "The policy does not keep what makes a person happy.", "Say it again: --happiness."
            )
        return [part for part in stored if part.name in {measure.name for measure in own}]
    if len(own) != 1 or isinstance(said, list) or (isinstance(said, str) and said in CRITERIA):
        return said
    part = said if isinstance(said, Happiness) else Happiness(said)
    return replace(
        part,
        name=own[0].name if options.name is None else part.name,
        unit=part.unit or own[0].unit,
        bounds=own[0].bounds if part.bounds is None else part.bounds,
        family=None,
    )


def _check_same(known: Monitor, settings: dict[str, Any], state: Path) -> None:
    """Refuse a state of something else than what the options say."""
    from felicific._audit.monitored import own_happiness
    from felicific._problem.happiness import function_to_json
    from felicific._problem.problem import problem_of
    from felicific.exceptions import DataError

    monitored = known.problem
    asked = problem_of(
        monitored.decisions,
        decisions=settings["decisions"],
        happiness=settings["happiness"],
        gap=settings["gap"],
    )
    pairs: dict[str, list[Any]] = {
        "--happiness": [
            [(part.measure, function_to_json(part)) for part in own_happiness(one)]
            for one in (monitored, asked)
        ],
        "--gap": [monitored.gaps, asked.gaps],
        "--confidence": [known.confidence, settings["confidence"]],
    }
    for option, (before, now) in pairs.items():
        if before != now:
            raise DataError(
                f"{str(state)!r} is the state of another monitor: its {option} is not what is said now.",
                "Say what was said when it began, or name another --state.",
            )
