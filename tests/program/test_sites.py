"""Sites that may not share rows: aggregates in small files, added up, with small cells merged and nobody dropped."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from functions import as_pandas, asked, assert_same, people

from felicific import Happiness, Score, aggregate, load, solve
from felicific._program.aggregates import Aggregates
from felicific._program.signals import Label, SoftLabel
from felicific.exceptions import AggregatesError, GroupError, PolicyFileError

SUMS = (
    "mass",
    "loss",
    "value",
    "among",
    "baseline_loss",
    "baseline_value",
    "baseline_mass",
    "square",
    "gains",
    "loses",
)


@pytest.fixture(scope="module")
def some():
    happiness = [Happiness(lambda decision, x: decision * x["loan"], name="loan", unit="$"), "equalized_odds"]
    return aggregate(as_pandas(people(900)), **asked(happiness=happiness))


@pytest.mark.parametrize("policy", [Score(bins=9, monotone=False, boundary=0.25), Label(), SoftLabel()])
@pytest.mark.parametrize("classes", [2, 3])
def test_files_give_back_the_same_aggregates(tmp_path, policy, classes):
    """What is read is, bit by bit, what was written; so is what is solved with it."""
    table = people(600, classes=classes)
    found = aggregate(as_pandas(table), **asked(classes, policy=policy, happiness="statistical_parity"))
    for kept in (found, found.joined()):
        kept.save(tmp_path / "m.json")
        back = load(tmp_path / "m.json")
        assert_same(back, kept, 0.0)
        assert all(
            np.array_equal(getattr(back, name), getattr(kept, name)) for name in (*SUMS, "origin", "rows")
        )
        assert (
            solve(back, gap=0.1, random_state=0).to_json() == solve(kept, gap=0.1, random_state=0).to_json()
        )


def test_the_file_holds_sums_only(tmp_path, some):
    """The file is strict JSON of sums: no row, no key, no function; and it is smaller than the rows."""
    content = json.loads(some.to_json())
    assert set(content) == {
        *SUMS, "worse", "format", "version", "sha256", "classes", "groups", "measures", "signal", "loss_name", "origin",
        "rows", "weight_kind", "whole", "changed", "cells", "attributes", "roles", "baseline_given",
    }  # fmt: skip
    assert "lambda" not in some.to_json()


SPOILED = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "altered": lambda text: text.replace('"loan"', '"Loan"'),
    "a list": lambda text: "[]",
    "a number that is none": lambda text: text.replace('"origin": [', '"origin": [NaN, '),
    "a policy": lambda text: text.replace("felicific aggregates", "felicific policy"),
    "another version": lambda text: text.replace('"version": 2', '"version": 3'),
}


@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_files_are_refused(some, how, refuses):
    """A file that is cut, altered or something else is an error, and never aggregates."""
    with refuses(AggregatesError, "aggregates"):
        Aggregates.from_json(SPOILED[how](some.to_json()))


FORGED = {
    "missing part": lambda content: content.pop("mass"),
    "extra part": lambda content: content.update(rows_of_people=[1]),
    "negative mass": lambda content: content["mass"].__setitem__(0, -1.0),
    "text for a number": lambda content: content["loss"][0].__setitem__(0, "1"),
    "cell beyond the last": lambda content: content["cells"].__setitem__(0, [0, 10**6]),
    "cell twice": lambda content: content["cells"].__setitem__(0, content["cells"][1]),
    "too few sums": lambda content: content["mass"].pop(),
    "no groups": lambda content: content.update(groups="abc"),
    "unknown signal": lambda content: content["signal"].update(kind="horoscope"),
    "half a measure": lambda content: content["measures"][0].pop("unit"),
}


@pytest.mark.parametrize("how", FORGED)
def test_forged_files_are_refused(some, how, refuses):
    """A file with a right checksum and wrong parts is an error too."""
    from felicific._files import write_document

    content = json.loads(some.to_json())
    for name in ("format", "version", "sha256"):
        content.pop(name)
    FORGED[how](content)
    with refuses(AggregatesError, "aggregates"):
        Aggregates.from_json(write_document(content, "felicific aggregates"))


def nothing(name):
    """A change that empties a list."""
    return lambda content: content.__setitem__(name, [])


#: Parts that are wrong, and how the error names them.
NAMED = {
    "negative rows": (lambda content: content["rows"].__setitem__(0, -3), "rows holds -3"),
    "half a row": (lambda content: content["rows"].__setitem__(0, 2.5), "rows holds 2.5"),
    "no rows": (lambda content: content["rows"].__setitem__(0, 0), "people but no rows"),
    "half a cell": (lambda content: content["cells"].__setitem__(0, [0, 0.5]), "cells holds 0.5"),
    "negative mass": (lambda content: content["mass"].__setitem__(0, -1.0), "mass is negative"),
    "negative among": (lambda content: content["among"][0].__setitem__(0, -1.0), "among is negative"),
    "more counted than there are": (
        lambda content: content["among"][0].__setitem__(0, 1e6),
        "more people are counted than there are",
    ),
    "negative loss": (lambda content: content["loss"][0].__setitem__(0, -1.0), "loss holds -1"),
    "a loss of more than everybody": (
        lambda content: content["loss"][0].__setitem__(0, 1e6),
        "loss holds 1e+06",
    ),
    "negative loss of the baseline": (
        lambda content: content["baseline_loss"].__setitem__(0, -1.0),
        "baseline_loss holds -1",
    ),
    "a rate beyond 1": (lambda content: content["value"][0][0].__setitem__(1, 1e6), "value holds"),
    "no classes": (lambda content: content["classes"].update(values=[]), "list of classes is empty"),
    "no group": (nothing("groups"), "list of groups is empty"),
    "no measure": (nothing("measures"), "list of measures is empty"),
    "a class twice": (
        lambda content: content["classes"].update(values=[content["classes"]["values"][0]] * 2),
        "twice among its classes",
    ),
    "bounds the wrong way round": (
        lambda content: content["measures"][1].update(bounds=[1.0, 0.0]),
        "bounds of a measure are 1 and 0",
    ),
    "no boundary": (lambda content: content["signal"].update(boundary=2.0), "boundary of the score is 2.0"),
}


@pytest.mark.parametrize("how", NAMED)
def test_sums_that_nobody_has_are_refused_by_name(some, how):
    """Negative counts and losses, empty lists and what lies beyond its range: the error says which part it is."""
    from felicific._files import write_document

    content = json.loads(some.to_json())
    change, words = NAMED[how]
    change(content)
    content = {name: part for name, part in content.items() if name not in ("format", "version", "sha256")}
    with pytest.raises(AggregatesError) as caught:
        Aggregates.from_json(write_document(content, "felicific aggregates"))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "loss", [(np.arange(9.0) - 4).reshape(3, 3).tolist(), lambda decision, y: decision - 3.0 * y]
)
def test_a_loss_that_may_be_negative_is_read(loss):
    """A gain is a negative loss: of a cost matrix or a function that has some, files are read as they were written."""
    found = aggregate(as_pandas(people(300)), **(asked(happiness="statistical_parity") | {"loss": loss}))
    assert found.loss.min() < 0
    assert Aggregates.from_json(found.to_json()).to_json() == found.to_json()


@pytest.mark.parametrize("version", ["true", "1.0", '"1"', "null"])
def test_a_version_is_a_number(some, version):
    """Python takes true and 1.0 for 1; other readers do not."""
    with pytest.raises(AggregatesError, match="has format"):
        Aggregates.from_json(some.to_json().replace('"version": 2', f'"version": {version}'))


def test_doubled_names_are_refused_in_aggregates(some):
    """Of two parts of one name readers would take different ones."""
    with pytest.raises(AggregatesError, match="it holds 'groups' twice"):
        Aggregates.from_json(some.to_json().replace('"groups":', '"groups": ["x"], "groups":', 1))


def test_no_text_is_refused(tmp_path, refuses):
    """Bytes that are no text are named as such."""
    (tmp_path / "m.json").write_bytes(b"\xff\xfe\x00")
    with refuses(PolicyFileError, "m.json", "not a file that felicific wrote"):
        load(tmp_path / "m.json")


def one_for_all(sums):
    """Every policy that decides alike about everybody."""
    g, size = sums.mass.shape
    k = len(sums.classes)
    return [np.broadcast_to(np.eye(k)[d], (g, size, k)) for d in range(k)]


def test_no_number_of_a_merged_file_is_one_persons():
    """The origin of sums may be a value of one person; a merged file holds the baseline's mean instead."""
    table = people(301)
    sums = aggregate(
        as_pandas(table),
        **asked(happiness={"loan": lambda decision, x: x["loan"]}) | {"groups": ["a", "b", "c"]},
    )
    assert sums.origin[0] in table["loan"]
    after = sums.merged(10)
    assert after.origin[0] == pytest.approx(table["loan"].mean(), rel=1e-12)
    numbers = np.array([float(text) for text in re.findall(r"-?\d+\.\d+(?:e[-+]?\d+)?", after.to_json())])
    assert not np.isin(table["loan"], numbers).any()
    assert np.isin(sums.origin[0], [float(x) for x in json.loads(sums.to_json())["origin"]])


