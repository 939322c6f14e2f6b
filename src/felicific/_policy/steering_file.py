"""The file of a steering, read with suspicion."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from felicific._documents import read_document, read_number, read_sha256, refused
from felicific._policy.aims import Aim, read_aim
from felicific._policy.steering_state import State
from felicific.exceptions import PolicyFileError

FORMAT = "felicific steering"

PARTS = {"policy", "salt", "component", "groups", "aim", "pace", "reach", "state"}


class SteeringFile(NamedTuple):
    """What stands in the file of a steering.

    ``policy`` is the SHA-256 of the policy that is steered, ``salt`` a check of its salt; ``groups`` are its groups.
    """

    policy: str
    salt: str
    component: str
    groups: tuple[Any, ...]
    aim: Aim
    pace: float
    reach: float
    state: State


def read_steering(path: str | os.PathLike[str]) -> SteeringFile:
    """Read the file of a steering, of whatever policy."""
    where = os.fspath(path)
    try:
        content = read_document(Path(path).read_text("utf-8"), FORMAT)
        if set(content) != PARTS:
            raise refused("it lacks a part, or has one too many")
        return _read(content)
    except UnicodeDecodeError as error:
        raise refused_file(where, "it is not text") from error
    except PolicyFileError as error:
        raise refused_file(
            where, error.problem.removeprefix("This is no policy file: ").rstrip(".")
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise refused_file(where, f"a part is missing or of another type ({error!r})") from error


def refused_file(where: str, reason: str) -> PolicyFileError:
    """The error of a file that is none."""
    return PolicyFileError(
        f"{where!r} is no file of a steering: {reason}.", "Get it again from where it was saved."
    )


def _read(content: dict[str, Any]) -> SteeringFile:
    sha256, named = read_sha256(content["policy"], "policy"), content["groups"]
    if sha256 is None or type(content["salt"]) is not str or type(content["component"]) is not str:
        raise refused("it does not say which policy is steered")
    if not isinstance(named, list) or len(named) < 2:
        raise refused("it is not of two groups or more")
    pace, reach = read_number(content["pace"], "pace"), read_number(content["reach"], "reach")
    if not pace > 0 or not 0 < reach <= 1:
        raise refused("its pace or its reach is none")
    aim, state = read_aim(content["aim"], len(named)), State.from_json(content["state"], len(named))
    return SteeringFile(sha256, content["salt"], content["component"], tuple(named), aim, pace, reach, state)
