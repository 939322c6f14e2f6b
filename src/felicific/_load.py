"""Reading any file that felicific wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from felicific._audit.monitored import Monitor
from felicific._files import AGGREGATES, MONITOR, POLICY, STEERING, format_of
from felicific._policy.cells import CellPolicy
from felicific._policy.individual import IndividualPolicy
from felicific._policy.numeric_individual import IndividualAmountPolicy
from felicific._policy.policy import Policy
from felicific._policy.steering import Steering
from felicific._program.aggregates import Aggregates
from felicific.exceptions import DataError, PolicyFileError

#: Kinds of policy that a file may hold: each is known once its module is imported.
KINDS = (CellPolicy, IndividualPolicy, IndividualAmountPolicy)


def load(
    path: str | os.PathLike[str], *, happiness: Any = None, loss: Any = None, policy: Policy | None = None
) -> Any:
    """Read any file that felicific wrote: a policy, aggregates, a monitor or a steering.

    Parameters
    ----------
    path : str or Path
        What ``save(path)`` wrote.
    happiness, loss : function, optional
        The Python functions of an individual policy, a monitor or a steering: a file cannot hold them.
    policy : Policy, optional
        The policy that was steered, where the file holds a steering.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from felicific import aggregate, load, solve
    >>> people = {"sex": ["f", "m"] * 40, "score": [0.2, 0.4, 0.6, 0.8] * 20, "repaid": [0, 0, 1, 1] * 20}
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> with TemporaryDirectory() as folder:
    ...     solve(sums, gap=0.0).save(f"{folder}/policy.json")
    ...     load(f"{folder}/policy.json").decisions.tolist()
    [0, 1]
    """
    form = format_of(path)
    if policy is not None:
        return Steering.resume(path, policy=policy, happiness=happiness)
    if form == STEERING:
        raise DataError(
            f"{os.fspath(path)!r} holds the state of a steered policy.",
            "Pass policy=, the one that was steered.",
        )
    if form.startswith("felicific ") and form not in (POLICY, AGGREGATES, MONITOR):
        raise DataError(
            f"{os.fspath(path)!r} is a file of format {form!r}, which load does not read.",
            "Pass a policy, aggregates, a monitor or a steering; those of felicific 0.1.0 have to be made again.",
        )
    used = {AGGREGATES: (), MONITOR: ("happiness",)}.get(form, ("happiness", "loss"))
    for name, value in {"happiness": happiness, "loss": loss}.items():
        if value is not None and name not in used:
            raise DataError(f"{name}= has no use for {os.fspath(path)!r}.", f"Leave {name}= out.")
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text.lstrip().startswith("{"):
        raise PolicyFileError(
            f"{os.fspath(path)!r} is not a file that felicific wrote.",
            "Get the file again from where it was saved.",
        )
    if form == AGGREGATES:
        return Aggregates.from_json(text)
    if form == MONITOR:
        return Monitor.from_json(text, happiness)
    return Policy.from_json(text, happiness=happiness, loss=loss)
