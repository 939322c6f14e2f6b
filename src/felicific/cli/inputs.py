"""What the texts of a command line mean: happiness, loss, gaps, classes and probabilities."""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from felicific._policy.apply import refuse_several
from felicific._problem.criteria import CRITERIA
from felicific._problem.exploration import Exploration
from felicific._problem.expressions import Expression, is_name
from felicific._problem.happiness import Happiness
from felicific._problem.missing_labels import MissingLabels
from felicific._problem.requirements import Budget, Floor, Gap, Ratio
from felicific._problem.worse_off import WorseOff
from felicific.cli.files import Source, joined_name
from felicific.cli.options import Fitted, RoleOptions, Traced
from felicific.exceptions import DataError, HappinessError

#: A function in a file: everything before the last colon is the file.
_IN_A_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")


def read_function(text: str, option: str) -> Any:
    """Return a criterion or an expression as its text; what ``module.py:name`` names, as the object itself.

    A matrix is returned as a list of its rows.
    """
    if text in CRITERIA:
        return text
    if text.lstrip().startswith("[["):
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            raise DataError(
                f"--{option} {text} is no matrix.", "Write rows of numbers: '[[0,.2,1],[.6,.2,0]]'."
            ) from None
    found = _IN_A_FILE.fullmatch(text)
    return text if found is None else _load(found["path"], found["name"], option)


