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
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import typer

#: The panels of ``--help``, in their order; what has no panel stands above them.
PEOPLE, MEASURED, ASKED, OUTPUT = "The people", "What is measured", "What is asked", "Output"
PANELS = (PEOPLE, MEASURED, ASKED, OUTPUT)


def option(panel: str | None, metavar: str | None, text: str, *names: str, **more: Any) -> Any:
    """An option as ``--help`` tells it: its panel, what stands for its value (None: it is a flag), and its text."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, **more)


people_option, measure_option = partial(option, PEOPLE), partial(option, MEASURED)
asked_option, output_option = partial(option, ASKED), partial(option, OUTPUT)
plain_option = partial(option, None)


#: What is raised when a command was typed wrongly: click's class, which some versions of typer carry along themselves.
USAGE: Any = typer.BadParameter.__base__

PolicyKind = Literal["auto", "score", "individual", "label", "soft-label"]
WeightKind = Literal["frequency", "sampling"]


# ---------------------------------------------------------------------------------------------------------
# Options that a command has without the part around them, or in another place of its help

Proba = Annotated[
    list[str] | None,
    people_option(
        "COLUMN",
        "Column of the model's probability of the last class; with more than two classes, once for "
        "each: CLASS=COLUMN.",
    ),
]
Predicted = Annotated[
    str | None,
    people_option(
        "COLUMN",
        "Column of the label that the model predicts, which a policy of kind label reads; with --loss squared or "
        "--decisions LOW:HIGH, of the amount that it predicts: people are then given amounts.",
    ),
]
Weight = Annotated[str | None, people_option("COLUMN", "Column of weights: 2 is the row twice in every sum.")]
WeightMeaning = Annotated[
    WeightKind | None,
    people_option(
        "KIND",
        "What weights are: frequency, so many people were seen, or sampling, one was seen who stands for so "
        "many. Has to be said where they are not plainly counts.",
    ),
]
Baseline = Annotated[
    str | None,
    people_option(
        "COLUMN",
        "Column of the baseline: the present decisions, which a happiness may name; by default what the model "
        "predicts.",
    ),
]
Between = Annotated[
    list[str] | None,
    asked_option(
        "COLUMN",
        "Who is compared by gaps and ratios (in an audit by ratios alone): everybody of each value of this column "
        "of --group; of each combination, COLUMN,COLUMN. Given twice, each is asked for. Default: all groups.",
    ),
]
MinPeople = Annotated[
    float | None,
    asked_option(
        "NUMBER",
        "Groups of fewer people are measured, named and not compared; below 1, a share of all people. Default: 30 "
        "where a policy is fitted, 0 in an audit.",
    ),
]
Loss = Annotated[
    str,
    measure_option(
        "LOSS",
        "What a decision costs the decision maker: error, changes (changed decisions, and nothing else), "
        "squared, absolute or quantile:.9 of numbers, a cost matrix of labels and decisions such as "
        "'[[0,.2,1],[.6,.2,0]]', an expression or module.py:function.",
    ),
]
Listed = Annotated[
    str | None,
    measure_option(
        "LIST",
        "What may be decided, from the worst to the best for the person; by default the classes in order: "
        "refuse,refer,approve; or numbers, low:high:step as in 0:20000:500. LOW:HIGH says amounts between these, as in "
        "0:80.",
        "--decisions",
    ),
]
Gap = Annotated[
    list[str] | None,
    asked_option("GAP", "Largest allowed gap, in the unit of happiness; of one of several, NAME=GAP."),
]
Label = Annotated[
    str | None,
    people_option(
        "COLUMN",
        "Column of the truth that the model tries to predict. Not needed to fit with --loss changes and happiness "
        "that does not look at it.",
    ),
]
Group = Annotated[
    list[str] | None,
    people_option("COLUMN", "Column of the group; given twice, the groups are the combinations."),
]
Join = Annotated[
    list[str] | None,
    people_option(
        "NAME=GROUPS",
        "Small groups that are taken as one: 'other=Asian,Black' calls both other. Where a policy is applied, "
        "too.",
    ),
]
HappinessText = Annotated[
    list[str] | None,
    measure_option(
        "HAPPINESS",
        "What a decision is worth to a person: an expression such as 'decision * loan', a function as "
        "module.py:function, or a criterion such as equalized_odds. May be given several times.",
    ),
]
Name = Annotated[str | None, measure_option("NAME", "What to call the happiness.")]
PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="Policy file that `felicific fit` wrote.")]
PolicyFunction = Annotated[
    list[str] | None,
    measure_option("HAPPINESS", "module.py:function of an individual policy that was fitted with one."),
]
SignedFile = Annotated[
    Path | None,
    output_option(
        "FILE",
        "decision.json, which the page of a report saved: exit code 4 unless just this policy was signed.",
    ),
]
Classes = Annotated[
    list[str] | None,
    people_option(
        "CLASS", "A decision that there is, once for each; by default those that the file holds.", "--class"
    ),
]
GroupName = Annotated[
    list[str] | None,
    people_option(
        "GROUP",
        "A group that there is, once for each; by default those that the files hold. Where one of them may lack a "
        "group, name them all, so that it has a place.",
    ),
]
Decision = Annotated[str | None, people_option("COLUMN", "Column of the decisions that were taken.")]
WorseOff = Annotated[
    float | None,
    asked_option(
        "SHARE",
        "At most this share of the people get less than from the baseline: .02; with 0 nobody is worse off.",
    ),
]
Kind = Annotated[
    PolicyKind,
    asked_option(
        "KIND",
        "What the policy sees besides the group: score, individual, label or soft-label. auto: score for two "
        "classes and a group that is seen, else individual; label where there are no probabilities.",
        "--policy",
    ),
]
Key = Annotated[
    str | None,
    people_option("COLUMN", "Column that identifies a person: the same person always draws the same number."),
]
Confidence = Annotated[float, asked_option("NUMBER", "With which every interval is to hold the truth.")]
Chart = Annotated[Path | None, output_option("FILE", "Draw it to this .svg or .png file.")]
Json = Annotated[bool, output_option(None, "Print JSON instead of text.", "--json")]


# ---------------------------------------------------------------------------------------------------------
# Parts


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a model says about people."""

    score: Proba = None
    predicted: Predicted = None
    group_proba: Annotated[
        list[str] | None,
        people_option(
            "GROUP=COLUMN",
            "Column of how likely a person is of a group, once for each, by a model that was fitted on other "
            "people; an individual policy that does not see the group infers it from these.",
        ),
    ] = None
    table: Annotated[str | None, people_option("TABLE", "Table of a DuckDB file that holds several.")] = None


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
        people_option(
            "NAME",
            "What to write where the group is missing in the file: a group like any other. Default: an error.",
        ),
    ] = None
    happiness: HappinessText
    name: Name = None
    unit: Annotated[str | None, measure_option("UNIT", "What happiness is counted in.")] = None
    among: Annotated[
        str | None,
        measure_option("EXPRESSION", "Who is counted: an expression such as 'age < 40', or 'decision == 1'."),
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
        people_option(
            "WHY",
            "Some labels are missing: at_random, given score and group (or by --label-proba), or unknown, so that "
            "only the worst case can be told. Default: a missing label is an error.",
        ),
    ] = None
    label_proba: Annotated[
        list[str] | None,
        people_option(
            "COLUMN",
            "Column of the known chance of having a label, as `felicific apply --with-proba` has it; of several "
            "they are added up.",
        ),
    ] = None
    max_odds_ratio: Annotated[
        float,
        asked_option(
            "NUMBER",
            "How many fold reasons outside the file may have changed the odds of having a label; 1: nothing is "
            "hidden.",
        ),
    ] = 1.0


