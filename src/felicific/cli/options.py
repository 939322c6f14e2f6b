"""What can be said on a command line: every option that commands share is defined here, once.

A command takes one object, its options: a frozen dataclass that is put together from the parts below, with the
command's own options added in the command's own module. A field's annotation holds all that ``--help`` says of it.
A line added to a part is an option of all commands that have the part::

    Scores            what the model says               all that look at people
      Scored          of one file                       the same, but for aggregates
    Compared          the groups and happiness          all but apply
      Measures        weights and a loss                the same, but for monitor
        Measured      of one file                       audit, alternatives, compare, frontier, fit, report, recalibrate
          Traced      labels, and what is asked         frontier, fit, report, recalibrate
            Fitted    a guarantee and a seed            fit, report
    Bounded           the range of happiness            audit, monitor, alternatives, fit, report
      Limited         the gap                           audit, monitor, fit, report
    Evidence          what rows count for               audit, alternatives, fit, report
    Decided           a policy, and what it sees        apply, sql
    Forced, Answer    what is written and printed       all that write, all that print

Nothing heavy is imported here: ``felicific --help`` reads this file. Annotations are objects here, not text, so that
every command has the very same ones.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, Self

import typer

#: The panels of ``--help``, in their order; what has no panel stands above them.
PEOPLE, MEASURED, ASKED, OUTPUT = "The people", "What is measured", "What is asked", "Output"
PANELS = (PEOPLE, MEASURED, ASKED, OUTPUT)

PolicyKind = Literal["auto", "score", "individual", "label", "soft-label"]
WeightKind = Literal["frequency", "sampling"]


# ---------------------------------------------------------------------------------------------------------
# Options that a command has without the part around them, or in another place of its help

Proba = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the model's probability of the last class; with more than two classes, once for "
        "each: CLASS=COLUMN.",
        rich_help_panel=PEOPLE,
    ),
]
Predicted = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the label that the model predicts, which a policy of kind label reads; with --loss squared or "
        "--decisions LOW:HIGH, of the amount that it predicts: people are then given amounts.",
        rich_help_panel=PEOPLE,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of weights: 2 is the row twice in every sum.", rich_help_panel=PEOPLE
    ),
]
WeightMeaning = Annotated[
    WeightKind | None,
    typer.Option(
        metavar="KIND",
        help="What weights are: frequency, so many people were seen, or sampling, one was seen who stands for so "
        "many. Has to be said where they are not plainly counts.",
        rich_help_panel=PEOPLE,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the baseline: the present decisions, which a happiness may name; by default what the model "
        "predicts.",
        rich_help_panel=PEOPLE,
    ),
]
Between = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Who is compared by gaps and ratios (in an audit by ratios alone): everybody of each value of this column "
        "of --group; of each combination, COLUMN,COLUMN. Given twice, each is asked for. Default: all groups.",
        rich_help_panel=ASKED,
    ),
]
MinPeople = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Groups of fewer people are measured, named and not compared; below 1, a share of all people. Default: 30 "
        "where a policy is fitted, 0 in an audit.",
        rich_help_panel=ASKED,
    ),
]
Loss = Annotated[
    str,
    typer.Option(
        metavar="LOSS",
        help="What a decision costs the decision maker: error, changes (changed decisions, and nothing else), "
        "squared, absolute or quantile:.9 of numbers, a cost matrix of labels and decisions such as "
        "'[[0,.2,1],[.6,.2,0]]', an expression or module.py:function.",
        rich_help_panel=MEASURED,
    ),
]
Listed = Annotated[
    str | None,
    typer.Option(
        "--decisions",
        metavar="LIST",
        help="What may be decided, from the worst to the best for the person; by default the classes in order: "
        "refuse,refer,approve; or numbers, low:high:step as in 0:20000:500. LOW:HIGH says amounts between these, as in "
        "0:80; with --predicted also a number of levels, 65.",
        rich_help_panel=MEASURED,
    ),
]
Gap = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GAP",
        help="Largest allowed gap, in the unit of happiness; of one of several, NAME=GAP.",
        rich_help_panel=ASKED,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the truth that the model tries to predict. Not needed to fit with --loss changes and happiness "
        "that does not look at it.",
        rich_help_panel=PEOPLE,
    ),
]
Group = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the group; given twice, the groups are the combinations.",
        rich_help_panel=PEOPLE,
    ),
]
Join = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=GROUPS",
        help="Small groups that are taken as one: 'other=Asian,Black' calls both other. Where a policy is applied, "
        "too.",
        rich_help_panel=PEOPLE,
    ),
]
HappinessText = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HAPPINESS",
        help="What a decision is worth to a person: an expression such as 'decision * loan', a function as "
        "module.py:function, or a criterion such as equalized_odds. May be given several times.",
        rich_help_panel=MEASURED,
    ),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="What to call the happiness.", rich_help_panel=MEASURED)
]
PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="Policy file that `felicific fit` wrote.")]
PolicyFunction = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HAPPINESS",
        help="module.py:function of an individual policy that was fitted with one.",
        rich_help_panel=MEASURED,
    ),
]
SignedFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="decision.json, which the page of a report saved: exit code 4 unless just this policy was signed.",
        rich_help_panel=OUTPUT,
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="A decision that there is, once for each; by default those that the file holds.",
        rich_help_panel=PEOPLE,
    ),
]
GroupName = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP",
        help="A group that there is, once for each; by default those that the files hold. Where one of them may lack a "
        "group, name them all, so that it has a place.",
        rich_help_panel=PEOPLE,
    ),
]
Decision = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the decisions that were taken.", rich_help_panel=PEOPLE),
]
WorseOff = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="At most this share of the people get less than from the baseline: .02; with 0 nobody is worse off.",
        rich_help_panel=ASKED,
    ),
]
Kind = Annotated[
    PolicyKind,
    typer.Option(
        "--policy",
        metavar="KIND",
        help="What the policy sees besides the group: score, individual, label or soft-label. auto: score for two "
        "classes and a group that is seen, else individual; label where there are no probabilities.",
        rich_help_panel=ASKED,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that identifies a person: the same person always draws the same number.",
        rich_help_panel=PEOPLE,
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        metavar="NUMBER", help="With which every interval is to hold the truth.", rich_help_panel=ASKED
    ),
]
Chart = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw it to this .svg or .png file.", rich_help_panel=OUTPUT),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.", rich_help_panel=OUTPUT)]


# ---------------------------------------------------------------------------------------------------------
# Parts


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a model says about people."""

    score: Proba = None
    predicted: Predicted = None
    group_proba: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP=COLUMN",
            help="Column of how likely a person is of a group, once for each, by a model that was fitted on other "
            "people; an individual policy that does not see the group infers it from these.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Table of a DuckDB file that holds several.", rich_help_panel=PEOPLE
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Scored(Scores):
    """A file of people, and what a model says about them."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or DuckDB file; a pattern such as 'scores-*.parquet' names many.",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Who is compared, and by what."""

    group: Group
    join: Join = None
    missing_group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to write where the group is missing in the file: a group like any other. Default: an error.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    happiness: HappinessText
    name: Name = None
    unit: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="What happiness is counted in.", rich_help_panel=MEASURED),
    ] = None
    among: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRESSION",
            help="Who is counted: an expression such as 'age < 40', or 'decision == 1'.",
            rich_help_panel=MEASURED,
        ),
    ] = None
    decisions: Listed = None