def _load(path: str, name: str, option: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    if not Path(path).is_file():
        raise DataError(f"--{option}: there is no file {path!r}.", "Name it as module.py:function.")
    spec = spec_from_file_location(Path(path).stem, path)
    assert spec is not None, "a file that ends in .py can be loaded"
    assert spec.loader is not None, "a file that ends in .py can be loaded"
    module = module_from_spec(spec)
    sys.path.insert(0, str(Path(path).parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise HappinessError(
            f"--{option}: {path!r} raised {type(error).__name__}: {error}.", "Repair it; does Python run it?"
        ) from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        raise HappinessError(f"--{option}: {path!r} has no {name!r}.", "Name a function that it defines.")
    return getattr(module, name)


def read_happiness(options: RoleOptions) -> Any:
    """Everything that ``--happiness``, ``--name``, ``--unit``, ``--among`` and ``--bounds`` say; () if nothing."""
    if not options.happiness:
        return ()
    found = [read_function(text, "happiness") for text in options.happiness]
    among, bounds = options.among, options.bounds
    details: dict[str, Any] = {
        "name": options.name,
        "unit": options.unit,
        "among": among and read_function(among, "among"),
        "bounds": bounds and tuple(_number(part, "bounds") for part in bounds.split(",")),
    }
    details = {what: value for what, value in details.items() if value is not None}
    if not details:
        return found if len(found) > 1 else found[0]
    if len(found) > 1 or found[0] in CRITERIA:
        raise HappinessError(
            f"--{next(iter(details))} belongs to one happiness, and there are several measures.",
            "Write them as Happiness(...) in a file, and name it: --happiness module.py:measures.",
        )
    if isinstance(found[0], Happiness):
        return replace(found[0], **details)
    return Happiness(found[0], **details)


def needed_columns(*objects: Any) -> set[str] | None:
    """Columns that expressions look at; None when a Python function is among them, which may look at any."""
    names: set[str] = set()
    for item in objects:
        if isinstance(item, dict | list | tuple):
            more = needed_columns(*(item.values() if isinstance(item, dict) else item))
        elif isinstance(item, Happiness):
            more = needed_columns(item.function, item.among)
        elif isinstance(item, str):
            more = set() if is_name(item) else needed_columns(Expression(item.strip()))
        elif isinstance(item, Expression):
            more = {str(name) for name in item.columns}
        else:
            more = (
                None if callable(item) and type(item).__module__ != "felicific._problem.happiness" else set()
            )
        if more is None:
            return None
        names |= more
    return names


def read_missing_labels(roles: RoleOptions) -> MissingLabels | None:
    """What is known of missing labels; --label-proba and --max-odds-ratio say that some may be missing, too."""
    said = roles.missing_labels
    if said is None and not roles.label_proba and roles.max_odds_ratio == 1.0:
        return None
    if said == "unknown" and (roles.label_proba or roles.max_odds_ratio != 1.0):
        raise DataError(
            "--missing-labels unknown assumes nothing, and --label-proba or --max-odds-ratio does.",
            "Leave one of them out.",
        )
    max_odds_ratio = math.inf if said == "unknown" else roles.max_odds_ratio
    return MissingLabels(label_proba=roles.label_proba or None, max_odds_ratio=max_odds_ratio)


def read_gap(texts: Sequence[str] | None) -> Any:
    """A number for all measures, or one by name."""
    return _by_name(texts, "gap", _number)


def read_asked(
    options: Traced,
    happiness: Any,
    gap: Sequence[str] | None,
    attributes: Sequence[str] = (),
) -> tuple[Any, list[Any]]:
    """The gap as the library takes it, and every constraint: who is compared belongs to gaps and ratios alike.

    Along a frontier, which takes no number, those who are compared have one that moves. The columns of the group are
    those of the options, or the ``attributes`` that sums remember.
    """
    group = options.group or attributes
    joined = read_join(options.join, group)
    whom: list[Any] = [read_between(text, group, joined) for text in options.between or ()] or [None]
    few = {} if options.min_people is None else {"min_people": options.min_people}
    compared: list[dict[str, Any]] = [
        few | ({} if between is None else {"between": between}) for between in whom
    ]
    found = read_constraints(options, happiness)
    ratios = _named(options.ratio, "ratio", happiness, _number)
    found += [Ratio(name, level, **said) for name, level in ratios.items() for said in compared]
    allowed = read_gap(gap)
    if compared == [{}] or (allowed is None and ratios):
        return allowed, found
    gaps = (
        dict.fromkeys(_every_name(happiness), 0.0)
        if allowed is None
        else _named(gap, "gap", happiness, _number)
    )
    return None, [*found, *(Gap(name, width, **said) for name, width in gaps.items() for said in compared)]


def read_task(options: Fitted, happiness: Any, attributes: Sequence[str] = ()) -> dict[str, Any]:
    """What is asked of a policy."""
    if options.gap is None and not options.ratio and (options.between or options.min_people):
        raise DataError(
            "--between and --min-people say who is compared, and not how far apart they may be.",
            "Add --gap or --ratio.",
        )
    gap, constraints = read_asked(options, happiness, options.gap, attributes)
    return {
        "gap": gap,
        "constraints": constraints,
        "change_cost": read_change_cost(options.change_cost),
        "random_state": options.seed,
    }


def read_between(text: str, group: Sequence[str], joined: Collection[str] = ()) -> str | list[str]:
    """A column of the group, or several; of those that were joined, what they are called then."""
    parts = [text] if text in group else [part.strip() for part in text.split(",")]
    parts = [joined_name(part) if part in joined else part for part in parts]
    return parts if len(parts) > 1 else parts[0]


def read_join(texts: Sequence[str] | None, group: Sequence[str]) -> dict[str, dict[str, str]]:
    """What groups are called that are taken as one, by column and value."""
    found: dict[str, dict[str, str]] = {}
    for text in texts or ():
        column = next((name for name in group if text.startswith(f"{name}:")), None)
        if column is None and len(group) > 1:
            raise DataError(
                f"--join {text} does not say in which column of --group.",
                "Write --join COLUMN:NAME=GROUP,GROUP.",
            )
        name, sign, values = (text if column is None else text[len(column) + 1 :]).partition("=")
        listed = [value.strip() for value in values.split(",")]
        if not group or not sign or not name.strip() or not all(listed):
            raise DataError(f"--join is {text!r}.", "Write --join NAME=GROUP,GROUP.")
        names = found.setdefault(group[0] if column is None else column, {})
        for value in listed:
            if names.setdefault(value, name.strip()) != name.strip():
                raise DataError(
                    f"--join calls {value!r} both {names[value]!r} and {name.strip()!r}.", "Choose one name."
                )
    return found


def _every_name(happiness: Any) -> list[str]:
    """Names of all that is measured: measures, or criteria."""
    parts = happiness if isinstance(happiness, list | tuple) else [happiness]
    return [_only_name(part, "between") for part in parts]


def _named(
    texts: Sequence[str] | None, option: str, happiness: Any, convert: Callable[[str, str], Any]
) -> dict[str, Any]:
    """Numbers by name; one without a name is that of all that is measured."""
    found = _by_name(texts, option, convert)
    if found is None or isinstance(found, dict):
        return found or {}
    return dict.fromkeys(_every_name(happiness), found)


def read_change_cost(text: str) -> Any:
    """What a changed decision costs: auto, or a number."""
    from felicific._program.change_cost import check_change_cost

    return check_change_cost(text if text == "auto" else _number(text, "change-cost"))


def read_constraints(options: Traced, happiness: Any) -> list[Any]:
    """Floors, budgets and WorseOff, without a name of the only happiness; and the chance of the best decision."""

    def level(text: str, option: str) -> Any:
        return "baseline" if text == "baseline" and option == "floor" else _number(text, option)

    found: list[Any] = []
    for texts, option, make in (
        (options.floor, "floor", lambda what, limit: Floor(what, at_least=limit)),
        (options.budget, "budget", lambda what, limit: Budget(what, at_most=limit)),
    ):
        limits = _by_name(texts, option, level)
        if limits is not None and not isinstance(limits, dict):
            limits = {_only_name(happiness, option): limits}
        found += [make(what, limit) for what, limit in (limits or {}).items()]
    found += [] if options.worse_off is None else [WorseOff(options.worse_off)]
    return found if options.explore is None else [*found, Exploration(options.explore)]


def _only_name(happiness: Any, option: str) -> str:
    if isinstance(happiness, str) and happiness in CRITERIA:
        return happiness
    if isinstance(happiness, dict | list | tuple):
        raise DataError(f"--{option} does not say of which happiness.", f"Write --{option} NAME=LEVEL.")
    return str((happiness if isinstance(happiness, Happiness) else Happiness(happiness)).name)


def _by_name(texts: Sequence[str] | None, option: str, convert: Callable[[str, str], Any]) -> Any:
    if not texts:
        return None
    pairs = [text.rpartition("=") for text in texts]
    if len(pairs) == 1 and not pairs[0][1]:
        return convert(texts[0], option)
    if not all(sign for _, sign, _ in pairs):
        raise DataError(f"--{option} is given {len(texts)} times.", f"Write --{option} NAME=NUMBER.")
    return {name: convert(number, option) for name, _, number in pairs}


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--{option} is {text!r}, which is no number.", f"Write --{option} NUMBER.") from None


#: Decisions that low:high:step may make.
MOST_LEVELS = 10_000


def read_decisions(
    text: str | None, classes: Sequence[Any] = (), taken: Sequence[Any] = ()
) -> list[Any] | None:
    """The decisions that are listed, from the worst to the best, of the type of those that were taken; None if none is.

    Else they are classes, or numbers if all are.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    known = {str(value): value for value in (*classes, *taken)}
    known |= {str(one): one for one in (False, True) if any(isinstance(value, bool) for value in taken)}
    known |= {part: part for part in parts if any(isinstance(value, str) for value in taken)}
    if {*known} >= {*parts}:
        return [known[part] for part in parts]
    if len(parts) == 1 and text.count(":") == 2:
        return _levels(text)
    for kind in (int, float):
        with suppress(ValueError):
            return [kind(part) for part in parts]
    return [*parts]


def read_range(text: str | None) -> tuple[float, float] | None:
    """Between which amounts lie, LOW:HIGH; None where nothing or a list says what may be decided."""
    if text is None or "," in text or text.count(":") != 1:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise DataError(
            f"--decisions {text} is no range.", "Write LOW:HIGH, two numbers, as in 0:80."
        ) from None
    return low, high


def _levels(text: str) -> list[Any]:
    """Numbers from the first to the last, as far apart as low:high:step says."""
    try:
        low, high, step = (float(part) for part in text.split(":"))
        count = (high - low) / step
    except (ValueError, ZeroDivisionError):
        count = math.nan
    if not (math.isfinite(count) and 1 <= round(count) < MOST_LEVELS and abs(count - round(count)) <= 1e-9):
        raise DataError(
            f"--decisions {text} is no range.",
            f"Write low:high:step with at most {MOST_LEVELS:,} whole steps: 0:20000:500, or 8:4:-2.",
        )
    levels = [low + i * step for i in range(round(count) + 1)]
    whole = all(part.strip().lstrip("-").isdecimal() for part in text.split(":"))
    return [int(level) for level in levels] if whole else levels


def read_class(text: str, classes: Sequence[Any], option: str) -> Any:
    """The class that is written like this."""
    found = [value for value in classes if str(value) == text]
    if not found:
        raise DataError(
            f"--{option}: there is no class {text!r}.", f"The classes are {', '.join(map(str, classes))}."
        )
    return found[0]


def read_classes(texts: Sequence[str], held: Sequence[Any], option: str = "class") -> list[Any]:
    """The classes, or groups, that are written like this, of the type of those that the file holds."""
    missing = [value for value in held if str(value) not in texts]
    if missing:
        raise DataError(
            f"--{option} does not name {missing[0]!s}, which is there.", f"Add --{option} {missing[0]!s}."
        )
    found = {str(value): value for value in held}
    kind = type(held[0]) if held else str
    for text in dict.fromkeys(texts):
        if text in found:
            continue
        try:
            found[text] = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
        except (ArithmeticError, KeyError, TypeError, ValueError):
            raise DataError(
                f"--{option} {text} is not like {held[0]!s}, which is there.", "Write them alike."
            ) from None
    return list(found.values())


def read_group_proba(
    source: Source, texts: Sequence[str] | None, groups: Sequence[Any]
) -> dict[Any, str] | None:
    """Which column says how likely which group is."""
    if not texts:
        return None
    known = {str(group): group for group in groups}
    found = {}
    for text in texts:
        name, sign, column = text.rpartition("=")
        if not sign:
            raise DataError(
                f"--group-proba {text} does not say of which group.", "Write --group-proba GROUP=COLUMN."
            )
        source.check(**{"group-proba": column})
        source.check_number(column, "group-proba")
        if name not in known:
            raise DataError(
                f"--group-proba: there is no group {name!r}.", f"The groups are {', '.join(known)}."
            )
        found[known[name]] = column
    missing = [name for name, group in known.items() if group not in found]
    if missing:
        raise DataError(
            f"There is no column for the group {missing[0]}.", f"Add --group-proba {missing[0]}=COLUMN."
        )
    return found


def read_proba(
    source: Source,
    texts: Sequence[str] | None,
    classes: Sequence[Any],
    *,
    of_values: bool = False,
) -> tuple[Source, dict[Any, str] | None]:
    """Which column holds the probability of which class; a single column is that of the last one.

    Of a policy ``of_values`` it holds the decision function, which is that of the last class.
    """
    if not texts:
        return source, None
    if of_values:
        refuse_several(texts)
        source.check(score=texts)
        source.check_number(texts[0], "score")
        return source, {classes[-1]: texts[0]}
    if len(texts) == 1 and (texts[0] in source.columns or "=" not in texts[0]):
        source.check(score=texts)
        source.check_number(texts[0], "score")
        if len(classes) != 2:
            raise DataError(
                f"There are {len(classes)} classes ({', '.join(map(str, classes[:10]))}) and one column of "
                "probabilities.",
                "Name one for each: --score CLASS=COLUMN.",
            )
        source, complement = source.complement(texts[0])
        return source, {classes[0]: complement, classes[1]: texts[0]}
    found = proba_by_class(texts, classes)
    for column in found.values():
        source.check(score=column)
        source.check_number(column, "score")
    return source, found


def proba_by_class(texts: Sequence[str], classes: Sequence[Any]) -> dict[Any, str]:
    """The column of every class, from CLASS=COLUMN of each."""
    found = {}
    for text in texts:
        name, sign, column = text.partition("=")
        if not sign:
            raise DataError(f"--score {text} does not say of which class.", "Write --score CLASS=COLUMN.")
        found[read_class(name, classes, "score")] = column
    missing = [value for value in classes if value not in found]
    if missing:
        raise DataError(
            f"There is no column for the class {missing[0]!s}.", f"Add --score {missing[0]!s}=COLUMN."
        )
    return {value: found[value] for value in classes}
