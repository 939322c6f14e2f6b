"""Models in a registry: what is loaded decides as what was logged, from files of which none is a pickle.

Needs the extra ``mlflow``; without it only that its absence is said in one line is tested.
"""

import contextlib
import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import make_people
from helpers import solved
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import felicific
from felicific import FairClassifier, Policy, Score, __version__
from felicific._files import read_document, write_document
from felicific.exceptions import DataError, GroupError, LotteryWarning, PolicyFileError
from felicific.mlflow import load, log_model, save_model

INSTALLED = all(find_spec(name) for name in ("mlflow", "skops", "alembic"))
needs_mlflow = pytest.mark.skipif(not INSTALLED, reason="needs the extra mlflow")
SOURCE = Path(__file__).parent.parent / "src"
TREE = "sklearn.tree._tree.Tree"

if INSTALLED:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own, and of what it imports
        import mlflow
        import mlflow.pyfunc


@pytest.fixture(scope="module", autouse=INSTALLED)
def room(tmp_path_factory):
    """A folder of these tests' own, where MLflow makes a store if it wants one: a SQLite file, by default."""
    room, before = tmp_path_factory.mktemp("store"), mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{room}/store.db")
    with contextlib.chdir(room):
        yield room
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def store(room):
    """The folder, with a store in it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of what MLflow asks of SQLAlchemy
        mlflow.search_experiments()  # which makes it
    return room


def as_table(people):
    """People in a dataframe, with a text that names the group and the score of a model."""
    X = people.table("pandas").rename(columns={"group": "code"})
    seen = X[["score", "wealth"]]
    p = LogisticRegression().fit(seen, people.y).predict_proba(seen)[:, 1]
    return X.assign(sex=np.where(X["code"] == 1, "m", "f"), p=p).drop(columns="code")


@pytest.fixture(scope="module")
def table(people):
    return as_table(people)


@pytest.fixture(scope="module")
def saved(people, table, tmp_path_factory):
    """A classifier and its folder, which nobody changes."""
    fair, folder = fit(people, table), tmp_path_factory.mktemp("saved") / "model"
    save_model(fair, folder)
    return fair, folder


def fit(people, table, estimator=None, **settings):
    model = LogisticRegression() if estimator is None else estimator
    model.fit(table[["score", "wealth", "loan"]], people.y)
    settings = {"happiness": {"cash": "decision * loan"}, "gap": 3.0, "sensitive_features": "sex", **settings}
    return FairClassifier(FrozenEstimator(model), **{"key": "id", **settings}).fit(table, people.y)


KINDS = {
    "score": {},
    "label": {"policy": "label"},
    "soft-label": {"policy": "soft-label"},
    "individual": {"policy": "individual"},
    "blind": {"policy": "individual", "sees_group": False, "gap": 20.0},
    "blind score": {"policy": "score", "sees_group": False, "gap": 20.0},
    "rounded": {"policy": Score(randomize=False)},
    "safe": {"happiness": "statistical_parity", "gap": 0.4, "confidence": 0.8},
}

ELSEWHERE = """
import json, sys
import pandas as pd
import mlflow.pyfunc
table = pd.read_json(sys.argv[2], orient="table")
print(json.dumps(mlflow.pyfunc.load_model(sys.argv[1]).predict(table).tolist()))
"""


def elsewhere(tmp_path, folder, table):
    """What a new process decides that knows the folder, and nothing of where the model was made."""
    table.to_json(tmp_path / "table.json", orient="table", index=False, double_precision=15)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(folder), str(tmp_path / "table.json")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files(folder):
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def pickles(folder):
    """Files of a folder that are pickles, by their name or by how they begin."""
    return [
        path
        for path in Path(folder).rglob("*")
        if path.is_file()
        and (path.suffix in (".pkl", ".pickle", ".joblib") or path.read_bytes()[:1] == b"\x80")
    ]


# ---------------------------------------------------------------------------------------------------------
# What is loaded decides alike


@needs_mlflow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_classifier_decides_alike(people, table, tmp_path, kind):
    """Row by row, through MLflow and as the classifier that is given back; and no file is a pickle."""
    fair = fit(people, table, **KINDS[kind])
    save_model(fair, tmp_path / "model")
    wanted = fair.predict(table)
    assert (mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(table) == wanted).all()
    again = load(tmp_path / "model")
    assert isinstance(again, FairClassifier)
    assert (again.predict(table) == wanted).all()
    assert (again.predict_proba(table) == fair.predict_proba(table)).all()
    assert again.policy_.sha256 == fair.policy_.sha256
    assert pickles(tmp_path / "model") == []


@needs_mlflow
def test_a_model_of_the_store_decides_alike_elsewhere(saved, table, store, tmp_path):
    """Logged, registered, and read by its address in this process and from its folder in a new one."""
    fair = saved[0]
    info = log_model(fair, "cash", registered_model_name="cash")
    wanted = fair.predict(table)
    for address in (info.model_uri, "models:/cash/1"):
        assert (mlflow.pyfunc.load_model(address).predict(table) == wanted).all()
        assert (load(address).predict(table) == wanted).all()
    folder = mlflow.artifacts.download_artifacts(info.model_uri)
    assert elsewhere(tmp_path, folder, table) == wanted.tolist()


@needs_mlflow
@pytest.mark.parametrize("policy", ["score", "label", "soft-label", "individual"])
def test_a_policy_alone_decides_by_the_scores_of_a_table(people, table, tmp_path, policy):
    """It is applied to named columns, whatever else the table holds, and is given back as it was."""
    rows = table.assign(y=people.y, decision="taken", predicted=(table["p"] > 0.5).astype(int))
    named = {"score": "p"} if policy != "label" else {"predicted": "predicted"}
    told = {"sensitive_features": "sex", **named}
    found = solved(rows, y="y", happiness="decision * loan", gap=3.0, policy=policy, **told)
    save_model(found, tmp_path / "model", key="id", **told)
    wanted = found.apply(rows, key="id", column="wanted", **told)["wanted"].to_numpy()
    assert (mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(rows) == wanted).all()
    again = load(tmp_path / "model")
    assert isinstance(again, Policy)
    assert again.to_json() == found.to_json()
    assert "data/felicific/classifier.skops" not in files(tmp_path / "model")


@needs_mlflow
def test_the_example_of_the_docstring_runs(tmp_path, monkeypatch):
    """Pasted into a script in an empty folder it runs, and its last line holds."""
    monkeypatch.chdir(tmp_path)
    code = textwrap.dedent(inspect.getdoc(save_model).partition(".. code-block:: python")[2])
    names = {}
    exec(compile(code, "example", "exec"), names)
    assert "assert" in code
    assert len(names["decisions"]) == 8


@needs_mlflow
def test_columns_may_be_named_when_it_is_logged(people, table, tmp_path):
    """Groups that were values at the fit are found by their column later, and keys as well."""
    seen = table[["score", "wealth", "loan", "sex", "id"]]
    model = LogisticRegression().fit(seen[["score", "wealth"]], people.y)
    fair = FairClassifier(FrozenEstimator(model), happiness="decision * loan", gap=3.0)
    fair.fit(seen, people.y, sensitive_features=seen["sex"].to_numpy())
    with pytest.raises(GroupError, match=r"which column holds it.*sensitive_features="):
        save_model(fair, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    save_model(fair, tmp_path / "model", sensitive_features="sex", key="id")
    wanted = fair.predict(seen, sensitive_features="sex", key="id")
    assert (mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(seen) == wanted).all()


@needs_mlflow
def test_without_a_key_the_content_of_the_row_draws(people, table, tmp_path):
    """As the classifier itself does, with its notice; a row that changes is another person."""
    fair = fit(people, table, key=None)
    save_model(fair, tmp_path / "model")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    with pytest.warns(LotteryWarning, match="No key says who"):
        found = loaded.predict(table)
    assert (found == fair.predict(table)).all()


@needs_mlflow
def test_a_model_that_skops_does_not_trust_is_named(people, table, tmp_path):
    """A tree is refused by name until who saves and who loads it trust it; MLflow asks the model's own file."""
    fair = fit(people, table, DecisionTreeClassifier(max_depth=3, random_state=0))
    with pytest.raises(DataError, match=rf"{TREE}.*pass trusted=\['{TREE}'\]"):
        save_model(fair, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    save_model(fair, tmp_path / "model", trusted=[TREE])
    with pytest.raises(PolicyFileError, match=rf"nobody said.*{TREE}"):
        load(tmp_path / "model")
    wanted = fair.predict(table)
    assert (load(tmp_path / "model", trusted=[TREE]).predict(table) == wanted).all()
    assert (mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(table) == wanted).all()


# ---------------------------------------------------------------------------------------------------------
# What a model carries


@needs_mlflow
def test_the_model_carries_policy_certificate_and_report(people, table, store, tmp_path):
    """All are files of it, as felicific writes them, and tags say what it is."""
    fair, others = fit(people, table, **KINDS["safe"]), make_people(seed=1)
    report = fair.report(as_table(others).assign(id=np.arange(5_000, 5_400)), others.y)
    info = log_model(fair, "safe", report=report, tags={"team": "credit"})
    folder = Path(mlflow.artifacts.download_artifacts(info.model_uri))
    names = ("policy.json", "certificate.json", "report.html", "classifier.skops", "felicific.json")
    assert {f"data/felicific/{name}" for name in names} <= files(folder)
    assert pickles(folder) == []
    held = folder / "data" / "felicific"
    assert felicific.load(held / "policy.json").sha256 == fair.policy_.sha256
    assert json.loads((held / "certificate.json").read_text()) == json.loads(
        json.dumps(fair.certificate_.to_dict())
    )
    assert (held / "report.html").read_text("utf-8") == report.to_html()
    tags = mlflow.get_logged_model(info.model_id).tags
    assert tags["team"] == "credit"
    assert tags["felicific.policy_sha256"] == fair.policy_.sha256
    assert json.loads(tags["felicific.gaps_on_fitted_people"]) == fair.gaps_
    assert tags["felicific.confidence"] == "0.8"
    assert tags["felicific.certificate"] == fair.certificate_.sentence[:1000]
    assert report.verdict.headline in tags["felicific.verdict"]
    assert info.metadata["felicific"]["policy_kind"] == "score"


@needs_mlflow
def test_the_salt_is_in_no_tag_and_no_parameter(saved, store):
    """Not in what lists of models show: of everything that MLflow is told, only the model's own files hold it."""
    fair = saved[0]
    with mlflow.start_run() as run:
        info = log_model(fair, "salted")
    logged = mlflow.get_logged_model(info.model_id)
    told = mlflow.get_run(run.info.run_id).data
    for part in (logged.tags, logged.params, told.tags, told.params, info.metadata):
        assert fair.policy_.salt not in str(part)
    folder = Path(mlflow.artifacts.download_artifacts(info.model_uri))
    holding = {name for name in files(folder) if fair.policy_.salt.encode() in (folder / name).read_bytes()}
    assert "data/felicific/policy.json" in holding
    assert holding <= {"data/felicific/policy.json", "data/felicific/classifier.skops"}
    assert fair.policy_.salt.encode() not in (store / "store.db").read_bytes()


@needs_mlflow
def test_a_salt_of_a_seed_is_warned_of(people, table, tmp_path):
    """As when a policy is saved: anybody could compute the draws."""
    fair = fit(people, table, random_state=0)
    with pytest.warns(LotteryWarning, match="comes from a seed") as caught:
        save_model(fair, tmp_path / "model")
    assert caught[0].filename == __file__


@needs_mlflow
def test_hostile_names_stay_data(people, table, tmp_path, store):
    """Names of any length and content are in tags that a store takes, and in files that can be read again."""
    name = "<script>alert('1')</script>\n\"💥" + "x" * 10_000
    fair = fit(people, table, happiness={name: "decision * loan"})
    info = log_model(fair, "hostile")
    tags = mlflow.get_logged_model(info.model_id).tags
    assert all(len(value) <= 1000 for key, value in tags.items() if key.startswith("felicific."))
    assert list(load(info.model_uri).gaps_) == [name]


@needs_mlflow
def test_requirements_name_what_the_model_is_made_of(people, table, tmp_path):
    """The requirements are felicific and the libraries of its types in their versions; or what one says oneself."""
    fair = fit(people, table, make_pipeline(StandardScaler(), LogisticRegression()))
    save_model(fair, tmp_path / "a", extra_pip_requirements=["tabulate"])
    lines = (tmp_path / "a" / "requirements.txt").read_text().splitlines()
    for line in (f"felicific[mlflow]=={__version__}", f"scikit-learn=={version('scikit-learn')}", "tabulate"):
        assert line in lines
    save_model(fair, tmp_path / "b", pip_requirements=["felicific"])
    assert "felicific" in (tmp_path / "b" / "requirements.txt").read_text().splitlines()


@needs_mlflow
@pytest.mark.filterwarnings(
    "ignore:.*An input example was not provided", "ignore:.*integer column"
)  # MLflow's advice
def test_a_signature_is_kept(saved, table, tmp_path):
    """With one, MLflow refuses tables that lack a column, in its own words."""
    fair = saved[0]
    signature = mlflow.models.infer_signature(table, fair.predict(table))
    save_model(fair, tmp_path / "model", signature=signature)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert (loaded.predict(table) == fair.predict(table)).all()
    with pytest.raises(mlflow.exceptions.MlflowException, match="sex"):
        loaded.predict(table.drop(columns="sex"))


# ---------------------------------------------------------------------------------------------------------
# What goes wrong


@needs_mlflow
@pytest.mark.parametrize("name", ["policy.json", "certificate.json", "classifier.skops", "felicific.json"])
@pytest.mark.parametrize("how", ["cut", "gone", "altered"])
def test_a_damaged_model_is_refused_in_one_line(saved, tmp_path, name, how):
    """Whatever happened to whichever file, both doors say that it is damaged, and which file."""
    shutil.copytree(saved[1], tmp_path / "model")
    path = tmp_path / "model" / "data" / "felicific" / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        half = len(content) // 2
        path.write_bytes(
            content[:half]
            if how == "cut"
            else content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        )
    doors = [lambda: mlflow.pyfunc.load_model(str(tmp_path / "model"))]
    if (how, name) != ("gone", "felicific.json"):
        doors.append(lambda: load(tmp_path / "model"))
    for door in doors:
        with pytest.raises(PolicyFileError, match="is damaged") as caught:
            door()
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)


