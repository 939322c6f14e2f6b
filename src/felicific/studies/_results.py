"""Results: what was found beside what the paper prints, as plain data and as a page."""

from __future__ import annotations

import math
import platform
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import felicific
from felicific._problem.happiness import CURRENCIES
from felicific._statistics.sample_size import sample_size
from felicific.studies._baseline import SHARES
from felicific.studies._cost import Cost
from felicific.studies._paper import PARTS, Run, Settings
from felicific.studies._ties import RULE
from felicific.studies._tracks import METHODS, OWN
from felicific.studies._verdict import plain, remarks, verdict_of, written

#: Rows per group that the paper's bound on the validation set asks for, with the numbers it uses.
LEMMA_ROWS = int(sample_size(delta=0.02, confidence=0.99, n_components=2, n_classes=2, n_groups=2, span=1.0))

COMMON_ASSUMPTIONS = (
    "Encoding: text columns one-hot, numbers as they are, the group column among the features; the forest has "
    "scikit-learn's own settings (100 trees). The paper says nothing of either.",
    f"The split is {SHARES[0]:.0%} train, {SHARES[1]:.0%} validation and the rest test, by seed; the paper's own seed "
    "is not known.",
    "Frontiers are exact: every breakpoint, where the paper solves for some values of eps. A criterion's components "
    "share one eps, as in the paper's definition.",
    f"Ties: {RULE}",
    "Accuracy, happiness and gap are expectations over the lottery. The standard error of a gap is that of a "
    "difference of two means, from the variances within the groups, for the policy as it is.",
)
ASSUMPTIONS = {
    "synthetic": (
        "Age and weekly hours are whole numbers over Adult's ranges, categories are Adult's, a third are women.",
    ),
    "adult": (
        "The group is sex; fnlwgt and both education columns are features, '?' is a category of its own.",
    ),
    "loans": (
        "The paper names no group column. Here it is age, under 40 against 40 and over, unless another is chosen.",
        "The paper does not give the unit of the duration; LoanDuration (months) is divided by 12.",
        "The paper speaks of 48,842 rows in all its data; the public file has 20,000. RiskScore (computed from the "
        "label) and ApplicationDate (another value in every row) are not features.",
    ),
}

Number = Callable[[Run], float]


# ---------------------------------------------------------------------------------------------------------
# Numbers over seeds


def spread(runs: Sequence[Run], number: Number) -> dict[str, Any]:
    """Mean over the seeds, its standard error (None for one seed), and every value."""
    values = [float(number(run)) for run in runs]
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "standard error": error, "values": values}


def pick(policy: str, part: str, method: str, place: str, what: str) -> Number:
    """A number of a run by its names; ``place`` is empty for the classifier as it is."""

    def number(run: Run) -> float:
        found = run.facts["policies"][policy][part][method]
        return float((found[place] if place else found)[what])

    return number


def paired(first: Number, second: Number) -> Number:
    """The difference of two numbers of the same run."""
    return lambda run: first(run) - second(run)


# ---------------------------------------------------------------------------------------------------------
# What the paper states


def claim(
    says: str, paper: str, ours: dict[str, Any] | None, holds: bool | None, note: str = "", by: str = "paper"
) -> dict[str, Any]:
    """One statement, what was found, and whether it holds (None: there is nothing to decide).

    ``by`` says who states it: the paper, or felicific, whose own limits are no evidence about the paper.
    """
    return {"statement": says, "paper": paper, "ours": ours, "holds": holds, "note": note, "by": by}


