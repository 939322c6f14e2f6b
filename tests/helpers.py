"""Small things that several test files need."""

import re
from dataclasses import replace

import numpy as np


def name_of(value):
    """A value as the name of a test, without addresses: every process must find the same names."""
    return re.sub(r"<(function|bound method) ([\w.<>]+) at 0x\w+>", r"\2", str(value))[:80]


def as_if_changed(sums):
    """Moments of happiness that decisions change for somebody, whatever these people say: idle ones are refused."""
    return replace(sums, changed=(True,) * len(sums.components))


def python_words(text):
    """What a reader of the shell cannot type: arguments of Python, such as ``gap=``, and its requirements.

    An option may take NAME=VALUE itself, and what stands in quotes was named by the user.
    """
    typed = re.sub(r"--[\w-]+ ('[^']*'|\S+)|(?<![\w=])'[^']*'|(?<![\w=])\"[^\"]*\"", "", text)
    return re.findall(r"\b[a-z_]+=(?!=)|\b(?:Gap|Ratio|Floor|Budget|Losers|Explore|Score)\(|\bfair\.", typed)


def at(n, row, value, fill, dtype=None):
    """A vector that is ``fill`` everywhere but in one row."""
    values = [fill] * n if not isinstance(fill, list | np.ndarray) else list(fill)
    values[row] = value
    return np.array(values, dtype=dtype)