@needs_mlflow
def test_a_policy_that_is_not_the_classifiers_is_refused(people, table, saved, tmp_path):
    """The policy that people read in the registry is the one that decides, even if every checksum is made to fit."""
    shutil.copytree(saved[1], tmp_path / "model")
    held = tmp_path / "model" / "data" / "felicific"
    other = fit(people, table, gap=9.0).policy_.to_json().encode()
    (held / "policy.json").write_bytes(other)
    content = read_document((held / "felicific.json").read_text(), "felicific model")
    content["files"]["policy.json"] = hashlib.sha256(other).hexdigest()
    (held / "felicific.json").write_text(write_document(content, "felicific model"))
    with pytest.raises(PolicyFileError, match=r"policy\.json is not the policy of classifier\.skops"):
        load(tmp_path / "model")


@needs_mlflow
def test_what_is_no_model_of_felicific_is_refused(people, table, tmp_path, store):
    """Neither an estimator of others, nor one that is not fitted, nor a folder that others wrote."""
    with pytest.raises(DataError, match="The DummyClassifier is no model of felicific"):
        save_model(DummyClassifier(), tmp_path / "model")
    with pytest.raises(DataError, match="The FairClassifier is not fitted"):
        log_model(FairClassifier(DummyClassifier(), gap=0.0))
    mlflow.pyfunc.save_model(str(tmp_path / "other"), loader_module="json", pip_requirements=[])
    with pytest.raises(PolicyFileError, match="holds no model that felicific logged"):
        load(tmp_path / "other")