@pytest.mark.parametrize("least", [2, 10, 40])
@pytest.mark.parametrize("classes", [2, 3])
def test_merged_cells_hold_enough_people_and_lose_nobody(least, classes):
    """Every cell holds at least that many people; the sums of every group are what they were."""
    table = people(1200, classes=classes)
    before = aggregate(as_pandas(table), **asked(classes, happiness="equalized_odds"))
    after = before.merged(least)
    assert after.mass[after.mass > 0].min() >= least
    assert (before.mass[before.mass > 0] < least).any()
    for name in ("mass", "loss", "among", "baseline_loss"):
        assert np.allclose(
            getattr(after, name).sum(axis=1), getattr(before, name).sum(axis=1), rtol=1e-12, atol=1e-9
        )
    each = np.stack([before.evaluate(q).means for q in one_for_all(before)])
    assert np.allclose(np.stack([after.evaluate(q).means for q in one_for_all(before)]), each, rtol=1e-12)
    assert np.array_equal(after.rows, before.rows)
    assert np.allclose(after.baseline.means, before.baseline.means, rtol=1e-12)
    assert_same(after.merged(least), after, 1e-12)


def test_merged_cells_stay_on_their_side_of_the_boundary():
    """Where both sides of the model's boundary have enough people, nobody is moved across it."""
    before = aggregate(as_pandas(people(1200, classes=2)), **asked(2, happiness="statistical_parity"))
    after = before.merged(15)
    baseline = before.signal.baseline(2)
    for side in (0, 1):
        assert np.array_equal(
            after.mass[:, baseline == side].sum(axis=1), before.mass[:, baseline == side].sum(axis=1)
        )


