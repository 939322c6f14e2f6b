"""What a policy may see, by name: from what users write, and in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypeAlias

from felicific._program.signals import Individual, Label, Score, ScoreCells, Signal, SoftLabel
from felicific._program.values import ValueCells
from felicific.exceptions import DataError

#: What ``policy=`` may say where the policy sees a signal.
SignalLike: TypeAlias = Literal["score", "label", "soft-label"] | Score


SIGNALS: Mapping[str, type[SoftLabel] | type[Label] | type[Score]] = {
    kind.kind: kind for kind in (SoftLabel, Label, Score)
}


def resolve_policy(policy: Any) -> Signal | Individual:
    """Turn ``policy=`` (a name or an object) into what the policy sees."""
    names = [*SIGNALS, Individual.kind]
    if isinstance(policy, str) and policy in names:
        return Individual() if policy == Individual.kind else SIGNALS[policy]()
    if isinstance(policy, Score) and policy.calibration is not None:
        raise DataError(
            f"Score(calibration={policy.calibration!r}) says what is made of a regressor's predictions.",
            "Leave calibration out, or use FairRegressor.",
        )
    if isinstance(policy, SoftLabel | Label | Score | ScoreCells | Individual):
        return policy
    if isinstance(policy, ValueCells):
        raise DataError(
            "These are bins of a decision function, which FairClassifier alone cuts and sums up.",
            "Use fair.frontier_on(X, y), or policy='score'.",
        )
    raise DataError(f"There is no policy {policy!r}.", f"Choose one of {', '.join(map(repr, names))}.")


class Sight(NamedTuple):
    """What a policy of amounts sees: all of x or predictions, how they are calibrated, whether amounts may fall."""

    individual: bool
    calibration: str = "affine"
    monotone: bool = True


def resolve_sight(policy: Any) -> Sight:
    """Turn ``policy=`` (a name or an object) into what a policy of amounts sees."""
    if isinstance(policy, Score):
        return Sight(False, policy.calibration or "affine", policy.monotone)
    kind = resolve_policy(policy)
    if kind.kind not in (Score.kind, Individual.kind):
        raise DataError(
            f"policy={policy!r} sees a predicted class, and a regressor predicts none.",
            "Use policy='score', which sees the prediction, or policy='individual', which sees all of x.",
        )
    named = policy.calibration if isinstance(policy, Individual) else "affine"
    return Sight(kind.sees_x, named)


def choose_policy(
    n_classes: int, *, sees_group: bool, scored: bool, valued: bool = False
) -> tuple[Signal | Individual, str]:
    """What ``policy="auto"`` means: what the policy sees, and why.

    ``scored`` says whether the model has probabilities, ``valued`` whether it has a decision function.
    """
    if not scored and valued and n_classes == 2:
        return Score(), "the model has a decision function and no predict_proba"
    if not scored:
        more = f" and there are {n_classes} classes" if valued else ""
        return Label(), f"the model has no predict_proba{more}"
    if not sees_group:
        return Individual(), "the group is not seen"
    if n_classes > 2:
        return Individual(), f"there are {n_classes} classes"
    return Score(), "there are two classes and the group is seen"


def resolve_signal(policy: Any) -> Signal:
    """Turn ``policy=`` into a signal that aggregates can be summed over."""
    signal = resolve_policy(policy)
    if isinstance(signal, Individual):
        raise DataError(
            "Sums over people are not enough for an individual policy, which looks at each of them.",
            "Use FairClassifier, which has them in memory; or policy='score', which decides by score bins anywhere.",
        )
    if isinstance(signal, Score) and not signal.randomize:
        raise DataError(
            "randomize=False rounds the decisions of single people, of whom sums know nothing.",
            "Leave it out, or use FairClassifier.",
        )
    return signal


def signal_to_json(signal: Signal) -> dict[str, Any]:
    """Write a signal as plain data."""
    return {"kind": signal.kind, **asdict(signal)}  # type: ignore[call-overload]  # every signal is a dataclass


def signal_from_json(content: dict[str, Any]) -> Signal:
    """Read a signal back; whatever it does not know raises TypeError or ValueError."""
    fields = dict(content)
    kind = fields.pop("kind")
    if kind == ValueCells.kind and "values" in fields:
        return ValueCells(**fields)
    if kind == Score.kind and "cuts" in fields:
        return ScoreCells(**fields)
    if kind not in SIGNALS:
        raise DataError(f"There is no policy {kind!r}.", f"Known are {', '.join(map(repr, SIGNALS))}.")
    return SIGNALS[kind](**fields)
