"""What the sums of aggregates are called, and what they are sums over."""

from __future__ import annotations

#: The sums that stand in cells: arrays of shape (groups, signals, ...), by what the further axes are: decisions
#: (d) and measures (j).
SUMS = {
    "mass": "",
    "loss": "d",
    "value": "dj",
    "among": "j",
    "baseline_loss": "",
    "baseline_value": "j",
    "baseline_mass": "d",
    "square": "dj",
    "gains": "dj",
    "loses": "dj",
    "least_loss": "d",
}

#: Those that aggregates may lack.
OPTIONAL = ("baseline_mass", "square", "gains", "loses", "least_loss")

#: And those that they lack only where decisions are listed and nobody named the baseline.
BASELINE = ("baseline_loss", "baseline_value")

#: Those that nobody knows where there is no baseline.
COMPARED = (*BASELINE, "baseline_mass", "gains", "loses")

#: Those that people are added up to; the others follow from them.
ADDED = tuple(name for name in SUMS if name != "least_loss")
