"""Numbers as text: to the step that is known of them, with one unit, for every size."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicific._audit.names import END, ISOLATE, clean, isolated, labels, listed
from felicific._audit.quantity import PER_THOUSAND, Quantity, common_step, count, percent, step_of

JOINED, SPACE = "−⁠", "\xa0"


@pytest.mark.parametrize(
    ("half", "step"),
    [
        (2_300, 100),
        (354, 10),
        (355, 100),
        (949, 100),
        (950, 100),
        (999, 100),
        (1, 0.1),
        (0.0354, 0.001),
        (0.036, 0.01),
    ],
)
def test_steps_are_those_of_the_particle_data_group(half, step):
    """Of an uncertainty two digits are kept up to 354, one up to 949, and from 950 on two of the next power."""
    assert step_of(half) == pytest.approx(step, rel=1e-12)


@given(st.floats(1e-9, 1e12))
def test_a_step_is_a_power_of_ten_below_the_half_width(half):
    """An uncertainty is written with one or two digits, whatever its size."""
    step = step_of(half)
    assert math.log10(step) == pytest.approx(round(math.log10(step)), abs=1e-9)
    assert 1.0 <= round(half / step, 6) < 36.0


def test_a_common_step_is_the_finest_that_something_is_known_to():
    """The smallest half-width decides; nothing known, or rounding alone, leaves three digits."""
    assert common_step([2_300.0, 500.0, None, math.inf], [1e5]) == 100.0
    assert common_step([1e-14], [18_600.0]) == 100.0
    assert common_step([], [0.0, None]) == 0.01


@pytest.mark.parametrize(
    ("unit", "step", "number", "text"),
    [
        ("$", 100.0, 18_566.4, "$18,600"),
        ("$", 100.0, -7_191.0, f"{JOINED}$7,200"),
        ("$", 100.0, -40.0, "$0"),
        ("$", 1e8, 1.2e9, f"$1.2{SPACE}billion"),
        ("$", 1e3, 1_200_000.0, f"$1.200{SPACE}million"),
        ("$", 100.0, 1_200_000.0, "$1,200,000"),
        ("share", 0.001, 0.0123, f"1.2{SPACE}%"),
        ("days", 0.1, 3.14, f"3.1{SPACE}days"),
        ("", 1e-12, 2.5e-11, "0.000000000025"),
        ("years", 10.0, 123.0, f"120{SPACE}years"),
        ("$", 100.0, None, "unknown"),
        ("$", 100.0, math.nan, "unknown"),
    ],
)
def test_numbers_have_their_unit(unit, step, number, text):
    """A currency stands before the number, millions and other units behind it; a sign never leaves its number."""
    assert Quantity(unit, step)(number) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (3_476.0, 19_275.0, "$3,500 to 19,300"),
        (-9_569.0, 4_973.0, f"{JOINED}$9,600 to 5,000"),
        (None, 5.0, "at most $0"),
        (3_476.0, math.inf, "at least $3,500"),
        (None, None, "nothing is known"),
    ],
)
def test_spans_carry_the_unit_once(low, high, text):
    """From one number to another; a side that is not known is said to be."""
    assert Quantity("$", 100.0).span(low, high) == text


def test_changes_have_signs_and_shares_points():
    """A change of a share is in points; zero has no sign."""
    share = Quantity("share", 0.001)
    assert share.change(0.0131) == f"+1.3{SPACE}points"
    assert share.change_span(0.001, 0.017) == f"+0.1 to +1.7{SPACE}points"
    assert Quantity("$", 100.0).change(0.0) == "$0"
    assert Quantity("$", 100.0).change_span(-9_569.0, -4_973.0) == f"{JOINED}$9,600 to −5,000"
    assert Quantity(PER_THOUSAND, 1e-4).change(0.00318) == f"+3.2{SPACE}wrong decisions in 1,000"
    assert Quantity("$", 1e5).span(-9e5, 1.2e6) == f"{JOINED}$0.9 to 1.2{SPACE}million"


def test_given_numbers_stay_as_they_are():
    """What somebody wrote is not rounded."""
    assert Quantity("$", 1_000.0).given(16_250.0) == "$16,250"
    assert Quantity("share", 0.1).given(0.05) == f"5{SPACE}%"
    assert Quantity("", 1.0).given(1e-7) == "1e-07"


@given(st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=6), st.sampled_from([0.1, 1.0, 100.0]))
def test_texts_round_to_the_step(numbers, step):
    """The number that is read is the nearest multiple of the step."""
    for number in numbers:
        text = Quantity("", step)(number).replace(",", "").replace("−", "-")
        assert abs(float(text) - number) <= step / 2 * (1 + 1e-6)


def test_people_are_whole():
    """A fraction of a person, as a lottery expects them, is told from none."""
    assert [count(number) for number in (0.0, 0.2, 0.6, 1234.4)] == ["0", "fewer than 1", "1", "1,234"]
    assert percent(0.1234, 1) == f"12.3{SPACE}%"


def test_names_are_short_printable_and_apart():
    """Nothing that a page or a terminal obeys is left, joiners stay, and no two names look alike."""
    assert clean("a\u202eb\x00c") == "a b c"
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert len(clean("x" * 300)) == 48
    assert clean("\u200d") == repr("\u200d")
    assert labels(["1", 1]) == ["'1'", "1"]
    assert len(set(labels(["x" * 60 + "a", "x" * 60 + "b"]))) == 2
    assert isolated("Female") == "Female"
    assert isolated("רחל") == f"{ISOLATE}רחל{END}"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"], "or") == "a, b or c"
