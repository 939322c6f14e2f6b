"""The beginning of a steering: what is asked of it, checked."""

from __future__ import annotations

import math
import secrets
import warnings
from typing import TYPE_CHECKING

import numpy as np

from felicific._policy.aims import find_aim
from felicific._policy.moving import Rule
from felicific._policy.steering import Steering
from felicific._policy.steering_state import State, Sums
from felicific._problem.happiness import HappinessLike
from felicific._typing import GapLike
from felicific.exceptions import ConstraintError, SteeringWarning

if TYPE_CHECKING:
    from felicific._policy.policy import Policy

#: People of the smallest group until an error that stays shrinks to a third, unless said; and fewer than are wise.
PACE, HASTE = 300, 50


def begin(
    policy: Policy, happiness: HappinessLike | None, gap: GapLike, pace: float | None, reach: float
) -> Steering:
    """Begin to steer a policy; see :meth:`felicific.Policy.steer`."""
    j, aim = find_aim(policy, gap)
    controls = policy.controls(j, happiness)
    smallest = min(share for share in controls.shares if share > 0)
    rule = Rule(controls, aim, _pace(pace, smallest), _reach(reach))
    if rule.pace * smallest < HASTE:
        warnings.warn(
            f"pace={rule.pace:g} lets {rule.pace * smallest:.3g} people of the smallest group come until an error is "
            f"paid back: decisions will jump about with chance. Use {math.ceil(HASTE / smallest)} or more.",
            SteeringWarning,
            stacklevel=3,
        )
    groups = len(policy.groups)
    return Steering(policy, rule, State(secrets.token_hex(8), Sums.none(groups)))


def _pace(pace: float | None, smallest: float) -> float:
    if pace is None:
        return PACE / smallest
    if isinstance(pace, bool) or not isinstance(pace, int | float | np.number) or not 0 < pace < math.inf:
        raise ConstraintError(f"pace is {pace!r}.", "Give a number of people above 0.")
    return float(pace)


def _reach(reach: float) -> float:
    if isinstance(reach, bool) or not isinstance(reach, int | float | np.number) or not 0 < reach <= 1:
        raise ConstraintError(f"reach is {reach!r}.", "Give a number above 0, at most 1 (no limit).")
    return float(reach)
