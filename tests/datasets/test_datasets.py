"""The data sets: their published facts, their three forms, their errors."""

import functools
import lzma
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from felicific.datasets import Dataset, _dataset, _fico, adult, fico, financial_loans, synthetic_loans
from felicific.datasets import _adult as adult_module
from felicific.datasets._financial import FEATURES, NEARBY, VARIABLE, expected_return, net_gain, yearly_rate
from felicific.datasets._synthetic import EDUCATION, RACE, WORKCLASS
from felicific.exceptions import DataError

# Cached, because no test here changes the tables that it gets.
LOADERS = {
    "synthetic": functools.cache(lambda form: synthetic_loans(2_000, seed=7, as_frame=form)),
    "adult": functools.cache(lambda form: adult(as_frame=form)),
    "financial": functools.cache(lambda form: financial_loans(n=2_000, seed=7, as_frame=form)),
}
FORMS = ("pandas", "polars")


def find_loans():
    """The public loan file, if this machine has it."""
    nearby = Path(__file__).parents[2] / NEARBY
    path = Path(os.environ.get(VARIABLE) or nearby)
    return path if path.is_file() else None


LOANS = find_loans()
needs_loans = pytest.mark.skipif(LOANS is None, reason="the public Loan.csv is not on this machine")


@pytest.fixture(scope="module")
def adult_data():
    return LOADERS["adult"](False)


@pytest.fixture(scope="module")
def synthetic_data():
    return synthetic_loans(as_frame=False)


@pytest.fixture(scope="module")
def simulated():
    return financial_loans(n=20_000, as_frame=False)


@pytest.fixture(scope="module")
def real_loans():
    return financial_loans(LOANS, as_frame=False)


@pytest.fixture
def no_loans(monkeypatch, tmp_path):
    """A directory and an environment from which no loan file can be found."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_file(tmp_path):
    """Eight simulated applications, written as a file of the public format."""
    data = financial_loans(n=8, as_frame=False)
    return write_loans(tmp_path / "small.csv", data)


def write_loans(path, data, leave_out=(), replace=None):
    columns = {name: data.X[name].astype(str) for name in FEATURES}
    columns["LoanApproved"] = data.y.astype(str)
    columns["RiskScore"] = np.full(len(data.y), "50.0")
    for name, value in (replace or {}).items():
        columns[name] = np.array([*columns[name][:2], value, *columns[name][3:]])
    names = [name for name in columns if name not in leave_out]
    lines = [",".join(names), *(",".join(row) for row in zip(*(columns[n] for n in names), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def wrong_message(excinfo, *parts):
    """The parts that an error message fails to mention."""
    return [part for part in parts if part not in str(excinfo.value)]


def test_wrong_message_finds_what_is_missing():
    """The helper reports the part that a message lacks, so that it cannot pass on anything."""
    with pytest.raises(DataError) as excinfo:
        synthetic_loans(0)
    assert wrong_message(excinfo, "n is 0", "no such words") == ["no such words"]


# ---------------------------------------------------------------- every data set


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loader", LOADERS)
def test_forms_hold_the_same(loader, form):
    """A frame holds the same columns, in the same order, with the same values as the dict of arrays."""
    plain, framed = LOADERS[loader](False), LOADERS[loader](form)
    assert type(framed.X).__module__.startswith(form)
    assert list(framed.X.columns) == list(plain.X)
    for name, values in plain.X.items():
        column = framed.X[name].to_numpy()
        np.testing.assert_array_equal(column, values)
        assert np.issubdtype(values.dtype, np.str_) or column.dtype == values.dtype
    np.testing.assert_array_equal(framed.y, plain.y)


@pytest.mark.parametrize("decision", [0, 1])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loader", LOADERS)
def test_happiness_is_the_same_on_every_form(loader, form, decision):
    """The happiness function gives the same numbers on a frame as on the dict of arrays."""
    plain, framed = LOADERS[loader](False), LOADERS[loader](form)
    expected = plain.happiness.function(decision=decision, x=plain.X)
    got = np.asarray(framed.happiness.function(decision=decision, x=framed.X))
    assert expected.shape == plain.y.shape
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("loader", LOADERS)
def test_dataset_is_complete(loader):
    """Labels are 0/1 integers, one per row; the group column exists; no value is missing."""
    data = LOADERS[loader](False)
    assert isinstance(data, Dataset)
    assert isinstance(data.y, np.ndarray)
    assert np.issubdtype(data.y.dtype, np.integer)
    assert set(np.unique(data.y)) == {0, 1}
    assert len(np.unique(data.X[data.sensitive_features])) == 2
    for values in data.X.values():
        assert values.shape == data.y.shape
        assert values.dtype.kind in "iUf"
        assert values.dtype.kind != "f" or np.isfinite(values).all()
    assert not data.happiness.looks_at_y
    assert "{" not in data.description
    assert max(map(len, data.description.splitlines())) <= 110


@pytest.mark.parametrize("loader", LOADERS)
def test_happiness_pickles(loader):
    """A data set's happiness survives pickling, because its function stands in a module."""
    happiness = LOADERS[loader](False).happiness
    assert pickle.loads(pickle.dumps(happiness)) == happiness


