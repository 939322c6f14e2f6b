"""Expressions: the same numbers as Python's own, nothing but what is on the list, errors that point."""

import contextlib
import copy
import inspect
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from felicific import FairClassifier, Happiness, Individual, Policy, aggregate, load, solve
from felicific._problem.expressions import DEEPEST, LONGEST, Expression
from felicific.exceptions import DataError, ExpressionError, HappinessError

#: Policies of tests are saved with the salt of a seed, so that their draws are the same again.
pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

ROWS = {
    "a": [0.0, 1.0, 2.5, -3.0, 4.0],
    "b": [2.0, 0.0, 0.5, 8.0, -1.0],
    "n": [1, 2, 3, 0, 5],
    "s": ["red", "blue", "red", "green", ""],
    "Odd name": [7.0, 6.0, 5.0, 4.0, 3.0],
}
LABELS = np.array([0, 1, 1, 0, 1])
GROUPS = np.array(["f", "m", "f", "m", "f"])


def called(text, x=ROWS, decision=1, y=LABELS, group=GROUPS):
    """The expression's numbers, one per row, with only the arguments it asks for."""
    expression = Expression(text)
    everything = {"decision": decision, "x": x, "y": y, "group": group}
    asked = inspect.signature(expression).parameters
    found = expression(**{name: everything[name] for name in asked})
    return np.broadcast_to(np.asarray(found, dtype=float), (5,))


# ---------------------------------------------------------------------------------------------------------
# Values: pairs of (text, the same in Python, where `and` and `or` return an operand and not a truth value)


def pair(template, *parts):
    """Fill the template with our texts, and with Python's; in the latter, logic is made a number."""
    ours = template.format(*(part[0] for part in parts))
    return f"({ours})", f"({template.format(*(part[1] for part in parts))})"


def logical(template, *parts):
    ours, python = pair(template, *parts)
    return ours, f"bool{python}"


def trees(leaf, operators):
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(pair, st.sampled_from(operators), inner, inner),
            st.builds(pair, st.sampled_from(["-{}", "+{}", "abs({})"]), inner),
            st.builds(
                pair, st.just("{} if {} else {}"), inner, st.builds(logical, *comparison(inner)), inner
            ),
            st.builds(logical, st.sampled_from(["{} and {}", "{} or {}"]), inner, inner),
            st.builds(logical, st.just("not {}"), inner),
            st.builds(logical, *comparison(inner)),
            st.builds(pair, st.just("{} < {} <= {}"), inner, inner, inner),
            st.builds(pair, st.just("max({}, {}, {})"), inner, inner, inner),
        ),
        max_leaves=12,
    )


def comparison(inner):
    return st.sampled_from([f"{{}} {sign} {{}}" for sign in ("==", "!=", "<", "<=", ">", ">=")]), inner, inner


NAMES = [(name, name) for name in ("a", "b", "n", "decision", "y")]
NUMBERS = st.sampled_from([0, 1, 2, 3.5, 1e-3, 100]).map(lambda number: (repr(number), repr(float(number))))
TEXTS = st.sampled_from(
    [
        's == "red"',
        '"blue" != s',
        'group == "f"',
        's in ("red", "green")',
        's not in ["", "blue"]',
        "n in (1, -2, 5)",
    ]
).map(lambda text: (f"({text})", f"({text})"))
LEAVES = st.one_of(st.sampled_from(NAMES), NUMBERS, TEXTS)
EXACT = trees(LEAVES, ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "min({}, {})"])
# Logarithms and the like may differ in the last digit: never inside a comparison.
INEXACT = st.builds(
    pair, st.sampled_from(["log({})", "exp({})", "sqrt({})", "{} ** 2", "2 ** {}", "a * {} ** 0.5"]), EXACT
)


def by_python(text, decision):
    """Python's own value of every row; None where Python refuses."""
    found = []
    for i in range(5):
        names = {name: values[i] for name, values in ROWS.items() if name.isidentifier()}
        names |= {"decision": decision, "y": int(LABELS[i]), "group": GROUPS[i]}
        names |= {"log": math.log, "exp": math.exp, "sqrt": math.sqrt, "abs": abs, "min": min, "max": max}
        try:
            value = eval(text, {"__builtins__": {"bool": bool}}, names)
            found.append(None if isinstance(value, complex) else float(value))
        except (ArithmeticError, ValueError):
            found.append(None)
    return found


