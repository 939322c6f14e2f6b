"""
A model without probabilities
=============================

A support vector machine says how far a person is from its boundary, and nothing of how likely anything is. Its policy
sees bins of that decision function, cut between the people it was fitted on; sentences and charts speak of its own
numbers. Nothing else changes.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from felicific import FairClassifier, audit, plots
from felicific.datasets import adult

data = adult()
X, y = data.X, data.y
train, fit, test = slice(0, 10_000), slice(10_000, 30_000), slice(30_000, None)
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
model = make_pipeline(encode, LinearSVC(random_state=0)).fit(X[train], y[train])

# %%
# ``"demographic_parity"`` is what other libraries call ``"statistical_parity"``; both names are known.

fair = FairClassifier(
    FrozenEstimator(model), happiness="demographic_parity", gap=0.05, sensitive_features="sex"
).fit(X[fit], y[fit])
print(*fair.policy_.rules(digits=4), sep="\n")

# %%
# The cuts of both groups, along the decision function. The model's own boundary is at 0.

plots.policy(fair.policy_)

# %%
# What it does to people whom it was not fitted on.

before = audit(model, X[test], y[test], happiness="demographic_parity", sensitive_features="sex")
plots.groups(before, audit(fair, X[test], y[test]), measure="selection rate")