@pytest.mark.parametrize("loader", LOADERS)
def test_repr_is_short(loader):
    """The repr names the data without printing the table."""
    data = LOADERS[loader](False)
    assert data.name in repr(data)
    assert len(repr(data)) < 400


@pytest.mark.parametrize("make", [synthetic_loans, lambda n, seed: financial_loans(n=n, seed=seed)])
def test_seed_decides_everything(make):
    """The same seed gives the same rows and labels, another seed gives others."""
    one, again, other = make(500, seed=3), make(500, seed=3), make(500, seed=4)
    assert one.X.equals(again.X)
    assert (one.y == again.y).all()
    assert not one.X.equals(other.X)


def test_import_is_light():
    """Importing the data sets imports no dataframe library and no scikit-learn."""
    code = "import sys, felicific.datasets; print({'pandas', 'polars', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---------------------------------------------------------------- as_frame


def test_auto_prefers_pandas_then_polars_then_dict(monkeypatch):
    """The automatic form is pandas, without it Polars, without both a dict of arrays."""
    assert type(synthetic_loans(5).X).__module__.startswith("pandas")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(synthetic_loans(5).X).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    assert type(synthetic_loans(5).X) is dict


@pytest.mark.parametrize("library", FORMS)
def test_missing_library_says_what_to_install(library, monkeypatch):
    """A frame of a library that is not installed raises ImportError with the way out."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError) as excinfo:
        synthetic_loans(5, as_frame=library)
    assert not wrong_message(excinfo, f'as_frame="{library}"', f"pip install {library}", "as_frame=False")


@pytest.mark.parametrize("form", [True, None, 0, "Pandas", "dask", ["pandas"]])
@pytest.mark.parametrize("load", [adult, synthetic_loans, financial_loans])
def test_unknown_form_raises(load, form):
    """A form that does not exist raises at once and lists the ones that do."""
    with pytest.raises(DataError) as excinfo:
        load(as_frame=form)
    assert not wrong_message(excinfo, repr(form), '"auto"', '"pandas"', '"polars"', "False")


@pytest.mark.parametrize("n", [0, -1, 2.5, "10", True])
def test_bad_size_raises(n):
    """A number of rows that is not a positive whole number raises, in both simulations."""
    with pytest.raises(DataError, match=r"which is no number of rows\. Use a whole number of at least 1\."):
        synthetic_loans(n)
    with pytest.raises(DataError, match="which is no number of rows"):
        financial_loans(n=n)


def test_numpy_integer_size_is_fine():
    """A NumPy integer is a number of rows like any other."""
    assert len(synthetic_loans(np.int64(3)).y) == len(financial_loans(n=np.int32(3)).y) == 3


# ---------------------------------------------------------------- synthetic loans


def test_synthetic_columns(synthetic_data):
    """The table has the paper's eight columns and as many rows as Adult; the base amount is no column."""
    assert list(synthetic_data.X) == [
        "sex",
        "age",
        "hours_per_week",
        "education",
        "workclass",
        "race",
        "yearly_salary",
        "loan_requested",
    ]
    assert len(synthetic_data.y) == 48_842


def test_synthetic_label_follows_the_base_amount(synthetic_data):
    """With U = loan - 50,000 for women, the label is 1 exactly when ten salaries reach U."""
    x = synthetic_data.X
    base = x["loan_requested"] - 50_000 * (x["sex"] == "Female")
    decided = np.abs(10 * x["yearly_salary"] - base) > 1e-6  # adding and removing 50,000 costs the last digit
    expected = 10 * x["yearly_salary"] >= base
    assert decided.all()
    np.testing.assert_array_equal(synthetic_data.y, expected)