def test_a_side_with_too_few_people_joins_the_other():
    """Three people beyond the boundary join their nearest neighbours rather than be dropped or shown."""
    table = people(300, classes=2)
    table["p1"] = np.where(np.arange(300) < 3, 0.9, table["p1"] * 0.4)
    table["p0"] = 1 - table["p1"]
    after = aggregate(
        as_pandas(table), **asked(2, sensitive_features="sex", happiness="statistical_parity")
    ).merged(10)
    assert after.mass[after.mass > 0].min() >= 10
    assert after.mass.sum() == 300


def test_what_cannot_be_merged(some, refuses):
    """A group with too few people, and a label that few have, are errors that say what to do."""
    with refuses(GroupError, "'a'", "fewer than 500", remedy="another group"):
        some.merged(500)
    with refuses(AggregatesError, "0", remedy="1 or more"):
        some.merged(0)
    few = people(300)
    few["y"][:] = 0
    few["own"] = np.where(np.arange(300) < 3, 1, 0)
    labels = aggregate(
        as_pandas(few),
        **asked(score=None, predicted="own", classes=3, happiness="statistical_parity")
        | {"classes": [0, 1, 2], "policy": "label"},
    )
    with refuses(AggregatesError, "fewer than 10", remedy="policy='score'"):
        labels.merged(10)


def test_the_example_of_three_sites_equals_the_pooled_fit(capsys):
    """The example's three files give the very fit of all rows in one place; merged ones one close to it."""
    path = Path(__file__).parents[2] / "examples" / "three_sites.py"
    fits = runpy.run_path(str(path))["main"]()
    pooled, exact, merged = fits.values()
    assert exact.loss == pytest.approx(pooled.loss, rel=1e-12)
    assert exact.gap == pytest.approx(0, abs=1e-9)
    assert np.allclose(exact.q, pooled.q, atol=1e-9)
    assert exact.signal == pooled.signal
    assert abs(merged.loss - pooled.loss) < 0.002
    assert "three merged files" in capsys.readouterr().out
