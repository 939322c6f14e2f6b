"""
An audit of published counts
============================

A table says how many people of each group there were, and how many were selected. No rows are needed for selection
rates, their ratios and intervals: the counts are weights.

The table is that of graduate admissions at the University of California, Berkeley, in the autumn of 1973: the six
largest departments, men and women (P. J. Bickel, E. A. Hammel and J. W. O'Connell, "Sex bias in graduate admissions:
data from Berkeley", Science 187, 1975; the counts by department as in D. Freedman, R. Pisani and R. Purves,
*Statistics*, 1978).
"""

import pandas as pd

from felicific import Happiness, audit, plots

# %%
# The table as it was published: people who applied, and who were admitted.

published = pd.DataFrame(
    [
        ("A", "men", 825, 512),
        ("A", "women", 108, 89),
        ("B", "men", 560, 353),
        ("B", "women", 25, 17),
        ("C", "men", 325, 120),
        ("C", "women", 593, 202),
        ("D", "men", 417, 138),
        ("D", "women", 375, 131),
        ("E", "men", 191, 53),
        ("E", "women", 393, 94),
        ("F", "men", 373, 22),
        ("F", "women", 341, 24),
    ],
    columns=["department", "sex", "people", "admitted"],
)

# %%
# Two rows of each line: those who were admitted, and those who were not. ``weight_kind="frequency"`` says that a weight
# of 512 is 512 people who were seen, all of whom are evidence.

rows = pd.concat(
    [
        published.assign(decision=1, count=published["admitted"]),
        published.assign(decision=0, count=published["people"] - published["admitted"]),
    ]
)
counted = {"sample_weight": "count", "weight_kind": "frequency"}

# %%
# All women against all men: rates, their gap, and the ratio that the four-fifths rule is about.

overall = audit(
    "decision", rows, happiness={"admitted": "decision == 1"}, sensitive_features="sex", **counted
).with_ratios()
print(overall)

# %%
# The same as a picture: each group's rate with its interval, and the gap between them.

plots.groups(overall)

# %%
# The same question for each department, with six gaps that hold together. Hardly anything of the difference is left:
# women applied more often where few are admitted. Which comparison is the right one depends on what is asked: what
# happened to the people who applied, or what each department did with those who came to it. So both are stated.

departments = audit(
    "decision",
    rows,
    happiness=[
        Happiness("decision == 1", among=f"department == '{name}'", name=f"admitted to {name}")
        for name in "ABCDEF"
    ],
    sensitive_features="sex",
    confidence=1 - 0.05 / 6,  # all six gaps hold together with 95 %
    **counted,
)
for part in departments.measures:
    men, women = part.means["men"], part.means["women"]
    print(
        f"{part.measure.name}: {women.estimate:.2f} of {women.n:,.0f} women, {men.estimate:.2f} of {men.n:,.0f} men; "
        f"a gap of {part.gap.estimate:.2f}, from {part.gap.low:.2f} to {part.gap.high:.2f}"
    )

# %%
# People who did not say what group they are of are a line of such tables, and so are groups of very few. These numbers
# are invented. groups= says who is compared: the first are counted, shown and compared with nobody. min_people= leaves
# the others out of the comparison, and names them.

invented = pd.DataFrame(
    [
        ("Asian", 980, 331),
        ("Black", 1480, 345),
        ("Hispanic or Latino", 1610, 402),
        ("Native American", 42, 9),
        ("White", 4120, 1240),
        ("not stated", 905, 231),
    ],
    columns=["group", "people", "selected"],
)
hired = pd.concat(
    [
        invented.assign(decision=1, count=invented["selected"]),
        invented.assign(decision=0, count=invented["people"] - invented["selected"]),
    ]
)
selected = audit(
    "decision",
    hired,
    happiness={"selected": "decision == 1"},
    sensitive_features="group",
    groups=[group for group in invented["group"] if group != "not stated"],
    **counted,
)
print(selected.ratios_between(min_people=0.02))