def test_synthetic_facts(synthetic_data):
    """A third are women; half are approved, in both groups; women ask for $50,000 more (5 standard errors)."""
    woman = synthetic_data.X["sex"] == "Female"
    loan, salary = synthetic_data.X["loan_requested"], synthetic_data.X["yearly_salary"]
    n = len(woman)
    assert woman.mean() == pytest.approx(1 / 3, abs=5 * np.sqrt(2 / 9 / n))
    for group in (woman, ~woman):
        assert synthetic_data.y[group].mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(group.sum()))
        assert loan[group].std() == pytest.approx(10_000, rel=0.05)
    error = 5 * 10_000 * np.sqrt(1 / woman.sum() + 1 / (~woman).sum())
    assert loan[woman].mean() - loan[~woman].mean() == pytest.approx(50_000, abs=error)
    assert loan[~woman].mean() == pytest.approx(500_000, abs=error)
    assert salary.mean() == pytest.approx(50_000, abs=5 * 1_000 / np.sqrt(n))
    assert salary.std() == pytest.approx(1_000, rel=0.03)


def test_synthetic_noise_is_uniform(synthetic_data, adult_data):
    """The noise columns cover their ranges evenly, under category names that Adult uses."""
    x = synthetic_data.X
    for name, values in {
        "age": range(17, 91),
        "hours_per_week": range(1, 100),
        "education": EDUCATION,
        "workclass": WORKCLASS,
        "race": RACE,
    }.items():
        found, counts = np.unique(x[name], return_counts=True)
        assert set(found.tolist()) == set(values)
        expected = len(x[name]) / len(values)
        chi2 = ((counts - expected) ** 2 / expected).sum()
        assert chi2 < len(values) + 5 * np.sqrt(2 * len(values))
    for name in ("education", "workclass", "race", "sex"):
        assert set(x[name]) == set(adult_data.X[name]) - {"?"}
    assert (x["age"].min(), x["age"].max()) == (adult_data.X["age"].min(), adult_data.X["age"].max())


def test_synthetic_columns_are_independent(synthetic_data):
    """No two of the drawn columns are correlated beyond 5 standard errors, sex and base amount included."""
    x = dict(synthetic_data.X)
    x["loan_requested"] = x["loan_requested"] - 50_000 * (x["sex"] == "Female")
    codes = [
        np.unique(v, return_inverse=True)[1].astype(float) if v.dtype.kind == "U" else v for v in x.values()
    ]
    correlation = np.corrcoef(codes)
    np.fill_diagonal(correlation, 0)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(codes[0]))


def test_funding_is_the_loan_if_approved(synthetic_data):
    """Funding is nothing for the denied and the whole amount for the approved, in dollars."""
    happiness = synthetic_data.happiness
    assert (happiness.name, happiness.unit) == ("funding", "$")
    assert (happiness.function(decision=0, x=synthetic_data.X) == 0).all()
    assert (happiness.function(decision=1, x=synthetic_data.X) == synthetic_data.X["loan_requested"]).all()


# ---------------------------------------------------------------- Adult


def test_adult_facts(adult_data):
    """The embedded Adult shows the published shares, hours and oddities."""
    x, y = adult_data.X, adult_data.y
    woman, hours = x["sex"] == "Female", x["hours-per-week"]
    assert (len(y), len(x)) == (48_842, 14)
    assert woman.mean() == pytest.approx(0.3315, abs=5e-5)
    assert y.mean() == pytest.approx(0.2393, abs=5e-5)
    assert (hours.min(), hours.max()) == (1, 99)
    assert hours.mean() == pytest.approx(40.42, abs=5e-3)
    assert hours[woman].mean() == pytest.approx(36.40, abs=5e-3)
    assert hours[~woman].mean() == pytest.approx(42.42, abs=5e-3)
    unknown = {name: int((column == "?").sum()) for name, column in x.items() if column.dtype.kind == "U"}
    assert {name: count for name, count in unknown.items() if count} == {
        "workclass": 2_799,
        "occupation": 2_809,
        "native-country": 857,
    }
    pairs = set(zip(x["education"].tolist(), x["education-num"].tolist(), strict=True))
    assert len(pairs) == 16
    assert "income" not in x


def test_adult_rows_are_in_order(adult_data):
    """The first row is the first of the training part, row 32,561 the first of the test part."""
    x = adult_data.X
    first = {name: x[name][0].item() for name in ("age", "workclass", "fnlwgt", "sex", "native-country")}
    assert first == {
        "age": 39,
        "workclass": "State-gov",
        "fnlwgt": 77_516,
        "sex": "Male",
        "native-country": "United-States",
    }
    assert (x["age"][32_561], x["education"][32_561], x["fnlwgt"][32_561]) == (25, "11th", 226_802)


