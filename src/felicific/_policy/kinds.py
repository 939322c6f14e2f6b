"""Every kind of policy, so that files of all of them can be read."""

from felicific._policy.amount_individual import IndividualAmountPolicy
from felicific._policy.cells import CellPolicy
from felicific._policy.individual import IndividualPolicy
from felicific._policy.policy import Policy

__all__ = ["CellPolicy", "IndividualAmountPolicy", "IndividualPolicy", "Policy"]
