"""``felicific apply --steer``: a policy whose controls move, and the file that remembers where they are."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicific.cli.options import ASKED, OUTPUT, Gap, Name

if TYPE_CHECKING:
    from felicific import Policy
    from felicific._policy.steering import Steering
    from felicific._typing import Array, Table
    from felicific.cli.apply import ApplyOptions
    from felicific.cli.people import People

#: What the column of controls is called.
CONTROL = "control"


@dataclass(frozen=True, kw_only=True)
class Steer:
    """How a policy is steered."""

    steer: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Close the gap while deciding, and remember in this .json file how far that is: it is begun if it is "
            "not there, else continued. Needs --key and, of a policy of score bins, --happiness and --name as before.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    name: Name = None
    gap: Gap = None
    pace: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="With --steer: people until an error that stays has shrunk to a third. Default: as many as bring 300 "
            "of the smallest group.",
            rich_help_panel=ASKED,
        ),
    ] = None
    reach: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="With --steer: the share of a group that may get another decision than by the policy alone; 0.25.",
            rich_help_panel=ASKED,
        ),
    ] = None


def check_alone(options: ApplyOptions) -> None:
    """Refuse what only goes with --steer, or not with it."""
    from felicific.exceptions import DataError

    if options.steer is None:
        given = [name for name in ("name", "gap", "pace", "reach") if getattr(options, name) is not None]
        if given:
            raise DataError(
                f"--{given[0]} belongs to a steered policy.", "Add --steer FILE, or leave it out."
            )
        return
    if options.key is None:
        raise DataError(
            "A steered policy has to know whom it decided on.",
            "Name the column that identifies people: --key COLUMN.",
        )
    if options.with_proba:
        raise DataError(
            "The probabilities of a steered policy move with every person.", "Leave --with-proba out."
        )
    if options.signed is not None:
        raise DataError(
            "--signed is for a policy that decides as it was signed, and --steer moves it.",
            "Leave one of them out.",
        )


class SteeredPeople:
    """The people of a file, and the steering that decides on them."""

    def __init__(self, people: People, options: ApplyOptions) -> None:
        assert options.steer is not None, "it is steered"
        assert options.key is not None, "which was checked"
        self.people, self.path, self.key = people, options.steer, options.key
        self.began = _content(self.path)
        self.steering = _begun(people, options) if self.began is None else _continued(people, options)
        self.digest = digest_of_keys(people, self.key)
        self.steering.refuse_again(self.digest)

    def decide(self, rows: Table, seen: Table) -> tuple[Array, dict[str, list[float | None]]]:
        """Decisions about some rows, and the controls by which they were taken."""
        from felicific._policy.lottery import check_keys
        from felicific._tables.memory import take_column

        keys = check_keys(take_column(rows, self.key, "--key"))
        scores, group, _ = self.people.sight(seen)
        assert group is not None, "a policy that does not see the group is not steered"
        found = self.steering.decided(scores, group, keys, seen)
        controls = [None if control != control else control for control in found.controls.tolist()]
        return found.decisions, {CONTROL: controls}

    @contextlib.contextmanager
    def kept(self) -> Iterator[Callable[[], None]]:
        """What writes the state when all is decided; it takes its name after whatever is written inside has its own."""
        from felicific._files import whole_file
        from felicific.exceptions import DataError

        with whole_file(self.path) as path:

            def finish() -> None:
                self.steering.remember(self.digest)
                path.write_text(self.steering.to_json(), "utf-8")
                if _content(self.path) != self.began:
                    raise DataError(
                        f"Somebody else continued {str(self.path)!r} meanwhile.",
                        "Decide again: its state is another one now. Servers side by side have a file each.",
                    )

            yield finish

    def told(self) -> dict[str, Any]:
        """What there is to say, as data."""
        steering = self.steering
        return {
            "aim": steering.aim,
            "gap": _number(steering.gap),
            "bound": steering.bound,
            "limited": steering.limited,
            "groups": [
                {
                    "group": group,
                    "people": steering.people[group],
                    "mean": _number(steering.means[group]),
                    "control": control.now,
                    "fitted": control.fitted,
                    "threshold": control.threshold,
                }
                for group, control in steering.controls.items()
            ],
            "written": str(self.path),
        }


def _number(number: float) -> float | None:
    return None if number != number else number


def _content(path: Path) -> bytes | None:
    """What stands in a file; None if it is not there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _policy(people: People) -> Policy:
    """The policy that is steered."""
    assert people.policy is not None, "its file was named"
    return people.policy


def _function(people: People) -> Any:
    """The happiness that is steered; an individual policy holds its own."""
    return None if _policy(people).sees_x else people.happiness or None


def _begun(people: People, options: ApplyOptions) -> Steering:
    """A new steering."""
    from felicific.cli.inputs import read_gap
    from felicific.cli.outputs import check_target

    check_target(options.steer, [".json"], force=False)
    reach = {} if options.reach is None else {"reach": options.reach}
    return _policy(people).steer(_function(people), read_gap(options.gap), options.pace, **reach)


def _continued(people: People, options: ApplyOptions) -> Steering:
    """The steering of a file, which was begun as the options say."""
    from felicific._policy.aims import find_aim
    from felicific.cli.documents import read_state
    from felicific.cli.inputs import read_gap
    from felicific.exceptions import DataError

    policy = _policy(people)
    assert options.steer is not None, "it is continued"
    found = read_state(options.steer, policy=policy, happiness=_function(people))
    said: dict[str, tuple[Any, Any]] = {
        "pace": (options.pace, found.pace),
        "reach": (options.reach, found.reach),
    }
    if options.gap is not None:
        j, aim = find_aim(policy, read_gap(options.gap))
        said["gap"] = (aim.words(policy.measures[j]), found.aim)
    for name, (asked, held) in said.items():
        if asked is not None and asked != held:
            told = f"{held:g}" if isinstance(held, float) else held
            raise DataError(
                f"--{name} is another one than {str(options.steer)!r} was begun with: {told}.",
                f"Leave --{name} out, or begin another file.",
            )
    return found


def digest_of_keys(people: People, key: str) -> str:
    """A digest of all keys of a file, whatever their order."""
    import pyarrow as pa

    from felicific._policy.lottery import check_keys, keys_as_text
    from felicific._tables.memory import take_column

    total, rows = 0, 0
    for batch in people.source.select([key]).relation.to_arrow_reader(65_536):
        keys = check_keys(take_column(pa.Table.from_batches([batch]), key, "--key"))
        for text in keys_as_text(keys):
            total += int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
        rows += len(keys)
    return hashlib.sha256(f"{rows}:{total % 2**256}".encode()).hexdigest()