def test_adult_happiness(adult_data):
    """Happiness is 100 points for a yes, less the weekly hours, and stays inside its stated bounds."""
    happiness = adult_data.happiness
    assert (happiness.name, happiness.unit) == ("leisurely income", "points")
    low, high = happiness.bounds
    hours = adult_data.X["hours-per-week"]
    no, yes = (happiness.function(decision=d, x=adult_data.X) for d in (0, 1))
    np.testing.assert_array_equal(no, -hours)
    np.testing.assert_array_equal(yes, 100 - hours)
    assert (no.min(), yes.max()) == (low, high)


# ---------------------------------------------------------------- embedded files


@pytest.mark.parametrize(
    ("load", "module", "prefix"),
    [(adult, adult_module, ""), (fico, _fico, "CDF_"), (fico, _fico, "DEFAULT_"), (fico, _fico, "TOTALS_")],
)
def test_tampered_file_raises(load, module, prefix, monkeypatch, tmp_path):
    """Changing one character of an embedded file makes its loader raise, naming the file."""
    name = getattr(module, prefix + "FILE")
    for file in _dataset.FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = lzma.decompress((tmp_path / name).read_bytes())
    (tmp_path / name).write_bytes(lzma.compress(content[:-3] + b"7" + content[-2:], preset=0))
    monkeypatch.setattr(_dataset, "FOLDER", tmp_path)
    with pytest.raises(DataError) as excinfo:
        load()
    expected = getattr(module, prefix + "SHA256")
    assert not wrong_message(excinfo, name, expected, "Install felicific again")


@pytest.mark.parametrize("damage", [None, b"", b"not xz", "truncated"])
def test_unreadable_file_raises(damage, monkeypatch, tmp_path):
    """An embedded file that is absent, empty, truncated or no xz file raises, naming the file."""
    whole = (_dataset.FOLDER / _fico.CDF_FILE).read_bytes()
    if damage is not None:
        (tmp_path / _fico.CDF_FILE).write_bytes(whole[:-40] if damage == "truncated" else damage)
    monkeypatch.setattr(_dataset, "FOLDER", tmp_path)
    with pytest.raises(DataError) as excinfo:
        fico()
    assert not wrong_message(excinfo, _fico.CDF_FILE, "Install felicific again")