@dataclass(frozen=True, kw_only=True)
class Measures(Compared):
    """What decisions are worth, and to whom."""

    weight: Weight = None
    loss: Loss = "error"


@dataclass(frozen=True, kw_only=True)
class Measured(Measures, Scored):
    """What decisions about the people of a file are worth, and to whom."""


@dataclass(frozen=True, kw_only=True)
class PartlyLabelled:
    """What is known of people who have no label."""

    missing_labels: Annotated[
        Literal["at_random", "unknown"] | None,
        typer.Option(
            metavar="WHY",
            help="Some labels are missing: at_random, given score and group (or by --label-proba), or unknown, so that "
            "only the worst case can be told. Default: a missing label is an error.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    label_proba: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the known chance of having a label, as `felicific apply --with-proba` has it; of several "
            "they are added up.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    max_odds_ratio: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="How many fold reasons outside the file may have changed the odds of having a label; 1: nothing is "
            "hidden.",
            rich_help_panel=ASKED,
        ),
    ] = 1.0


@dataclass(frozen=True, kw_only=True)
class Traced(Measured, PartlyLabelled):
    """What a policy is fitted to, and what it must keep to at every gap."""

    label: Label = None
    baseline: Baseline = None
    floor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help="No group's mean below this: a number or 'baseline'; of one of several, NAME=LEVEL.",
            rich_help_panel=ASKED,
        ),
    ] = None
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help="The mean over all people at most this; of one of several, NAME=LEVEL.",
            rich_help_panel=ASKED,
        ),
    ] = None
    ratio: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATIO",
            help="No group's mean below this share of the highest, 0.8 for the four-fifths rule; of one of several, "
            "NAME=RATIO.",
            rich_help_panel=ASKED,
        ),
    ] = None
    between: Between = None
    min_people: MinPeople = None
    worse_off: WorseOff = None
    explore: Annotated[
        float | None,
        typer.Option(
            metavar="CHANCE",
            help="Everybody keeps at least this chance of the best decision, by lottery: .02. With it labels are "
            "seen of all kinds of people; `felicific apply --with-proba` writes the chances down.",
            rich_help_panel=ASKED,
        ),
    ] = None
    kind: Kind = "auto"
    blind: Annotated[
        bool,
        typer.Option(
            "--without-group",
            help="The group is not known where people are decided on: fit a policy that decides without.",
            rich_help_panel=ASKED,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """What is known of happiness."""

    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Range that happiness is known to lie in, for guarantees that assume nothing else.",
            rich_help_panel=MEASURED,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Limited(Bounded):
    """How large a gap may be."""

    gap: Gap = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What rows count for, where something is said with confidence."""

    weight_kind: WeightMeaning = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of what rows have in common that are not independent: a person with several rows, a branch.",
            rich_help_panel=PEOPLE,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Fitted(Traced, Evidence, Limited):
    """One policy, and how sure one wants to be of it."""

    change_cost: Annotated[
        str,
        typer.Option(
            metavar="COST",
            help="What a changed decision costs beside the loss, in its unit; 0 makes changes free. auto: for the "
            "score of two classes and the error rate 0.1, growing with the distance from the border; else 0.",
            rich_help_panel=ASKED,
        ),
    ] = "auto"
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Return only a policy whose gap is shown, with this confidence, to be at most --gap for people "
            "like these: 60 % of every group are held out to test it on.",
            rich_help_panel=ASKED,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Makes the lottery reproducible; by default its salt is fresh.",
            rich_help_panel=ASKED,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A policy, and what it sees of people besides what the model says."""

    policy: PolicyFile
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the group, unless the policy decides without.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    key: Key = None


@dataclass(frozen=True, kw_only=True)
class Decided(Seen):
    """A policy that decides, and how its decisions are written."""

    column: Annotated[
        str,
        typer.Option(metavar="NAME", help="What to call the column of decisions.", rich_help_panel=OUTPUT),
    ] = "decision"
    with_proba: Annotated[
        bool,
        typer.Option(
            "--with-proba",
            help="Also write the chance that everybody had of the best decision, as proba; of more than two "
            "classes that of each, as proba_CLASS.",
            rich_help_panel=OUTPUT,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Forced:
    """What is written."""

    force: Annotated[
        bool, typer.Option("--force", help="Replace existing files.", rich_help_panel=OUTPUT)
    ] = False


@dataclass(frozen=True, kw_only=True)
class Answer(Forced):
    """What is written and printed."""

    as_json: Json = False


# ---------------------------------------------------------------------------------------------------------
# What the options say, whatever the command


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What any command can say about people and happiness; None where a command has no such option.

    Attributes
    ----------
    file, table : str
        Where the people are.
    join : list of str
        Groups that are taken as one.
    group, label, score, group_proba, predicted, baseline, decision, weight, cluster, key : str or list of str
        Columns.
    weight_kind : str
        What weights are.
    missing_group : str
        What is read where a group is missing.
    missing_labels, label_proba, max_odds_ratio : str, list of str, float
        What is known of missing labels.
    classes, decisions : str or list of str
        Classes and decisions, as they are typed.
    happiness, name, unit, among, bounds, loss : str or list of str
        What is measured, as it is typed.
    policy : Path
        The policy that decides.
    """

    file: str
    table: str | None = None
    group: list[str] | None = None
    join: list[str] | None = None
    label: str | None = None
    score: list[str] | None = None
    group_proba: list[str] | None = None
    predicted: str | None = None
    baseline: str | None = None
    decision: str | None = None
    weight: str | None = None
    cluster: str | None = None
    weight_kind: WeightKind | None = None
    missing_group: str | None = None
    missing_labels: str | None = None
    label_proba: list[str] | None = None
    max_odds_ratio: float = 1.0
    key: str | None = None
    classes: list[str] | None = None
    decisions: str | None = None
    happiness: list[str] | None = None
    name: str | None = None
    unit: str | None = None
    among: str | None = None
    bounds: str | None = None
    loss: str = "error"
    policy: Path | None = None

    @classmethod
    def of(cls, options: Scores | Self, file: str | None = None) -> Self:
        """The roles among the options of a command; the people are in its file, or in another one."""
        names = [field.name for field in fields(cls)]
        said = {name: getattr(options, name) for name in names if hasattr(options, name)}
        return cls(**said | ({} if file is None else {"file": file}))

    def columns(self) -> dict[str, str | list[str] | None]:
        """The columns that options name outright, by option."""
        named = (
            "group",
            "label",
            "predicted",
            "baseline",
            "decision",
            "weight",
            "cluster",
            "key",
            "label_proba",
        )
        return {option: getattr(self, option) for option in named}


def decides_amounts(options: object) -> bool:
    """Whether ``--predicted`` names amounts."""
    from felicific._problem.decisions import predicts_amounts

    score, predicted, loss, kind = (
        getattr(options, name, None) for name in ("score", "predicted", "loss", "kind")
    )
    ends = tuple((getattr(options, "decisions", None) or "").split(":"))
    return predicts_amounts(score, predicted, loss, ends, kind)