@given(st.one_of(EXACT, INEXACT), st.sampled_from([0, 1, 2, True]))
def test_the_same_numbers_as_python(texts, decision):
    """Row by row, an expression is worth what Python's own evaluation of the same text is."""
    ours, python = texts
    expected = by_python(python, decision)
    kept = [i for i, value in enumerate(expected) if value is not None and abs(value) < 1e290]
    assume(kept)
    try:
        found = called(ours, decision=decision)
    except ExpressionError as error:
        assume("must be finite" not in str(error))  # a part without names that Python never reaches
        raise
    np.testing.assert_allclose(found[kept], [expected[i] for i in kept], rtol=1e-13, atol=0)


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "arrow"])
def test_the_same_on_every_table_in_memory(library):
    """A dict of arrays and the dataframe libraries give the same numbers, odd names and text included."""
    tables = {
        "dict": lambda: ROWS,
        "pandas": lambda: __import__("pandas").DataFrame(ROWS, index=[9, 9, 8, 7, 6]),
        "polars": lambda: __import__("polars").DataFrame(ROWS),
        "arrow": lambda: __import__("pyarrow").table(ROWS),
    }
    table = tables[library]()
    assert called('decision * x["Odd name"]', table, decision=2).tolist() == [14, 12, 10, 8, 6]
    assert called('x["n"] if s == "red" else -n', table).tolist() == [1, -2, 3, 0, -5]
    assert called("(y == decision) * n", table).tolist() == [0, 2, 3, 0, 5]


def test_columns_of_an_array():
    """An array has positions: x[1] is its second column."""
    assert called("x[1] - x[0]", np.arange(10.0).reshape(5, 2)).tolist() == [1] * 5
    with pytest.raises(ExpressionError, match="no column 'loan'"):
        called("loan", np.zeros((5, 2)))


def test_small_integers_do_not_wrap():
    """Columns are numbers of double precision, whatever they are stored as."""
    table = {"small": np.array([100, 127, -128, 1, 0], dtype=np.int8)}
    assert called("small * 100", table).tolist() == [10000, 12700, -12800, 100, 0]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_stays_missing(library):
    """A comparison with a missing value is neither true nor false, so the row is reported and not miscounted."""
    content = {"v": [1.0, None, 3.0], "t": ["p", None, "q"], "b": [True, None, False], "w": [1.0, 2.0, 3.0]}
    frame = __import__(library).DataFrame(content)
    for text in (
        "v > 0",
        't == "p"',
        't != "p"',
        't in ("p", "q")',
        "not v > 0",
        "v > 0 and w > 0",
        "b or w < 0",
    ):
        found = Expression(text)(x=frame)
        assert np.isnan(found).tolist() == [False, True, False], text
    assert Expression("v > 0 and w != 2")(x=frame).tolist() == [1.0, 0.0, 1.0]
    assert Expression("v > 5 or w == 2")(x=frame).tolist() == [0.0, 1.0, 0.0]
    assert np.isnan(Expression("w if v > 0 else w")(x=frame)).tolist() == [False, True, False]
    assert Expression("v if w != 2 else w")(x=frame).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(HappinessError, match=r"is nan in row 1 \(group 0\)"):
        simple(Happiness("decision * (v > 0)"), frame)
    assert simple(Happiness("decision * (v > 0)", among="w != 2"), frame).among.sum() == 2


def simple(happiness, table, n=3):
    group, y = np.arange(n) % 1, np.arange(n) % 2
    return aggregate(table, predicted=y, policy="label", y=y, sensitive_features=group, happiness=happiness)


# ---------------------------------------------------------------------------------------------------------
# What is refused, and where the error points

