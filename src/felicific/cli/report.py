"""``felicific report``: one page for the person who must choose the trade-off and sign it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from felicific.cli.options import (
    Fitted,
    Forced,
    decides_amounts,
    measure_option,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific import FairClassifier, Policy
    from felicific._policy.signed import Signed
    from felicific._report.document import Report
    from felicific._typing import Table

#: What is to be done where everybody can know the draws of a policy: one that is proposed, and one that was signed.
LEAVE_OUT = "Leave --seed out."
AS_SIGNED = (
    "It is saved as it was signed. Where that matters, sign a page that was made without --seed, and keep the policy "
    "that --policy-out writes beside it."
)


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Fitted, Forced):
    """What ``felicific report`` is told."""

    test: Annotated[
        str | None,
        people_option(
            "FILE",
            "Other people to report on; by default a random half of FILE, which the policy is then not fitted on.",
        ),
    ] = None
    also: Annotated[
        list[str] | None,
        measure_option(
            "NAME=EXPRESSION",
            'Another measure of the policy, "approved=decision == 1": does its gap grow? Repeat for several.',
        ),
    ] = None
    labels: Annotated[
        Literal["all", "selected"] | None,
        people_option(
            "WHOSE",
            "Whether everybody's label is known (all), or only that of people who were selected (selected).",
        ),
    ] = None
    decision_name: Annotated[
        list[str] | None,
        output_option(
            "DECISION=NAME", "What a decision is called on the page: 0=declined. Repeat for every decision."
        ),
    ] = None
    period: Annotated[str | None, output_option("TEXT", "Of when the data are, as the page says it.")] = None
    title: Annotated[str | None, output_option("TEXT", "Title of the page.")] = None
    out: Annotated[Path, output_option("FILE", "The page, .html, or its data, .json.")] = Path("report.html")
    policy_out: Annotated[
        Path | None,
        output_option(
            "FILE",
            "Also write the policy that the page proposes, .json; with --signed the one that was signed, and no "
            "page.",
        ),
    ] = None
    signed: Annotated[
        Path | None,
        output_option(
            "FILE",
            "decision.json, which the page saved: --policy-out then gets the policy at the signed position, if "
            "the same command (with its --seed) gives just that policy; else exit code 4.",
        ),
    ] = None


class _Others(NamedTuple):
    """People that a policy was not fitted on, and what their rows count for."""

    rows: Table
    known: dict[str, Any]


def report(options: ReportOptions) -> None:
    """Write one HTML page to sign: the verdict, who gains and who loses, the whole trade-off, what is promised.

    With --predicted and --loss squared it is a page of amounts: report p.csv --predicted f --loss squared --label hours
    --group sex --happiness distributional_parity --gap .05

    Example: felicific report scores.csv --score score --label repaid --group sex --happiness "decision * loan"
    --gap 500 --out report.html --policy-out policy.json
    """
    from felicific._files import write_together
    from felicific.cli.outputs import working

    signed = _checked(options)
    if decides_amounts(options):
        _report_amounts(options)
        return
    with working(f"Writing a report on {options.file} ..."):
        fair, others = _fitted(options)
        written: dict[Path, str] = {}
        if options.policy_out is not None:
            policy = fair.policy_ if signed is None else _signed_policy(fair, signed)
            policy.warn_of_lottery(LEAVE_OUT if signed is None else AS_SIGNED)
            written[options.policy_out] = policy.to_json()
        if signed is None:
            page = _page(fair, others, options)
            written[options.out] = _text(page, options)
        write_together(written)
    if signed is None:
        print(page)
    for path in written:
        print(f"Written to {path}.")


def _text(page: Report, options: ReportOptions) -> str:
    """What the file holds."""
    return page.to_json() if options.out.suffix.lower() == ".json" else page.to_html()


def _report_amounts(options: ReportOptions) -> None:
    """Write the page of amounts, and the policy that it proposes."""
    from felicific._files import write_together
    from felicific.cli.amounts_report import report_of_amounts
    from felicific.cli.outputs import working

    with working(f"Writing a report on {options.file} ..."):
        page, policy = report_of_amounts(options)
        written = {} if options.policy_out is None else {options.policy_out: policy.to_json()}
        written[options.out] = _text(page, options)
        write_together(written)
    print(page)
    for path in written:
        print(f"Written to {path}.")


def _checked(options: ReportOptions) -> Signed | None:
    """The decision that was signed, if there is one; what cannot be done is said before any work is done."""
    from felicific._policy.signed import Signed
    from felicific.cli.outputs import check_target
    from felicific.exceptions import DataError

    check_target(options.policy_out, [".json"], force=options.force)
    if options.signed is None:
        check_target(options.out, [".html", ".json"], force=options.force)
    elif options.policy_out is None:
        raise DataError(
            "--signed writes the policy that was signed, and no page.", "Say where: --policy-out FILE."
        )
    if options.score is None and options.predicted is None:
        raise DataError(
            "A report needs what a model says about people.",
            "Name the column of scores with --score, or of predicted numbers with --predicted.",
        )
    if options.label is None:
        raise DataError(
            "A report measures the loss by labels, and there are none.", "Name them with --label."
        )
    before, equals, after = (options.name or "").partition("=")
    if equals and before.strip() and after.strip():
        raise DataError(
            f"--name is {options.name!r}, and it names the happiness.",
            f"Name decisions with --decision-name {options.name}.",
        )
    if options.policy_out is not None and options.policy_out == options.out:
        raise DataError("--out and --policy-out name the same file.", "Name two.")
    if options.signed is None:
        return None
    signed = Signed.read(options.signed)
    signed.check_signer()
    return signed


def _fitted(options: ReportOptions) -> tuple[FairClassifier, _Others]:
    """A classifier fitted on the people of a file, and the others that the page is about."""
    from felicific.cli.inputs import read_task
    from felicific.cli.model import classifier, halves
    from felicific.cli.people import People

    people = People.find(options)
    rows = people.source.read(pandas=True)
    if options.test is None:
        rows, others = halves(rows, people.group, options.seed, people.cluster)
    else:
        others = People.find(replace(options, file=options.test)).source.read(pandas=True)
    sure = {"confidence": options.confidence} | people.seen(options)
    fair = classifier(people, rows, options.kind, **sure, **read_task(options, people.happiness))
    return fair, _Others(others, people.evidence(others) | {"weight_kind": people.weight_kind})


def _signed_policy(fair: FairClassifier, signed: Signed) -> Policy:
    """The policy that was signed: the one that is proposed, or the one at the gap that was signed."""
    from felicific.exceptions import FelicificError, SignedError

    if fair.policy_.sha256 == signed.policy_sha256:
        return fair.policy_
    why = ""
    try:
        policy = fair.at(gap=dict(signed.gaps)).policy_
        if policy.sha256 == signed.policy_sha256:
            return policy
    except FelicificError as error:
        why = f" ({error.problem.rstrip('.')})"
    raise SignedError(
        f"The policy that was signed in {signed.path!r} does not come out of this command{why}.",
        "Use the file, the options and the felicific by which the page was made, --seed among them: without it the "
        "draws, and the half that is fitted on, are drawn afresh; then sign the page whose --policy-out you keep.",
    )


def _page(fair: FairClassifier, others: _Others, options: ReportOptions) -> Report:
    from felicific._tables.memory import take_column
    from felicific.cli.outputs import command_line

    labels = take_column(others.rows, str(options.label), "--label")
    return fair.report(
        others.rows,
        labels,
        baseline=options.baseline,
        also=dict(_named(options.also, "--also")) or None,
        names=_names(options.decision_name, fair.classes_.tolist()),
        labels=options.labels,
        period=options.period,
        title=options.title,
        command=command_line(),
        **others.known,
    )


def _named(given: list[str] | None, option: str) -> list[tuple[str, str]]:
    """What stands before the first = of each, and what behind it."""
    from felicific.exceptions import DataError

    found = []
    for text in given or ():
        name, _, value = text.partition("=")
        if not name.strip() or not value.strip():
            raise DataError(f"{option} is {text!r}.", f"Write it as {option} NAME=VALUE.")
        found.append((name.strip(), value.strip()))
    return found


def _names(given: list[str] | None, decisions: list[Any]) -> dict[Any, str] | None:
    """What decisions are called; they are compared as text, as a file holds them."""
    if not given:
        return None
    known = {str(decision): decision for decision in decisions}
    return {known.get(text, text): name for text, name in _named(given, "--decision-name")}
