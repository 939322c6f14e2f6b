"""
The whole trade-off, exactly
============================

How much accuracy does a smaller gap cost? The answer is a curve of straight pieces, and every corner of it is found: no
grid, no search. What each place of the curve means to the people concerned is in the table.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from felicific import FairClassifier, Happiness
from felicific.datasets import adult

data = adult()
X, y = data.X, data.y
train, fit = slice(0, 12_000), slice(12_000, None)
encode = make_column_transformer(
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), make_column_selector(dtype_include=object)),
    remainder="passthrough",
)  # fmt: skip
model = make_pipeline(encode, HistGradientBoostingClassifier(random_state=0)).fit(X[train], y[train])

# %%
# The happiness: being among those who are taken to earn well, a rate. Its gap is what the field calls the demographic
# parity difference.

selected = Happiness("decision == 1", name="selected", rate=True)
fair = FairClassifier(FrozenEstimator(model), gap=0.0, happiness=selected, sensitive_features="sex").fit(
    X[fit], y[fit]
)
fair.frontier_.plot()

# %%
# A place on the curve is a policy. The price says how many decisions in a hundred go wrong for a point less of gap.

for gap in (0.15, 0.10, 0.05, 0.0):
    policy = fair.frontier_.at(gap=gap)
    means = ", ".join(f"{group} {mean:.1%}" for group, mean in policy.means["selected"].items())
    cost = f"a point less costs {policy.prices['selected']:.3f} points"
    print(f"gap {gap:.0%}: {means}; accuracy {1 - policy.loss:.2%}; {cost}")