REFUSED = {
    "9**9**9**9": "   ^^^^^^^",
    "loan * 1e999": "       ^^^^^",
    "1 / 0": "^^^^^",
    "log(0) + loan": "^^^^^^",
    "loan +": "      ^",
    "decision *  (loan": "            ^",
    "decision * 'a": "           ^",
    "y = 1": "  ^",
    "a and && b": "      ^",
    "foo(loan)": "^^^",
    "__import__('os')": "^^^^^^^^^^",
    "().__class__": "^^^^^^^^^^^^",
    "loan.values": "^^^^^^^^^^^",
    "x": "^",
    "2 * x": "    ^",
    "x[loan]": "^^^^^^^",
    "x['a']['b']": "^^^^^^^^^^^",
    "y['a']": "^^^^^^",
    "loan[0]": "^^^^^^^",
    "loan % 3": "     ^",
    "loan // (3)": "     ^^",
    "a @ b": "  ^",
    "a & b": "  ^",
    "~a": "^^",
    "'a' + 1": "^^^",
    "decision * 'loan'": "           ^^^^^^",
    "s < 'a'": "  ^",
    "loan is 3": "     ^^",
    "a in b": "     ^",
    "a in ()": "     ^^",
    "a in (b, 1)": "      ^",
    "a < (1, 2)": "    ^^^^^^",
    "(1, 2) == a": "^^^^^^",
    "1 in (1, 2) == a": "^^^^^^^^^^^^^^^^",
    "min(loan)": "^^^^^^^^^",
    "abs(loan, 2)": "^^^^^^^^^^^^",
    "min(a, b, key=abs)": "          ^^^^^^^",
    "min(*a)": "^^^^^^^",
    "log": None,
    "1j": "^^",
    "None": "^^^^",
    "...": "^^^",
    "b'a' == s": "^^^^",
    "lambda: 1": "^^^^^^^^^",
    "[a for a in b]": "^^^^^^^^^^^^^^",
    "(a := 3)": " ^^^^^^",
    "f'{a}' == s": "^^^^^^",
    "a, b": "^^^^",
    "a if b else 'x'": "            ^^^",
    "ä * é * foo(3)": "        ^^^",
    "print": None,
    "a\n+ foo(b)": "    ^^^",
}


@pytest.mark.parametrize("text", [text for text, carets in REFUSED.items() if carets])
def test_refused_with_a_caret(text):
    """Whatever is not on the list is refused before any data is seen, with carets under the offending part."""
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    problem, line, carets, remedy = str(caught.value).split("\n")
    assert problem.endswith(":")
    assert line == "    " + text.replace("\n", " ")
    assert carets == "    " + REFUSED[text]
    assert remedy.endswith(".")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "(" * 300, "-" * 3000 + "a", "+".join("a" * 200), "a" * (LONGEST + 1), "\0", "9" * 3999],
)
def test_too_long_or_too_deep(text):
    """Empty, long, deep and broken texts are refused at once, with a message of a few lines."""
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    assert len(str(caught.value)) < 700


def test_as_deep_as_allowed():
    """The deepest expression that is accepted can also be computed."""
    text = "+".join("a" * (DEEPEST - 1))
    assert called(text)[2] == 2.5 * (DEEPEST - 1)
    with pytest.raises(ExpressionError, match="nested deeper"):
        Expression("+".join("a" * (DEEPEST + 1)))


@given(st.text(alphabet="abxy01 .()[]'\"+-*/<>=!,:lognotrmin_é\n\\", max_size=40))
def test_any_text_is_read_or_refused(text):
    """No text at all gets past the list, or raises anything but the error that says so."""
    with contextlib.suppress(ExpressionError):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("s == 3", "s is text"),
        ("s * 2", "not a number"),
        ("s < group", "no order"),
        ("n + 1 if s else 2", "not a number"),
        ("lone", "Did you mean 'loan'?"),
        ("when", "date"),
        ("decision * n", "not a number"),
        ("decision == 1", "decision is text"),
    ],
)
def test_wrong_for_the_data(text, word):
    """Text where a number is needed, a missing column and a date are refused, pointing at the part."""
    table = ROWS | {"loan": np.arange(5), "when": np.array(["2024-01-01"] * 5, dtype="M8[D]")}
    with pytest.raises(ExpressionError, match=word.replace("?", "[?]")):
        called(text, table, decision="yes")