@needs_mlflow
def test_a_policy_without_a_lottery_needs_no_key(people, table, tmp_path):
    """Nothing is drawn, so nothing has to say who a person is."""
    rows, told = table.assign(y=people.y), {"score": "p", "sensitive_features": "sex"}
    policy = solved(rows, y="y", happiness="decision * loan", gap=1e9, **told)
    assert not policy.is_randomized
    save_model(policy, tmp_path / "model", **told)
    decided = policy.apply(rows, **told, key="id")["decision"]
    assert (mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(rows) == decided).all()


@needs_mlflow
def test_what_is_asked_of_columns_has_to_make_sense(people, table, saved, tmp_path):
    """No key for a lottery, columns of scores for a classifier, names for an array: all are said before any writing."""
    rows = table.assign(y=people.y)
    told = {"score": "p", "sensitive_features": "sex"}
    policy = solved(rows, y="y", happiness="decision * loan", gap=3.0, **told)
    with pytest.raises(DataError, match="by lottery, and there is no key"):
        save_model(policy, tmp_path / "model", **told)
    scores = {"score": table["p"].to_numpy()}  # of an array no name is remembered
    nameless = solved(rows, y="y", happiness="decision * loan", gap=3.0, **told | scores)
    with pytest.raises(DataError, match="score="):
        save_model(nameless, tmp_path / "model", sensitive_features="sex", key="id")
    with pytest.raises(DataError, match=r"Leave score=.*log fair\.policy_"):
        save_model(saved[0], tmp_path / "model", score="p")
    with pytest.raises(DataError, match="names no column"):
        save_model(saved[0], tmp_path / "model", key=3)
    with pytest.raises(DataError, match="The str is no report"):
        save_model(saved[0], tmp_path / "model", report="page.html")
    with pytest.raises(DataError, match="loader_module="):
        save_model(saved[0], tmp_path / "model", loader_module="json")
    array = rows[["score", "wealth", "loan"]].to_numpy()
    model = FrozenEstimator(LogisticRegression().fit(array, people.y))
    fair = FairClassifier(model, gap=0.0, happiness="statistical_parity").fit(
        array, people.y, sensitive_features=table["sex"].to_numpy()
    )
    with pytest.raises(DataError, match="fitted on an array"):
        save_model(fair, tmp_path / "model", sensitive_features="sex")
    assert list(tmp_path.iterdir()) == []


