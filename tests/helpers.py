"""Small things that several test files need."""

import re


def name_of(value):
    """A value as the name of a test, without addresses: every process must find the same names."""
    return re.sub(r"<(function|bound method) ([\w.<>]+) at 0x\w+>", r"\2", str(value))[:80]