def test_attribution_names_every_file():
    """The attribution beside the data names every file and its hash, the licence and the DOI."""
    text = (_dataset.FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "10.24432/C5XW20" in text
    assert "public domain" in text
    hashes = (adult_module.SHA256, _fico.CDF_SHA256, _fico.DEFAULT_SHA256, _fico.TOTALS_SHA256)
    assert [sha for sha in hashes if sha not in text] == []
    files = [file.name for file in _dataset.FOLDER.iterdir() if file.name.endswith(".xz")]
    assert len(files) == len(hashes)
    assert [name for name in files if name not in text] == []


# ---------------------------------------------------------------- FICO


def test_fico_shapes_and_masses():
    """Four groups over 198 ascending levels; shares are masses that sum to one; repayment is a rate."""
    data = fico()
    assert data.groups == ("Non-Hispanic white", "Black", "Hispanic", "Asian")
    assert data.scores.shape == (198,)
    assert data.share.shape == data.repay.shape == (4, 198)
    assert (np.diff(data.scores) > 0).all()
    assert (data.share >= 0).all()
    np.testing.assert_allclose(data.share.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert ((data.repay > 0) & (data.repay < 1)).all()
    assert data.totals.tolist() == [133_165, 18_274, 14_702, 7_906]


def test_fico_values():
    """Cumulated shares are the published percentages, and repayment is one less the default rate."""
    data = fico()
    np.testing.assert_allclose(data.share.cumsum(axis=1)[:, 1] * 100, [0.26, 1.19, 0.47, 0.13], atol=1e-9)
    np.testing.assert_allclose(data.repay[:, 0], [0.0146, 0.0033, 0.0095, 0.0523], atol=1e-12)
    np.testing.assert_allclose(data.repay[:, -1], [0.9910, 0.9904, 0.9913, 0.9921], atol=1e-12)


def test_fico_oddities():
    """Three score levels are missing; repayment falls somewhere for the Black and the Asian group only."""
    data = fico()
    assert set(np.arange(0, 100.5, 0.5)) - set(data.scores) == {72.5, 77.5, 92.5}
    falls = (np.diff(data.repay, axis=1) < 0).any(axis=1)
    assert [group for group, fall in zip(data.groups, falls, strict=True) if fall] == ["Black", "Asian"]
    for fact in ("72.5", "77.5", "92.5", "not monotone", "public domain"):
        assert fact in " ".join(data.description.split())


@pytest.mark.parametrize("cdf", [[[10.0, 5.0, 100.0]], [[10.0, 50.0, 99.0]]])
def test_impossible_shares_raise(cdf):
    """Cumulative shares that fall or do not reach 100 % raise."""
    with pytest.raises(DataError, match="cumulative shares fall"):
        _fico.shares(np.array(cdf))


def test_rounded_shares_pass():
    """A fall by one unit of the printed decimals is rounding: no mass there, and the sum is still one."""
    share = _fico.shares(np.array([[50.0, 49.99, 100.0]]))
    assert share[0, 1] == 0
    assert share.sum() == pytest.approx(1, abs=1e-15)


def test_tables_that_disagree_raise(monkeypatch):
    """Tables with different groups raise."""
    table = _fico._table
    monkeypatch.setattr(
        _fico, "_table", lambda file, sha: (("A",) if "cdf" in file else ("B",), *table(file, sha)[1:])
    )
    with pytest.raises(DataError, match="disagree on groups or score levels"):
        fico()


# ---------------------------------------------------------------- financial loans: the happiness


def test_net_gain_by_hand():
    """Two loans worked out by hand: L (R - rho t), with t in years."""
    x = {
        "LoanAmount": np.array([10_000, 20_000]),
        "LoanDuration": np.array([12, 48]),
        "CreditScore": np.array([700, 599]),
        "LoanPurpose": np.array(["Education", "Auto"]),
        "EducationLevel": np.array(["Doctorate", "High School"]),
        "EmploymentStatus": np.array(["Self-Employed", "Unemployed"]),
        "JobTenure": np.array([6, 5]),
    }
    # .12 + .02 + .01 + .01 - .06 * 1 = .10 and .02 - .18 * 4 = -.70
    np.testing.assert_allclose(net_gain(1, x), [1_000, -14_000], rtol=1e-12)
    np.testing.assert_array_equal(net_gain(0, x), [0, 0])


def test_yearly_rate_steps():
    """The rate steps down at 600, 650, 700 and 750, each step belonging to the better rate."""
    scores = np.array([300, 599, 600, 649, 650, 699, 700, 749, 750, 850])
    rates = [0.18, 0.18, 0.12, 0.12, 0.08, 0.08, 0.06, 0.06, 0.04, 0.04]
    np.testing.assert_array_equal(yearly_rate(scores), rates)


def test_expected_return_adds_bonuses():
    """Each bonus counts once, and only for the values that have one."""
    purposes = ["Home", "Auto", "Education", "Debt Consolidation", "Other"]
    base = {"EducationLevel": "Bachelor", "EmploymentStatus": "Unemployed", "JobTenure": 5}
    table = {name: np.array([value] * 5) for name, value in base.items()}
    table["LoanPurpose"] = np.array(purposes)
    np.testing.assert_allclose(expected_return(table), [0.08, 0.02, 0.12, 0.04, 0.05])
    table["EducationLevel"] = np.array(["High School", "Associate", "Bachelor", "Master", "Doctorate"])
    table["EmploymentStatus"] = np.array(
        ["Employed", "Self-Employed", "Unemployed", "Unemployed", "Employed"]
    )
    table["JobTenure"] = np.array([5, 6, 0, 5, 20])
    np.testing.assert_allclose(expected_return(table), [0.09, 0.04, 0.12, 0.05, 0.09])


# ---------------------------------------------------------------- financial loans: simulated


def test_simulated_columns(simulated):
    """The table has the file's 34 features in order and then the group; neither label nor RiskScore is in it."""
    assert list(simulated.X) == [*FEATURES, "age_group"]
    assert len(FEATURES) == 34
    assert not {"LoanApproved", "RiskScore"} & set(simulated.X)
    assert set(simulated.X["age_group"]) == {"under 40", "40 and over"}
    np.testing.assert_array_equal(simulated.X["age_group"] == "under 40", simulated.X["Age"] < 40)
    assert (simulated.happiness.name, simulated.happiness.unit) == ("net gain", "$")


def test_simulated_identities(simulated):
    """Derived columns follow from the others: monthly income, net worth, base rate, annuity, total debt-to-income."""
    x = simulated.X
    honest = np.abs(x["AnnualIncome"] - 12 * x["MonthlyIncome"]) < 1e-6
    assert 1 - honest.mean() == pytest.approx(0.01, abs=0.004)
    slip = x["AnnualIncome"][~honest] / (12 * x["MonthlyIncome"][~honest])
    assert ((slip > 1.499) & (slip < 2)).all()
    worth = x["TotalAssets"] - x["TotalLiabilities"]
    np.testing.assert_array_equal(x["NetWorth"][worth >= 1_000], worth[worth >= 1_000])
    assert (x["NetWorth"] >= 1_000).all()
    base = 0.03 + (850 - x["CreditScore"]) / 2_000 + x["LoanAmount"] / 1_000_000 + x["LoanDuration"] / 1_200
    np.testing.assert_allclose(x["BaseInterestRate"], base, rtol=1e-12)
    factor = x["InterestRate"] / base
    assert factor.min() >= 0.8 - 1e-12
    assert factor.max() <= 1.2 + 1e-12
    owed = x["LoanAmount"].astype(float)
    for _ in range(12):  # twelve instalments pay back exactly the one-year loans
        owed = owed * (1 + x["InterestRate"] / 12) - x["MonthlyLoanPayment"]
    one_year = x["LoanDuration"] == 12
    np.testing.assert_allclose(owed[one_year], 0, atol=1e-6)
    assert (owed[~one_year] > 0).all()
    total = (x["MonthlyDebtPayments"] + x["MonthlyLoanPayment"]) / x["MonthlyIncome"]
    np.testing.assert_allclose(x["TotalDebtToIncomeRatio"], total, rtol=1e-12)


def test_simulated_facts(simulated):
    """Approval rate, ranges, means and shares agree with what is known of the public file."""
    x, y = simulated.X, simulated.y
    assert y.mean() == pytest.approx(0.239, abs=0.012)
    for name, low, high in [
        ("Age", 18, 80),
        ("CreditScore", 300, 850),
        ("LoanDuration", 12, 120),
        ("LengthOfCreditHistory", 1, 29),
        ("NumberOfDependents", 0, 5),
    ]:
        assert x[name].min() >= low
        assert x[name].max() <= high
    for name, mean in {
        "LoanAmount": np.exp(10 + 0.5**2 / 2),
        "MonthlyDebtPayments": np.exp(6 + 0.5**2 / 2),
        "CreditCardUtilizationRate": 2 / 7,
        "DebtToIncomeRatio": 2 / 7,
        "UtilityBillsPaymentHistory": 0.8,
        "NumberOfOpenCreditLines": 3,
        "NumberOfCreditInquiries": 1,
        "PaymentHistory": 24,
        "JobTenure": 5,
        "BankruptcyHistory": 0.05,
        "PreviousLoanDefaults": 0.1,
        "LengthOfCreditHistory": 15,
    }.items():
        error = x[name].std() / np.sqrt(len(y))
        cut = 0.5 if name in ("LoanAmount", "MonthlyDebtPayments") else 0  # whole dollars
        assert x[name].mean() == pytest.approx(mean - cut, abs=5 * error), name
    for name, value, share in [
        ("EducationLevel", "Doctorate", 0.05),
        ("MaritalStatus", "Married", 0.5),
        ("HomeOwnershipStatus", "Mortgage", 0.4),
        ("LoanPurpose", "Debt Consolidation", 0.25),
        ("EmploymentStatus", "Unemployed", 0.05 + 0.1 * 0.145),
    ]:
        assert (x[name] == value).mean() == pytest.approx(share, abs=0.015), name


def test_simulated_null_columns(simulated):
    """Columns that have no influence on approval are uncorrelated with it (5 standard errors); income is not."""
    x, y = simulated.X, simulated.y
    null = ["NumberOfDependents", "JobTenure", "SavingsAccountBalance", "CheckingAccountBalance"]
    null += ["DebtToIncomeRatio", "CreditCardUtilizationRate", "NumberOfOpenCreditLines"]
    null += ["NumberOfCreditInquiries", "UtilityBillsPaymentHistory"]
    bound = 5 / np.sqrt(len(y))
    assert [name for name in null if abs(np.corrcoef(x[name], y)[0, 1]) > bound] == []
    assert np.corrcoef(x["AnnualIncome"], y)[0, 1] > 0.5


def test_simulation_longer_than_the_calendar():
    """Beyond 20,000 applications the calendar starts again on its first day."""
    dates = financial_loans(n=20_001, as_frame=False).X["ApplicationDate"]
    assert (dates[0], dates[19_999], dates[20_000]) == ("2018-01-01", "2072-10-03", "2018-01-01")


def test_description_says_simulated(no_loans):
    """Without a file 20,000 applications are simulated, and name and description say so, with both caveats."""
    data = financial_loans(as_frame=False)
    assert len(data.y) == 20_000
    assert "simulated" in data.name
    for fact in ("Simulated, not the public file", "seed 0", "no group column", "48,842", "20,000", "months"):
        assert fact in " ".join(data.description.split())


# ---------------------------------------------------------------- financial loans: from a file


def test_file_round_trip(small_file):
    """A written file is read back: same columns, kinds, values and labels, and the description says where from."""
    data, made = financial_loans(small_file, as_frame=False), financial_loans(n=8, as_frame=False)
    for name, values in made.X.items():
        np.testing.assert_array_equal(data.X[name], values)
        assert data.X[name].dtype.kind == values.dtype.kind
    np.testing.assert_array_equal(data.y, made.y)
    assert "read from small.csv: 8 rows" in data.description
    assert "imulated" not in data.description
    assert data.name == "financial loans"


def test_file_is_found(no_loans, small_file, monkeypatch):
    """The order is path, environment variable, neighbouring folder; n beats the last two."""
    work = no_loans / "project"
    nearby = work / NEARBY
    work.mkdir()
    monkeypatch.chdir(work)
    nearby.resolve().parent.mkdir(parents=True)
    write_loans(nearby.resolve(), financial_loans(n=5, as_frame=False))
    assert len(financial_loans().y) == 5
    monkeypatch.setenv(VARIABLE, str(small_file))
    assert len(financial_loans().y) == 8
    assert len(financial_loans(str(nearby)).y) == 5
    assert len(financial_loans(n=3).y) == 3
    monkeypatch.setenv(VARIABLE, "")
    assert len(financial_loans().y) == 5


def test_byte_order_mark_and_extra_columns_are_fine(small_file):
    """A byte order mark and further columns do no harm."""
    lines = small_file.read_text(encoding="utf-8").splitlines()
    small_file.write_text("\n".join(f"{line},extra" for line in lines) + "\n\n", encoding="utf-8-sig")
    data = financial_loans(small_file, as_frame=False)
    assert list(data.X) == [*FEATURES, "age_group"]
    assert len(data.y) == 8


def test_path_and_size_together_raise(small_file):
    """A path and a size contradict each other."""
    with pytest.raises(DataError, match="Both path and n were given"):
        financial_loans(small_file, n=5)


def test_another_file_raises(tmp_path):
    """A file without the needed columns raises and names them."""
    file = write_loans(
        tmp_path / "other.csv",
        financial_loans(n=5, as_frame=False),
        leave_out=("CreditScore", "LoanApproved"),
    )
    with pytest.raises(DataError) as excinfo:
        financial_loans(file)
    assert not wrong_message(
        excinfo, "other.csv", "lacks the columns CreditScore, LoanApproved.", "n to simulate"
    )
    assert "AnnualIncome" not in str(excinfo.value)


@pytest.mark.parametrize("how", ["path", "variable"])
def test_absent_file_raises(how, tmp_path, monkeypatch):
    """A file that was asked for but is not there raises; nothing is simulated in its place."""
    absent = tmp_path / "nowhere.csv"
    monkeypatch.setenv(VARIABLE, str(absent))
    with pytest.raises(DataError) as excinfo:
        financial_loans(absent if how == "path" else None)
    assert not wrong_message(excinfo, "nowhere.csv", "cannot be read", VARIABLE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no rows below a header"),
        (b"Age,LoanApproved\n", "holds no rows below a header"),
        (b"Age,LoanApproved\n30,1\n30\n", "Row 3 of bad.csv has 1 cells where the header has 2"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_broken_file_raises(content, message, tmp_path):
    """A file that is empty, ragged or no text raises and says what is wrong with it."""
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        financial_loans(file)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("Age", "", "Column 'Age' of bad.csv holds '' in data row 3, not a whole number"),
        ("Age", "30.5", "Column 'Age' of bad.csv holds '30.5' in data row 3, not a whole number"),
        ("InterestRate", "high", "Column 'InterestRate' of bad.csv holds 'high' in data row 3, not a number"),
        ("InterestRate", "nan", "holds 'nan' in data row 3, not a number"),
        ("LoanApproved", "2", "Column 'LoanApproved' of bad.csv holds values other than 0 and 1"),
    ],
)
def test_broken_value_raises(column, value, message, tmp_path):
    """A cell that is no number where one is needed raises and names column, value and row."""
    file = write_loans(tmp_path / "bad.csv", financial_loans(n=5, as_frame=False), replace={column: value})
    with pytest.raises(DataError) as excinfo:
        financial_loans(file)
    assert not wrong_message(excinfo, message)


# ---------------------------------------------------------------- financial loans: the public file


@needs_loans
def test_public_file_facts(real_loans):
    """The public file has 20,000 rows, 23.9 % of them approved, and the facts in its description hold."""
    x, y = real_loans.X, real_loans.y
    assert len(y) == 20_000
    assert y.mean() == pytest.approx(0.239, abs=5e-5)
    assert (x["CreditScore"].min(), x["CreditScore"].max()) == (343, 712)
    assert (x["LoanDuration"].min(), x["LoanDuration"].max()) == (12, 120)
    gain = real_loans.happiness.function(decision=1, x=x)
    assert (gain > 0).mean() == pytest.approx(0.0023, abs=1e-4)
    assert gain.mean() == pytest.approx(-15_934, abs=0.5)
    slip = x["AnnualIncome"] / (12 * x["MonthlyIncome"])
    assert (slip > 1.0001).sum() == 195
    assert slip.max() < 2
    assert slip[slip > 1.0001].min() >= 1.5
    low = x["TotalAssets"] - x["TotalLiabilities"] < 1_000
    assert x["NetWorth"][low].min() >= 1_000
    assert x["NetWorth"][low].max() < 11_000


@needs_loans
@pytest.mark.parametrize("name", [name for name, kind in FEATURES.items() if kind is not str])
def test_simulation_has_the_distribution_of_the_file(name, real_loans, simulated):
    """Simulated and public column come from one distribution: Kolmogorov-Smirnov at the level 1e-4 per column."""
    both = np.sort(np.concatenate([real_loans.X[name], simulated.X[name]]))
    parts = [
        np.searchsorted(np.sort(data.X[name]), both, side="right") / 20_000
        for data in (real_loans, simulated)
    ]
    distance = np.abs(parts[0] - parts[1]).max()
    assert distance < np.sqrt(np.log(2 / 1e-4) / 2 * 2 / 20_000)


@needs_loans
@pytest.mark.parametrize(
    "name", [name for name, kind in FEATURES.items() if kind is str and name != "ApplicationDate"]
)
def test_simulation_has_the_categories_of_the_file(name, real_loans, simulated):
    """Simulated and public column have the same categories in the same shares (4.5 standard errors)."""
    values = np.unique(real_loans.X[name])
    assert set(values) == set(np.unique(simulated.X[name]))
    for value in values:
        shares = [(data.X[name] == value).mean() for data in (real_loans, simulated)]
        assert abs(shares[0] - shares[1]) < 4.5 * np.sqrt(2 * shares[0] * (1 - shares[0]) / 20_000)


@needs_loans
def test_simulation_approves_like_the_file(real_loans, simulated):
    """Approval rates agree, overall, by age group, education and employment (4.5 standard errors)."""
    assert (real_loans.X["ApplicationDate"] == simulated.X["ApplicationDate"]).all()
    everybody = [np.ones(20_000, bool)] * 2
    parts = [everybody]
    for name in ("age_group", "EducationLevel", "EmploymentStatus", "BankruptcyHistory"):
        parts += [
            [data.X[name] == v for data in (real_loans, simulated)] for v in np.unique(simulated.X[name])
        ]
    for real, made in parts:
        rates = real_loans.y[real].mean(), simulated.y[made].mean()
        error = np.sqrt(rates[0] * (1 - rates[0]) * (1 / real.sum() + 1 / made.sum()))
        assert abs(rates[0] - rates[1]) < 4.5 * error


@needs_loans
def test_simulation_is_as_hard_as_the_file(real_loans, simulated):
    """A forest trained on simulated applications decides public ones about as well as one trained on public ones."""
    from sklearn.ensemble import RandomForestClassifier

    names = [name for name, kind in FEATURES.items() if kind is not str]
    tables = [np.column_stack([data.X[name] for name in names]) for data in (real_loans, simulated)]
    accuracy = []
    for table, data in zip(tables, (real_loans, simulated), strict=True):
        forest = RandomForestClassifier(20, min_samples_leaf=3, random_state=0).fit(
            table[:5_000], data.y[:5_000]
        )
        accuracy.append(forest.score(tables[0][10_000:], real_loans.y[10_000:]))
    assert accuracy[0] > 0.9
    assert abs(accuracy[0] - accuracy[1]) < 0.015


def test_public_file_is_not_in_the_package():
    """The public loan file is the user's own copy; the package carries no copy of it."""
    names = {file.name for file in _dataset.FOLDER.iterdir()}
    assert not [name for name in names if "loan" in name.lower()]