@needs_mlflow
def test_functions_that_no_file_holds_are_refused_when_saved(people, table, tmp_path):
    """A Python function of a policy alone, and one that no other process could import."""
    rows = table.assign(y=people.y)
    told = {"score": "p", "sensitive_features": "sex"}
    policy = solved(
        rows, y="y", happiness=lambda decision, x: decision * x["loan"], gap=3.0, policy="individual", **told
    )
    with pytest.raises(DataError, match=r"could not be read again.*as expressions"):
        save_model(policy, tmp_path / "model", key="id", **told)
    fair = fit(people, table, happiness=lambda decision, x: decision * x["loan"])
    with pytest.raises(DataError, match="lambda") as caught:
        save_model(fair, tmp_path / "model")
    (own,) = eval(str(caught.value).partition("trusted=")[2].partition("]")[0] + "]")
    with pytest.raises(DataError, match=r"could not be read again.*can be imported"):
        save_model(fair, tmp_path / "model", trusted=[own])
    assert list(tmp_path.iterdir()) == []


@needs_mlflow
def test_nothing_is_half_written(saved, tmp_path, monkeypatch):
    """A folder that exists is left alone, and one that could not be finished is not there."""
    fair = saved[0]
    (tmp_path / "there").mkdir()
    with pytest.raises(DataError, match="exists already"):
        save_model(fair, tmp_path / "there")
    assert files(tmp_path) == set()
    monkeypatch.setattr("mlflow.models.Model.save", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_model(fair, tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("gone", ["mlflow", "skops"])
def test_without_the_extra_one_line_says_what_to_install(gone):
    """Importing felicific.mlflow does nothing; using it names the package and the command."""
    code = f"""
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {gone!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Gone())
import felicific.mlflow
try:
    {"felicific.mlflow.load('model')" if gone == "mlflow" else "felicific.mlflow._needed('skops.io')"}
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert done.stdout.startswith(f"MLflow models need {gone}")
    assert done.stdout.endswith("Install it: pip install 'felicific[mlflow]'\n")
