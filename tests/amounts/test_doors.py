"""Aggregates, policies and frontiers of amounts without scikit-learn: the same from rows, engines, sites and files."""

import json

import numpy as np
import pytest
from amount_policies import find_amounts
from functions import as_arrow, as_duckdb, as_lazy, as_pandas, write_parquet
from helpers import solved, traced

from felicific import Budget, Floor, Gap, Happiness, Policy, Score, aggregate, load, monitor, solve
from felicific._files import POLICY, VERSION, _digest
from felicific._policy.numeric import AmountPolicy
from felicific._program.aggregates import Aggregates
from felicific._program.numeric import AmountAggregates
from felicific.exceptions import AggregatesError, DataError, FelicificError, PolicyFileError

ASKED = {
    "predicted": "f",
    "loss": "squared",
    "y": "y",
    "sensitive_features": "z",
    "happiness": "distributional_parity",
}
BOUNDS = {"decisions": (-4.0, 5.0)}


def care(n=3000, seed=0, weights=False):
    """People with a prediction, a label, a group and, if wanted, whole weights."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    f = rng.normal(0.8 * z, 1.0)
    table = {
        "f": f,
        "y": f + rng.normal(0, 0.7, n),
        "z": np.array(["a", "b"], dtype=object)[z],
        "id": np.arange(n),
    }
    return table | ({"w": rng.integers(0, 4, n)} if weights else {})


def eighths(table):
    """The same with numbers of few binary digits, whose sums are exact in any order."""
    return table | {name: np.round(table[name] * 8) / 8 for name in ("f", "y")}


def same(left, right):
    """Whether two sums are equal, bit by bit."""
    arrays = ("mass", "predicted", "labels", "squares", "least", "most", "rows")
    return left.groups == right.groups and all(
        np.array_equal(getattr(left.sums, name), getattr(right.sums, name)) for name in arrays
    )


PLACES = {
    "arrow": lambda table, folder: as_arrow(table),
    "polars lazy": lambda table, folder: as_lazy(table),
    "duckdb": lambda table, folder: as_duckdb(table),
    "path": lambda table, folder: str(write_parquet(table, folder / "people.parquet")),
    "dask": lambda table, folder: pytest.importorskip("dask.dataframe").from_pandas(
        as_pandas(table), npartitions=3
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("decisions", [None, (-4.0, 5.0), [-2, -1, 0, 1, 2]])
def test_sums_are_the_same_wherever_the_rows_are(place, decisions, tmp_path):
    """Of numbers whose sums are exact, every engine has the sums of memory to the last bit, and so the policy."""
    table = eighths(care(weights=True))
    asked = ASKED | {"sample_weight": "w", "decisions": decisions}
    here = aggregate(as_pandas(table), **asked)
    there = aggregate(PLACES[place](table, tmp_path), **asked)
    assert same(here, there)
    assert solve(there, gap=0.1, random_state=0).to_json() == solve(here, gap=0.1, random_state=0).to_json()


@pytest.mark.parametrize("place", ["polars lazy", "duckdb"])
def test_solve_of_a_lazy_table_is_that_of_its_sums(place, tmp_path):
    """And so is the frontier."""
    table = care()
    lazy, sums = PLACES[place](table, tmp_path), aggregate(as_pandas(table), **ASKED | BOUNDS)
    policy = solved(lazy, gap=0.05, random_state=0, **ASKED | BOUNDS)
    assert policy.loss == pytest.approx(solve(sums, gap=0.05, random_state=0).loss, rel=1e-9)
    assert policy.gap <= 0.05 * (1 + 1e-9)
    line = traced(lazy, random_state=0, **ASKED | BOUNDS)
    assert line.at(gap=0.05).loss == pytest.approx(policy.loss, rel=1e-9)


@pytest.mark.parametrize("whole", [True, False])
def test_sites_add_to_the_policy_of_all_rows(whole, tmp_path):
    """Bit for bit where sums are exact, else within rounding; in any order, and through files."""
    table = care(weights=True)
    table = eighths(table) if whole else table
    frame, asked = as_pandas(table), ASKED | BOUNDS | {"sample_weight": "w"}
    parts = [aggregate(part, **asked) for part in (frame[:700], frame[700:1500], frame[1500:])]
    for i, part in enumerate(parts):
        part.save(tmp_path / f"{i}.json")
    read = [load(tmp_path / f"{i}.json") for i in (2, 0, 1)]
    assert all(isinstance(part, AmountAggregates) for part in read)
    added, together = read[0] + read[1] + read[2], aggregate(frame, **asked)
    one, two = solve(added, gap=0.05, random_state=0), solve(together, gap=0.05, random_state=0)
    if whole:
        assert same(added, together)
        assert one.to_json() == two.to_json()
    assert one.loss == pytest.approx(two.loss, rel=1e-9)


def test_a_site_without_a_group_adds_once_the_groups_are_named():
    """And alone it is refused: nobody knows what the group is predicted."""
    frame = as_pandas(care())
    asked = ASKED | BOUNDS | {"groups": ["a", "b"]}
    alone = aggregate(frame[frame["z"] == "a"], **asked)
    with pytest.raises(DataError, match="Nobody is of the group 'b'"):
        solve(alone, gap=0.1)
    policy = solve(alone + aggregate(frame[frame["z"] == "b"], **asked), gap=0.1, random_state=0)
    assert policy.loss == pytest.approx(solve(aggregate(frame, **asked), gap=0.1).loss, rel=1e-9)


@pytest.mark.parametrize(
    "happiness",
    [
        "decision",
        {"parity": "distributional_parity", "mean": Happiness("decision", unit="h")},
        "(decision >= 1) * 1",
    ],
)
def test_what_is_asked_is_kept_in_the_file(happiness, tmp_path):
    """Happiness, its names and units, and which amounts there may be come back; the policy is the same."""
    sums = aggregate(as_pandas(care()), **ASKED | BOUNDS | {"happiness": happiness})
    gap = {"parity": 0.2, "mean": 0.2} if isinstance(happiness, dict) else 0.2
    sums.save(tmp_path / "s.json")
    back = load(tmp_path / "s.json")
    assert back.to_json() == sums.to_json()
    assert solve(back, gap=gap, random_state=1).to_json() == solve(sums, gap=gap, random_state=1).to_json()


# ---------------------------------------------------------------------------------------------------------
# Files


def resigned(content):
    """A document with the checksum that goes with it."""
    return json.dumps(content | {"sha256": _digest(content)})


def damage(content):
    """Ways to alter sums that a checksum does not show."""
    cells = content["cells"]
    return {
        "negative": content | {"mass": [-1.0, *content["mass"][1:]]},
        "twice": content | {"cells": [cells[1], *cells[1:]]},
        "no bin": content | {"cells": [[0, 5000], *cells[1:]]},
        "no group": content | {"cells": [[7, 0], *cells[1:]]},
        "short": content | {"predicted": content["predicted"][1:]},
        "text": content | {"mass": ["1", *content["mass"][1:]]},
        "rows": content | {"rows": [0, 1]},
        "scale": content | {"scale": [3.0, 1.0]},
        "loss": content | {"loss_name": "absolute"},
        "calibration": content | {"calibration": "linear"},
        "decisions": content | {"decisions": {"bounds": [1.0], "listed": None}},
        "happiness": content | {"happiness": [{"function": "__import__('os')"}]},
        "code": content
        | {
            "happiness": [
                {"function": "__import__('os')", "among": None, "name": "n", "unit": "", "bounds": None}
            ]
        },
        "more": content | {"further": 1},
        "least": content | {"least": [9.0, *content["least"][1:]]},
    }


def test_altered_sums_are_refused():
    """Each by an error of ours, whatever was altered; cut and other versions too."""
    text = aggregate(as_pandas(care(300)), **ASKED | BOUNDS).to_json()
    for content in damage(json.loads(text)).values():
        altered = resigned(content)
        with pytest.raises(AggregatesError):
            Aggregates.from_json(altered)
    for broken in (
        text[:-40],
        text.replace('"rows"', '"lines"'),
        "",
        "[]",
        resigned(json.loads(text) | {"version": 99}),
    ):
        with pytest.raises(FelicificError):
            Aggregates.from_json(broken)


def test_policies_of_amounts_are_read_by_policy_load(tmp_path):
    """The same policy comes back; altered, cut and other ones are refused."""
    policy = find_amounts("lotteries and steps").policy
    with pytest.warns(UserWarning, match="seed"):
        policy.save(tmp_path / "p.json")
    read = load(tmp_path / "p.json")
    assert isinstance(read, AmountPolicy)
    assert read.to_json() == policy.to_json()
    content = json.loads(policy.to_json())
    assert (content["format"], content["version"]) == (POLICY, VERSION)
    changed = [
        content | {"lines": content["lines"][1:]},
        content | {"groups": ["a", "a"]},
        content | {"salt": "x"},
        content | {"bounds": [2.0, 1.0]},
        content | {"more": 1},
        content | {"lines": [content["lines"][0] | {"knots": [[1.0, 0.0], [0.0, 1.0]]}, content["lines"][1]]},
        content | {"policy": {"kind": "other"}},
    ]
    for other in changed:
        with pytest.raises(PolicyFileError):
            Policy.from_json(resigned(other))
    with pytest.raises(PolicyFileError):
        Policy.from_json(policy.to_json()[:-20])
    with pytest.raises(PolicyFileError, match="checksum"):
        Policy.from_json(policy.to_json().replace('"squared"', '"absolute"'))


# ---------------------------------------------------------------------------------------------------------
# What is refused

BAD = {
    "classes": ({"classes": [0, 1]}, "classes= has no use"),
    "two amounts": ({"decisions": [0, 40], "loss": "squared"}, "a list needs more than two"),
    "individual": ({"policy": "individual"}, "looks at each of them"),
    "criterion": ({"happiness": "statistical_parity"}, "criterion"),
    "no happiness": ({"happiness": None}, "happiness"),
    "no column": ({"predicted": "g"}, "no column 'g'"),
    "text": ({"predicted": "z"}, "number"),
    "bounds": ({"decisions": (5, 1)}, "smaller one first"),
    "losses": ({"loss": "changes", "decisions": (0, 99)}, "changes"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("place", ["memory", "polars lazy"])
def test_bad_questions_are_refused(name, place, tmp_path):
    """In memory and on engines, with what is wrong."""
    table = as_pandas(care(200)) if place == "memory" else PLACES[place](care(200), tmp_path)
    said, words = BAD[name]
    with pytest.raises(FelicificError, match=words):
        solved(table, gap=0.1, **ASKED | said)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("f", None, "prediction of row 7"), ("f", np.inf, "prediction of row 7"), ("y", None, "label y of row 7"),
     ("z", None, "group"), ("w", -1.0, "weight")],
)  # fmt: skip
@pytest.mark.parametrize("place", ["memory", "polars lazy", "duckdb"])
def test_bad_rows_are_refused(column, value, words, place, tmp_path):
    """By the number of the row."""
    table = care(200) | {"w": np.ones(200)}
    values = np.array(table[column], dtype=object)
    values[7] = value
    table[column] = (
        values if column == "z" else np.array([np.nan if v is None else v for v in values], dtype=float)
    )
    rows = as_pandas(table) if place == "memory" else PLACES[place](table, tmp_path)
    with pytest.raises(FelicificError, match=words):
        aggregate(rows, sample_weight="w", **ASKED)


def test_what_sums_cannot_tell_is_refused():
    """Other losses, a baseline, functions in files, and what was said before."""
    frame = as_pandas(care(200))
    for said in ({"loss": "absolute"}, {"loss": lambda decision, y: abs(decision - y)}, {"baseline": "f"}):
        with pytest.raises(DataError, match="memory"):
            aggregate(frame, **ASKED | BOUNDS | said)
    with pytest.raises(DataError, match="more than the amount"):
        aggregate(frame, **ASKED | {"happiness": lambda decision, x: decision})
    sums = aggregate(frame, **ASKED | {"happiness": lambda decision: decision})
    with pytest.raises(DataError, match="Python function"):
        sums.to_json()
    for asked, words in (({"change_cost": 0.1}, "change_cost"), ({"sees_group": False}, "without the group")):
        with pytest.raises(DataError, match=words):
            solve(sums, gap=0.1, **asked)


def test_sums_that_do_not_fit_together_do_not_add():
    """Of other bounds, groups, happiness or calibrations."""
    frame = as_pandas(care(300))
    one = aggregate(frame, **ASKED | BOUNDS)
    other = {"policy": Score(calibration="isotonic")}
    for said in ({"decisions": (0, 9)}, {"happiness": "decision"}, {"groups": ["a", "b", "c"]}, other):
        with pytest.raises(AggregatesError, match=r"do not add(?!.*Allowed)"):
            one + aggregate(frame, **ASKED | BOUNDS | said)


def test_a_policy_of_amounts_is_refused_where_classes_are_meant():
    """By an error that says so, never an AttributeError."""
    policy, frame = solved(as_pandas(care(200)), gap=0.1, **ASKED), as_pandas(care(200))
    said = {"sensitive_features": "z", "happiness": "decision"}
    for ask in (
        lambda: policy.explain(0.5, "a"),
        lambda: policy.steer("decision"),
        lambda: policy.probabilities([0.5], ["a"]),
        lambda: policy.decide([0.5], ["a"]),
        lambda: monitor(policy, frame, gap=0.1, **said),
    ):
        with pytest.raises(DataError, match="gives amounts"):
            ask()


def test_requirements_beside_the_gap_are_met_on_sums():
    """Floors and budgets of the mean amount, and the calibration that is asked for."""
    sums = aggregate(as_pandas(care()), **ASKED | BOUNDS | {"happiness": "decision"})
    policy = solve(
        sums, gap={}, constraints=[Floor("decision", 0.3), Budget("decision", 0.5)], random_state=0
    )
    means = np.array(list(policy.means["decision"].values()))
    assert means.min() >= 0.3 - 1e-6
    assert float(means @ sums.people) / sums.people.sum() <= 0.5 + 1e-6
    plain = ASKED | BOUNDS | {"happiness": "decision", "policy": Score(calibration="none")}
    plain = solve(aggregate(as_pandas(care()), **plain), gap={}, constraints=[Gap("decision", 9.0)])
    assert plain.amounts([0.5], ["a"])[0] == pytest.approx(0.5, abs=1e-9)
