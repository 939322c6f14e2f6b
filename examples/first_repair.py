"""
Close a gap, and see who pays for it
====================================

A bank's model decides on loans. Women ask for more money than men who are as creditworthy, so they are lent more.
Here the gap is measured, closed, and measured again on people nobody has looked at, with the question that comes
first: who gains, and who loses?
"""

from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Happiness, audit, compare, plots
from felicific.datasets import synthetic_loans

data = synthetic_loans(24_000, seed=3)
X, y = data.X.assign(woman=data.X["sex"] == "Female"), data.y
features = ["yearly_salary", "loan_requested", "woman"]
train, fit, test = slice(0, 4_000), slice(4_000, 14_000), slice(14_000, None)
model = RandomForestClassifier(50, random_state=0).fit(X[train][features], y[train])

# %%
# What makes a person happy with a decision? Here: the money that is lent, in thousands of dollars.

money = Happiness("decision * loan_requested / 1000", name="funding", unit="k$")
before = audit(model, X[test], y[test], happiness=money, sensitive_features="sex")
print(before)

# %%
# The policy is fitted on people whom the model was not trained on. It reads as thresholds.

fair = FairClassifier(FrozenEstimator(model), happiness=money, gap=0.0, sensitive_features="sex")
fair.fit(X[fit], y[fit])
plots.policy(fair.policy_)

# %%
# On others, who were not fitted on, the gap is not exactly 0: sampling noise remains.

after = audit(fair, X[test], y[test])
plots.groups(before, after)

# %%
# Person by person: the gap shrank by levelling women down. Whether that is what was wanted is not for a program to say;
# :ref:`sphx_glr_gallery_take_from_nobody.py` shows the other way.

print(compare(before, after))
