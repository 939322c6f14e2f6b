"""What the sums of aggregates are called, and what they are sums over."""

from __future__ import annotations

#: The sums that stand in cells: arrays of shape (groups, signals, ...), by what the further axes are: decisions
#: (d) and components (j).
SUMS = {
    "mass": "",
    "loss": "d",
    "value": "dj",
    "among": "j",
    "today_loss": "",
    "today_value": "j",
    "today_mass": "d",
    "square": "dj",
    "gains": "dj",
    "loses": "dj",
    "least_loss": "d",
}

#: Those that aggregates may lack.
OPTIONAL = ("today_mass", "square", "gains", "loses", "least_loss")

#: And those that they lack only where decisions are listed and nobody said what is decided today.
TODAY = ("today_loss", "today_value")

#: Those that nobody knows where it is not known what is decided today.
COMPARED = (*TODAY, "today_mass", "gains", "loses")

#: Those that people are added up to; the others follow from them.
ADDED = tuple(name for name in SUMS if name != "least_loss")