# ---------------------------------------------------------------------------------------------------------
# As a happiness


def test_asks_only_for_what_it_names():
    """The signature is the names it uses, so the library knows when labels are needed."""
    for text, names in {
        "decision * loan": ["decision", "x"],
        "decision == y": ["decision", "y"],
        "min(decision, 1)": ["decision"],
        'group == "f" and x["y"] > 0': ["x", "group"],
        "1": [],
    }.items():
        assert list(inspect.signature(Expression(text)).parameters) == names, text
    assert Happiness("decision == y").looks_at_y
    assert Happiness("decision * loan", among="y == 1").looks_at_y
    assert not Happiness('decision * x["y"]').looks_at_y
    assert Happiness("decision * loan", among="decision == 1").over == "counted by 'decision * loan'"


def test_is_a_value():
    """Expressions of the same text are equal, hash alike, and survive copying and pickling."""
    expression = Expression("decision * loan")
    for twin in (
        Expression("decision * loan"),
        copy.deepcopy(expression),
        pickle.loads(pickle.dumps(expression)),
    ):
        assert twin == expression
        assert hash(twin) == hash(expression)
    happiness = Happiness("  decision * loan ", among="loan > 0", unit="$")
    assert happiness.name == "decision * loan"
    assert pickle.loads(pickle.dumps(happiness)) == happiness


def test_criteria_win(people):
    """A criterion's name is the criterion; a lone name that is none is taken for a misspelt one."""
    table = people.table("pandas", equalized_odds=people["loan"])
    arguments = {
        "policy": "label",
        "predicted": people["group"],
        "y": people.y,
        "sensitive_features": "group",
    }
    assert len(aggregate(table, happiness="equalized_odds", **arguments).measures) == 2
    with pytest.raises(HappinessError, match="Did you mean 'equalized_odds'"):
        aggregate(table, happiness="equalised_odds", **arguments)
    with pytest.raises(HappinessError, match="as it is: happiness='equalized_odds'"):
        Happiness("equalized_odds")
    with pytest.raises(DataError, match="no loss called"):
        aggregate(table, happiness="equalized_odds", loss="errors", **arguments)


def funding(decision, x):
    return decision * x["loan"]


def rich(x):
    return x["wealth"] > 0


def cost(decision, y):
    return np.where(y == decision, 0.0, 1.0 + 4.0 * decision)


