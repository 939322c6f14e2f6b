"""Effect: what a policy does to people beside the baseline's decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from felicific._audit.persons import EachPerson
from felicific._policy.policy import Policy
from felicific._typing import Floats, Truths


@dataclass(frozen=True, eq=False)
class Effect:
    """What a policy does to people, beside the baseline's decisions.

    Attributes
    ----------
    policy : Policy or None
        None for the baseline's decisions themselves.
    persons : EachPerson
        What it does to each of them.
    moves : array of shape (groups, D, D)
        How many people of each group move from which decision by the baseline to which, expected over the lottery.
    gain, lose : array of shape (groups, measures)
        How many get more, and less, of each measure than from the baseline's decision; not a number of fractions.
    better, worse : array of shape (groups,)
        How many get less of nothing that people want and more of something; and less of something.
    draws : array of shape (groups,)
        How many are decided on at random.
    kept : bool array of shape (groups,)
        Groups about whom it decides as the baseline does, whoever belongs to them.
    probabilities : array of shape (n, D)
        The probability of every decision about everybody.
    """

    policy: Policy | None
    persons: EachPerson
    moves: Floats
    gain: Floats
    lose: Floats
    better: Floats
    worse: Floats
    randomized: Floats
    kept: Truths
    probabilities: Floats

    @property
    def changed(self) -> Floats:
        """How many people of every group get another decision than from the baseline."""
        return np.asarray(self.moves.sum(axis=(1, 2)) - np.trace(self.moves, axis1=1, axis2=2)).clip(min=0.0)
