"""``felicific show``: what a policy file says, to read before it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from felicific.cli.options import Json, Loss, PolicyFile, PolicyFunction, SignedFile

if TYPE_CHECKING:
    from felicific import Policy
    from felicific._policy.numeric import AmountPolicy
    from felicific._policy.signed import Signed


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """What ``felicific show`` is told."""

    policy: PolicyFile
    happiness: PolicyFunction = None
    loss: Loss = "error"
    signed: SignedFile = None
    as_json: Json = False


def show(options: ShowOptions) -> None:
    """Say what a policy file holds: whom it decides on how, what it was fitted on, its checksum.

    The salt of its lottery is never shown: who knows it knows everybody's draw.

    Example: felicific show policy.json
    """
    from felicific._policy.signed import Signed
    from felicific.cli.amounts import holds_amounts
    from felicific.cli.documents import read_policy
    from felicific.cli.inputs import read_function
    from felicific.cli.outputs import print_json, printable

    if holds_amounts(options.policy):
        _show_amounts(options)
        return
    given = [read_function(text, "happiness") for text in options.happiness or ()]
    functions = {"happiness": given if len(given) > 1 else given[0]} if given else {}
    policy = read_policy(options.policy, **functions, loss=read_function(options.loss, "loss"))
    signed = None if options.signed is None else Signed.read(options.signed)
    if signed is not None:
        signed.check(policy)
    if options.as_json:
        print_json(_content(policy, signed))
        return
    print("\n".join(printable(line) for line in _lines(policy, signed)))


def _show_amounts(options: ShowOptions) -> None:
    """Say what a policy of amounts is."""
    from felicific._policy.numeric import AmountPolicy
    from felicific.cli.amounts import refuse_classes, summary
    from felicific.cli.documents import read_any_policy
    from felicific.cli.outputs import print_json, printable

    refuse_classes(options)
    policy = read_any_policy(options.policy)
    assert isinstance(policy, AmountPolicy), "its file says so"
    if options.as_json:
        print_json(
            summary(policy)
            | {
                "sees_group": policy.sees_group,
                "randomized": policy.is_randomized,
                "lots_from_a_seed": _seeded(policy),
            }
        )
        return
    rules = policy.rules(4)
    others = [sentence for sentence in policy.sentences(4) if sentence not in rules]
    parts = {
        "What it gives": [*rules, _randomized(policy)],
        "What it was fitted on": [f"Groups: {', '.join(map(repr, policy.groups))}."],
        "What was asked, and what it does to these people": [
            *(f"Asked for: a gap of {name!r} of at most {width:g}." for name, width in policy.asked.items()),
            *others,
            *policy.impact(),
        ],
        "Which policy this is": [f"Kind {policy.kind}.", f"SHA-256: {policy.sha256}."],
    }
    lines = [line for title, texts in parts.items() for line in ("", title, *(f"  {text}" for text in texts))]
    print("\n".join(printable(line) for line in lines[1:]))


def _people(policy: Policy) -> dict[Any, float] | None:
    """How many people of every group it is for; None where the file does not say."""
    evidence = policy.basis.evidence
    return None if evidence is None else dict(zip(policy.groups, evidence.size.tolist(), strict=True))


def _content(policy: Policy, signed: Signed | None) -> dict[str, Any]:
    people, basis = _people(policy), policy.basis
    return {
        "kind": policy.kind,
        "decisions": policy.decisions.tolist(),
        "best": policy.decisions.tolist()[policy.best],
        "sentences": policy.sentences(),
        "sees_group": policy.sees_group,
        "randomized": policy.is_randomized,
        "lots_from_a_seed": _seeded(policy),
        "groups": [{"group": z, "people": None if people is None else people[z]} for z in policy.groups],
        "group_columns": list(policy.attributes),
        "recalibrated": policy.expected,
        "loss": basis.loss_name,
        "change_cost": policy.change_cost,
        "asked": {"gaps": basis.allowed, "others": [asked.words for asked in basis.requirements]},
        "units": {measure.name: measure.unit for measure in policy.measures},
        "sha256": policy.sha256,
        "signed": None if signed is None else signed.to_dict(),
    }


def _lines(policy: Policy, signed: Signed | None) -> list[str]:
    """All of it, for reading."""
    rules = policy.rules(4)
    achieved = [sentence for sentence in policy.sentences(4) if sentence not in rules]
    parts = {
        "What it decides": [*rules, _randomized(policy)],
        "What it was fitted on": _fitted_on(policy),
        "What was asked, and what it does to these people": [
            *_asked(policy),
            *achieved,
            *policy.impact(),
        ],
        "Which policy this is": _identity(policy, signed),
    }
    return [line for title, lines in parts.items() for line in ("", title, *(f"  {text}" for text in lines))][
        1:
    ]


def _seeded(policy: Policy | AmountPolicy) -> bool:
    from felicific._policy.lottery import SEEDED

    return policy.salt.startswith(SEEDED)


def _randomized(policy: Policy | AmountPolicy) -> str:
    sees = "It looks at the group." if policy.sees_group else "It decides without the group."
    if not policy.is_randomized:
        return f"{sees} It does not randomize."
    known = (
        " Its salt comes from a seed: anybody who tries some seeds can compute them."
        if _seeded(policy)
        else ""
    )
    return f"{sees} It randomizes; the salt is in the file and is not shown.{known}"


def _fitted_on(policy: Policy) -> list[str]:
    """Who they are: groups, and how many."""
    people = _people(policy)
    by = "".join(f" by {column}" for column in [" and ".join(map(str, policy.attributes))] if column)
    names = ", ".join(
        f"{group!r}" + ("" if people is None else f" ({people[group]:,.6g} people)")
        for group in policy.groups
    )
    found = [f"Groups{by}: {names}."]
    if policy.expected:
        found.append(
            "It was recalibrated: these are people without labels, and its numbers are expectations."
        )
    return found


def _asked(policy: Policy) -> list[str]:
    names = {measure.name: measure for measure in policy.measures}
    gaps = [
        f"Asked for: a gap of {name!r} of at most {names[name].quantity(width)}."
        for name, width in policy.basis.allowed.items()
        if name in names
    ]
    # What compares people is said with what it comes to.
    others = [asked for asked in policy.basis.requirements if asked.statistic == "mean"]
    return gaps + [f"Asked for: {asked.words}." for asked in others if not policy.measures[asked.j].aside]


def _identity(policy: Policy, signed: Signed | None) -> list[str]:
    who = (
        "Whether it was signed, says the decision.json of its page: --signed FILE."
        if signed is None
        else signed.words
    )
    return [
        f"Kind {policy.kind}; decisions {', '.join(repr(one) for one in policy.decisions.tolist())}.",
        f"SHA-256: {policy.sha256}.",
        who,
        "A policy file keeps no certificate: what was shown stands in the output of `felicific fit`, or on its page.",
    ]
