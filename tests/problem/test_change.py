"""What a change does, in words: said exactly when every group loses, or when there was nothing to repair."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicific import Happiness
from felicific._problem.change import every_group_loses, nothing_to_repair
from felicific._problem.happiness import resolve_happiness

MONEY = Happiness("decision * loan", name="funding", unit="$").measure
MEANS = st.lists(st.tuples(*[st.integers(-50, 50)] * 2), min_size=2, max_size=7)


@given(MEANS)
def test_every_group_loses_when_each_mean_falls(pairs):
    """The sentence is there if and only if no group keeps its mean, and names the numbers of few groups."""
    before, after = (np.array([[float(pair[i])] for pair in pairs]) for i in (0, 1))
    names = [f"'g{i}'" for i in range(len(pairs))]
    every = every_group_loses([MONEY], names, before, after, "here")
    levels_down = all(is_ <= was for was, is_ in pairs) and any(is_ < was for was, is_ in pairs)
    assert len(every) == levels_down
    said = [
        text
        for text in every
        if not text.startswith("It levels down: here, mean 'funding' rises in no group")
    ]
    assert len(said) == all(is_ < was for was, is_ in pairs)
    if said and len(pairs) <= 4:
        assert said[0].startswith("Every group loses: here, mean 'funding' falls from ")
        for (was, is_), name in zip(pairs, names, strict=True):
            texts = [f"{'-' if n < 0 else ''}${abs(n)}" for n in (was, is_)]
            assert f"from {texts[0]} to {texts[1]} in group {name}" in said[0]
    elif said:
        falls = sorted(was - is_ for was, is_ in pairs)
        assert said[0].endswith(f"falls by ${falls[0]} to ${falls[-1]} in the {len(pairs)} groups.")


def test_a_fall_that_nobody_can_see_is_none():
    """What is left of a rounding is not called a loss."""
    before = np.full((2, 1), 1e6)
    assert not every_group_loses([MONEY], ["'a'", "'b'"], before, before * (1 - 1e-12), "here")


@pytest.mark.parametrize("best", ["no", "yes"])
def test_only_what_people_hope_for_is_lost(best):
    """Of the shares of all decisions, that of the best one alone is a loss to those who no longer get it."""
    classes = ["no", "maybe", "yes"]
    measures = [
        part.measure
        for part in resolve_happiness("statistical_parity", classes, order=sorted(classes, key=best.__eq__))
    ]
    before = np.full((2, 3), 1 / 3)
    for j, measure in enumerate(measures):
        after = np.full((2, 3), 0.4)
        after[:, j] = 0.2
        said = every_group_loses(measures, ["'a'", "'b'"], before, after, "here")
        assert len(said) == (measure.name == f"share decided {best!r}")
        assert all(repr(measure.name) in text for text in said)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10) | st.just(math.inf)), min_size=1, max_size=4))
def test_nothing_to_repair_when_every_gap_asked_about_is_small_enough(pairs):
    """The sentence is there if and only if some gap is limited, and none exceeds its limit."""
    measures = [Happiness("decision", name=f"c{j}").measure for j in range(len(pairs))]
    gaps, asked = np.array([gap for gap, _ in pairs]), [width for _, width in pairs]
    said = nothing_to_repair(measures, gaps, asked, "here")
    limited = [(gap, width) for gap, width in pairs if width < math.inf]
    assert len(said) == bool(limited and all(gap <= width * (1 + 1e-9) for gap, width in limited))
    assert all(text.startswith("Nothing to repair: here, ") for text in said)
