"""Blindness: what it costs that a policy does not see the group, which takes a second fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from felicific._fit.fitted import Fitted


@dataclass(eq=False)
class Blindness:
    """The loss of a policy over that of one that sees the group; fitted when it is first asked for.

    Attributes
    ----------
    loss : float
        Of the policy that does not see the group.
    fit : callable, or None
        Fits the one that sees it, to the same people; None once that was done. People are never stored: before it is
        written to a file or copied the cost is found.
    """

    loss: float
    fit: Callable[[], Fitted] | None

    @cached_property
    def cost(self) -> float:
        """By how much the loss is larger."""
        assert self.fit is not None, "it was not asked for yet"
        found, self.fit = self.loss - self.fit().policy.loss, None
        return found

    def known(self) -> Self:
        """With the cost known."""
        self.cost  # noqa: B018  # asked for, so that it is kept
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"loss": self.loss, "fit": None, "cost": self.cost}