def synthetic_claims(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What the paper prints about its synthetic data."""

    def soft(part: str) -> Number:
        return lambda run: run.facts["forest"][part]["soft"]

    def eps0(method: str, part: str, what: str) -> Number:
        return pick("soft-label", part, method, "at eps 0", what)

    test = spread(runs, soft("test"))
    cost = spread(runs, paired(soft("validation"), eps0(OWN, "validation", "accuracy")))
    found = [
        claim("soft accuracy of the forest on train", "0.97", spread(runs, soft("train")), None),
        claim(
            "soft accuracy of the forest on test, 0.82 to 0.84",
            "0.833",
            test,
            all(0.82 <= v <= 0.84 for v in test["values"]),
        ),
        claim(
            "accuracy given up for a funding gap of 0, on validation",
            "less than 0.01",
            cost,
            all(v < 0.01 for v in cost["values"]),
        ),
        claim(
            "equalized odds exactly met, on test: accuracy",
            "0.795",
            spread(runs, eps0(METHODS[1], "test", "accuracy")),
            None,
        ),
        claim(
            "equalized odds exactly met, on test: funding gap, $",
            "25,384",
            spread(runs, eps0(METHODS[1], "test", "gap")),
            None,
        ),
    ]
    for method in ("statistical parity", "equalized odds"):
        for part in PARTS:
            more = spread(
                runs, paired(eps0(method, part, "gap"), pick("soft-label", part, "unprocessed", "", "gap"))
            )
            says = f"{method} exactly met widens the funding gap, on {part}: by, $"
            found.append(claim(says, "more than 0", more, more["mean"] > 0))
    change = paired(
        eps0("overall accuracy", "test", "gap"), pick("soft-label", "test", "unprocessed", "", "gap")
    )
    ends = [spread(runs, eps0("overall accuracy", "test", end))["mean"] for end in ("low", "high")]
    note = f"at the middle of its ties; they allow gaps from ${ends[0]:,.0f} to ${ends[1]:,.0f}"
    says = "overall accuracy leaves the funding gap unchanged at best, on test: change, $"
    found.append(claim(says, "0 or more", spread(runs, change), None, note))
    return found


CLOSEST, OURS_THERE = "closest to gap 0", "accuracy of own happiness at that gap"


def closest_claims(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """On validation no criterion is more accurate than the own happiness where it comes closest to gap 0."""

    def least_lead(policy: str) -> Number:
        leads = [
            paired(
                pick(policy, "validation", method, CLOSEST, OURS_THERE),
                pick(policy, "validation", method, CLOSEST, "accuracy"),
            )
            for method in METHODS[1:]
        ]
        return lambda run: min(lead(run) for lead in leads)

    found = []
    for policy in ("soft-label", "score"):
        lead = spread(runs, least_lead(policy))
        says = f"own happiness is the most accurate as the gap goes to 0, on validation, {policy}: least lead"
        found.append(claim(says, "0 or more", lead, min(lead["values"]) >= -1e-9, "see the table below"))
    return found


OWN_LIMIT = "a limit of felicific, not of the paper"


def common_claims(runs: Sequence[Run], cost: Cost) -> list[dict[str, Any]]:
    """Rows, time and memory."""
    fewest = min(min(run.facts["validation people by group"].values()) for run in runs)
    people = runs[0].facts["people"]
    each = cost.seconds / len(runs)
    peak = cost.peak_mb
    return [
        claim("people in the data", "48,842", _one(sum(people.values())), None),
        claim(
            f"validation people in the smallest group; the paper's bound asks for {LEMMA_ROWS:,} in each",
            "satisfied",
            _one(fewest),
            fewest >= LEMMA_ROWS,
            "16 % of its 48,842 people are 7,815 in both groups together",
        ),
        claim(
            "seconds per seed, data and forest included",
            "less than 180",
            _one(each),
            each < 180,
            OWN_LIMIT,
            by="felicific",
        ),
        claim(
            "peak memory of the process, MB",
            "less than 1000",
            None if peak is None else _one(peak),
            None if peak is None else peak < 1000,
            OWN_LIMIT,
            by="felicific",
        ),
    ]


def _one(value: float) -> dict[str, Any]:
    return {"mean": float(value), "standard error": None, "values": [float(value)]}


# ---------------------------------------------------------------------------------------------------------
# Data and page


def software() -> dict[str, str]:
    """Versions of what was used."""
    names = ("numpy", "scikit-learn", "highspy")
    return {"felicific": felicific.__version__, "python": platform.python_version()} | {
        name: version(name) for name in names
    }


def study_results(
    name: str, title: str, runs: Sequence[Run], cost: Cost, settings: Settings
) -> dict[str, Any]:
    """Everything that was found, as plain data; pages are made of it and compute nothing."""
    data, facts = runs[0].data, [run.facts for run in runs]
    claims = synthetic_claims(runs) if name == "synthetic" else []
    claims = [*claims, *closest_claims(runs), *common_claims(runs, cost)]
    unit = data.happiness.unit
    return {
        "study": name,
        "title": title,
        "verdict": verdict_of(claims, remarks(settings, data.name)),
        "data": " ".join(data.description.split("\n\n")[0].split()),
        "happiness": data.happiness.name,
        "unit": unit,
        "group column": data.sensitive_features,
        "groups": [str(group) for group in runs[0].groups],
        "assumptions": [*COMMON_ASSUMPTIONS, *ASSUMPTIONS[name]],
        "claims": claims,
        "tables": [
            _policy_tables(facts, unit or "", policy, what) for policy, what in POLICIES_SHOWN.items()
        ],
        "notes": [
            f"Means over {len(runs)} seeds; ± is one standard error of that mean."
            if len(runs) > 1
            else "± is one standard error, from the variances within the groups.",
            "In brackets: the gaps that ties between a criterion's optimal policies allow.",
        ],
        "seeds": facts,
        "command": command_of(name, settings),
        "cost": {"seconds": cost.seconds, "peak memory, MB": cost.peak_mb},
        "software": software(),
    }


def command_of(name: str, settings: Settings) -> str:
    """The command that does it again. Of a file only the name: where it lay is nobody's business."""
    words = ["felicific", "reproduce", name, "--seeds", str(settings.seeds)]
    if settings.rows is not None:
        words += ["--rows", str(settings.rows)]
    if name == "loans" and settings.loans is not None:
        words += ["--loans", Path(settings.loans).name]
    if name == "loans" and settings.group is not None:
        words += ["--group", settings.group]
    return shlex.join([*words, "--out", "studies"])


def markdown(results: dict[str, Any]) -> str:
    """The page as text: claims, methods, what was assumed."""
    groups = " and ".join(f"'{group}'" for group in results["groups"])
    people = results["seeds"][0]["people"]
    who = f"The gap is in {results['happiness']} ({results['unit']}), between {groups} ({results['group column']}). "
    who += ", ".join(f"{n:,} people {part}" for part, n in people.items()) + "."
    beside = ["## Beside the paper", claims_table(results["claims"])]
    return whole_page(results, [who], [*beside, *tables_of(results), *results["notes"]])


def whole_page(results: dict[str, Any], first: Sequence[str], then: Sequence[str]) -> str:
    """Title, verdict, data, figures and what was found; what was assumed, and what it cost."""
    parts = [f"# {results['title']}", f"**{results['verdict']['headline']}.**", results["data"], *first]
    parts += [f"![{figure['title']}]({figure['file']})" for figure in results["figures"]]
    parts += [
        *then,
        "## What was assumed, and what else to know",
        "\n".join(f"- {line}" for line in results["assumptions"]),
        "## Cost",
        cost_line(results),
    ]
    return "\n\n".join(parts) + "\n"


def tables_of(results: dict[str, Any]) -> Iterator[str]:
    """The tables with their headings and the sentences below them."""
    for item in results["tables"]:
        yield f"## {item['title']}"
        for part in item["parts"]:
            if part["about"]:
                yield f"{part['about']}:"
            yield table(part["header"], part["rows"])
        if item["lines"]:
            yield "\n".join(f"- {line}" for line in item["lines"])


def claims_table(claims: Sequence[dict[str, Any]]) -> str:
    """Statement, paper, ours, and whether it holds."""
    verdicts = {True: "yes", False: "**no**", None: ""}
    rows = [
        [
            item["statement"] + (f" ({item['note']})" if item["note"] else ""),
            item["paper"],
            "not measured here" if item["ours"] is None else written(item["ours"]),
            verdicts[item["holds"]],
        ]
        for item in claims
    ]
    return table(["statement", "paper", "ours", "holds"], rows)


POLICIES_SHOWN = {
    "soft-label": "the paper's policy",
    "score": "the score policy of felicific, changes free",
}


def _policy_tables(seeds: Sequence[dict[str, Any]], unit: str, policy: str, what: str) -> dict[str, Any]:
    found = [seed["policies"][policy] for seed in seeds]
    methods = {"about": "", **methods_table(found, unit)}
    closest = {"about": "Where each comes closest to gap 0", **closest_table(found, unit)}
    return {"title": f"Every method, {policy} ({what})", "parts": [methods, closest], "lines": []}


def methods_table(seeds: Sequence[dict[str, Any]], unit: str) -> dict[str, Any]:
    """Accuracy and gap where each criterion is met exactly, and of the classifier as it is."""
    rows = []
    for method in ("unprocessed", *METHODS):
        row = [method if method == "unprocessed" else f"{method}, eps 0"]
        for part in PARTS:
            found = [seed[part][method] for seed in seeds]
            points = found if method == "unprocessed" else [point["at eps 0"] for point in found]
            row += [f"{100 * _mean(points, 'accuracy'):.2f} %", _gap(points, unit)]
        rows.append(row)
    header = [f"{what}, {part}" for part in PARTS for what in ("accuracy", "gap")]
    return {"header": ["method", *header], "rows": rows}


def closest_table(seeds: Sequence[dict[str, Any]], unit: str) -> dict[str, Any]:
    """Where every method's frontier comes closest to gap 0, and how accurate the own happiness is at that gap."""
    rows = []
    for method in METHODS:
        row = [method]
        for part in PARTS:
            points = [seed[part][method][CLOSEST] for seed in seeds]
            row += [_gap(points, unit).split(" [")[0], f"{100 * _mean(points, 'accuracy'):.2f} %"]
            if part == "validation":
                row.append(f"{100 * _mean(points, OURS_THERE):.2f} %")
        rows.append(row)
    header = ["method", "least gap, validation", "accuracy there", "own happiness at that gap"]
    return {"header": [*header, "least gap, test", "accuracy there"], "rows": rows}


def _mean(points: Sequence[dict[str, float]], what: str) -> float:
    return float(np.mean([point[what] for point in points]))


def _gap(points: Sequence[dict[str, float]], unit: str) -> str:
    gaps = [point["gap"] for point in points]
    error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else points[0]["error"]
    like = max(_mean(points, "gap"), error)
    text = f"{plain(_mean(points, 'gap'), like)} ± {plain(error, like)}"
    text = f"{unit}{text}" if unit in CURRENCIES else f"{text} {unit}"
    if "low" in points[0]:
        low, high = _mean(points, "low"), _mean(points, "high")
        if high - low > 1e-6 * max(high, 1.0):
            text += f" [{plain(low, like)} to {plain(high, like)}]"
    return text


def cost_line(results: dict[str, Any]) -> str:
    """Seconds, memory and versions in one sentence."""
    cost, peak = results["cost"], results["cost"]["peak memory, MB"]
    memory = (
        f"; at most {peak:,.0f} MB in memory"
        if peak is not None
        else "; memory is not measured on this system"
    )
    versions = ", ".join(f"{name} {number}" for name, number in results["software"].items())
    return f"{cost['seconds']:.1f} s{memory}. {versions}."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