@dataclass(frozen=True, kw_only=True)
class Traced(Measured, PartlyLabelled):
    """What a policy is fitted to, and what it must keep to at every gap."""

    label: Label = None
    baseline: Baseline = None
    floor: Annotated[
        list[str] | None,
        asked_option(
            "LEVEL", "No group's mean below this: a number or 'baseline'; of one of several, NAME=LEVEL."
        ),
    ] = None
    budget: Annotated[
        list[str] | None,
        asked_option("LEVEL", "The mean over all people at most this; of one of several, NAME=LEVEL."),
    ] = None
    ratio: Annotated[
        list[str] | None,
        asked_option(
            "RATIO",
            "No group's mean below this share of the highest, 0.8 for the four-fifths rule; of one of several, "
            "NAME=RATIO.",
        ),
    ] = None
    between: Between = None
    min_people: MinPeople = None
    worse_off: WorseOff = None
    explore: Annotated[
        float | None,
        asked_option(
            "CHANCE",
            "Everybody keeps at least this chance of the best decision, by lottery: .02. With it labels are "
            "seen of all kinds of people; `felicific apply --with-proba` writes the chances down.",
        ),
    ] = None
    kind: Kind = "auto"
    blind: Annotated[
        bool,
        asked_option(
            None,
            "The group is not known where people are decided on: fit a policy that decides without.",
            "--without-group",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """What is known of happiness."""

    bounds: Annotated[
        str | None,
        measure_option(
            "LOW,HIGH", "Range that happiness is known to lie in, for guarantees that assume nothing else."
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
        people_option(
            "COLUMN",
            "Column of what rows have in common that are not independent: a person with several rows, a branch.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Fitted(Traced, Evidence, Limited):
    """One policy, and how sure one wants to be of it."""

    change_cost: Annotated[
        str,
        asked_option(
            "COST",
            "What a changed decision costs beside the loss, in its unit; 0 makes changes free. auto: for the "
            "score of two classes and the error rate 0.1, growing with the distance from the border; else 0.",
        ),
    ] = "auto"
    confidence: Annotated[
        float | None,
        asked_option(
            "NUMBER",
            "Return only a policy whose gap is shown, with this confidence, to be at most --gap for people "
            "like these: 60 % of every group are held out to test it on.",
        ),
    ] = None
    seed: Annotated[
        int | None, asked_option("NUMBER", "Makes the lottery reproducible; by default its salt is fresh.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A policy, and what it sees of people besides what the model says."""

    policy: PolicyFile
    group: Annotated[
        list[str] | None, people_option("COLUMN", "Column of the group, unless the policy decides without.")
    ] = None
    key: Key = None


@dataclass(frozen=True, kw_only=True)
class Decided(Seen):
    """A policy that decides, and how its decisions are written."""

    column: Annotated[str, output_option("NAME", "What to call the column of decisions.")] = "decision"
    with_proba: Annotated[
        bool,
        output_option(
            None,
            "Also write the chance that everybody had of the best decision, as proba; of more than two "
            "classes that of each, as proba_CLASS.",
            "--with-proba",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Forced:
    """What is written."""

    force: Annotated[bool, output_option(None, "Replace existing files.", "--force")] = False


@dataclass(frozen=True, kw_only=True)
class Answer(Forced):
    """What is written and printed."""

    as_json: Json = False


# ---------------------------------------------------------------------------------------------------------
# What the options say, whatever the command


@dataclass(frozen=True, kw_only=True)
class RoleOptions:
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