@pytest.mark.parametrize("policy", ["score", "individual"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_same_policy_as_the_function(people, library, policy):
    """An expression and the Python function that says the same give the same policy."""
    X, found = people.table(library), []
    for happiness, among, loss in (
        (funding, rich, cost),
        ("decision * loan", "wealth > 0", "0 if y == decision else 1 + 4 * decision"),
    ):
        fair = FairClassifier(
            people.frozen(library),
            happiness=Happiness(happiness, among=among, name="funding", unit="$"),
            gap=1.0,
            policy=policy,
            loss=loss,
            sensitive_features="group",
            key="id",
            random_state=0,
        ).fit(X, people.y)
        found.append((fair.loss_, fair.gaps_, fair.predict_proba(X).tolist()))
    assert found[0] == found[1]


LAZY = [
    "decision * loan",
    "(y == decision) * loan",
    "loan if wealth > 0 else -region",
    "decision * min(loan, 20, 30 * score)",
    "abs(wealth) * max(decision, score)",
    "log(loan) + exp(wealth) * decision - sqrt(loan) ** 2 / 3",
    "decision and wealth > 0",
    "not wealth > 0 or y == 1",
    "-1 < wealth <= 0.5",
    "region in (1, 2) and decision",
    "region not in [0] and group == 1",
    "loan if decision else score",
    "decision",
]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_the_same_on_engines(people, engine):
    """Every construct runs inside the engine of a lazy table, without a notice, and gives the means of memory."""
    arrow = people.table("arrow", y=people.y, decided=(people["score"] > 0).astype(int))
    if engine == "polars":
        lazy = __import__("polars").from_arrow(arrow).lazy()
    else:
        lazy = __import__("duckdb").connect().from_arrow(arrow)
    arguments = {
        "policy": "label",
        "predicted": "decided",
        "y": "y",
        "sensitive_features": "group",
        "happiness": LAZY,
    }
    arguments["groups"] = [0, 1]  # some of these no decision changes, which is refused of a whole table
    found, expected = aggregate(lazy, **arguments), aggregate(arrow, **arguments)
    for decision in range(2):
        q = np.zeros((2, 2, 2))
        q[:, :, decision] = 1
        np.testing.assert_allclose(
            found.evaluate(q).means, expected.evaluate(q).means, rtol=1e-11, atol=1e-12
        )


def test_mapping_names_expressions(people):
    """A dict gives expressions their names; a list keeps their texts."""
    arguments = {
        "policy": "label",
        "predicted": people["group"],
        "y": people.y,
        "sensitive_features": "region",
    }
    texts = ["decision * loan", "decision == y"]
    named = aggregate(people.table("polars"), happiness=dict(zip("ab", texts, strict=True)), **arguments)
    assert [measure.name for measure in named.measures] == ["a", "b"]
    listed = aggregate(people.table("polars"), happiness=texts, **arguments)
    assert [measure.name for measure in listed.measures] == texts
    assert solve(listed, gap={"decision == y": 0.1}).gaps["decision == y"] <= 0.1 + 1e-12


def test_individual_policy_files_hold_expressions(people, tmp_path):
    """An individual policy of expressions is read back without its functions, and decides alike."""
    X = people.table("pandas")
    fair = FairClassifier(
        people.frozen("pandas"),
        happiness=[
            Happiness("decision * loan", among="wealth > 0 or region == 1", unit="$"),
            "overall_accuracy",
        ],
        gap={"decision * loan": 2.0},
        loss="(y != decision) * (1 + decision)",
        policy=Individual(),
        sensitive_features="group",
        random_state=0,
    ).fit(X, people.y)
    path = tmp_path / "policy.json"
    fair.policy_.save(path)
    again = load(path)
    scores = fair.estimator_.predict_proba(X[list(fair.estimator_.feature_names_in_)])
    expected = fair.policy_.probabilities(scores, people["group"], x=X)
    assert (again.probabilities(scores, people["group"], x=X) == expected).all()
    assert again.to_json() == fair.policy_.to_json()


def test_a_file_cannot_smuggle_in_code(people, tmp_path):
    """An expression in a file is read by the same list as any other."""
    from felicific._files import read_document, write_document

    fair = FairClassifier(
        people.frozen("pandas"),
        gap=0.0,
        happiness="decision * loan",
        policy="individual",
        sensitive_features="group",
        random_state=0,
    ).fit(people.table("pandas"), people.y)
    content = read_document(fair.policy_.to_json())
    for evil in ('__import__("os").system("true")', 7, ["decision"]):
        content["functions"][0]["expression"] = evil
        with pytest.raises(ValueError, match="This is no policy file"):
            Policy.from_json(write_document(content))


def wide(text):
    """The same letters in full width, which Python's parser reads as the usual ones."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


def test_names_are_read_as_they_are_written():
    """Python reads other letters for those of a name (NFKC); a full-width name is another column, and no function."""
    x = {"age": np.array([1.0, 2.0]), wide("age"): np.array([10.0, 20.0])}
    assert Expression(f"({wide('age')}) + 0 * age")(x=x).tolist() == [10.0, 20.0]
    assert Expression(wide("age")).columns == {wide("age")}
    assert Expression(f"{wide('decision')} * age").columns == {"age", wide("decision")}
    with pytest.raises(ExpressionError, match="no column '\ufb01'"):
        Expression("\ufb01 * age")(x=x | {"fi": x["age"]})
    with pytest.raises(ExpressionError, match="no such function"):
        Expression(f"{wide('max')}(age, 1)")


def test_a_number_with_more_digits_than_floats_have_is_refused():
    """Two whole numbers that are one float are not taken for each other."""
    with pytest.raises(ExpressionError, match="all of these digits"):
        Expression("group == 9007199254740993")
    assert Expression("9007199254740992")() == 2.0**53
