"""
Close a gap without taking from anybody
=======================================

The cheapest way to bring two groups together is often to take from one of them. ``WorseOff(0)`` forbids that: no person
gets less than from the model's decision. ``Floor`` forbids it of groups only. Both cost accuracy, and both are said
before anybody decides.
"""

import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Floor, Happiness, WorseOff, audit, plots
from felicific.datasets import synthetic_loans

data = synthetic_loans(24_000, seed=3)
X, y = data.X.assign(woman=data.X["sex"] == "Female"), data.y
features = ["yearly_salary", "loan_requested", "woman"]
train, fit, test = slice(0, 4_000), slice(4_000, 14_000), slice(14_000, None)
model = FrozenEstimator(RandomForestClassifier(50, random_state=0).fit(X[train][features], y[train]))
money = Happiness("decision * loan_requested / 1000", name="funding", unit="k$")

ways = {
    "cheapest": [],
    "no group below the model": [Floor("funding", at_least="baseline")],
    "nobody loses": [WorseOff(0)],
}
fits = {}
for name, constraints in ways.items():
    fair = FairClassifier(model, happiness=money, constraints=constraints, gap=0.0, sensitive_features="sex")
    fits[name] = fair.fit(X[fit], y[fit])

# %%
# Of the people whom the policies were fitted on: means in k$, and who gets less than from the model's decision.

rows = {}
for name, fair in fits.items():
    policy = fair.policy_
    rows[name] = {
        "accuracy": f"{1 - policy.loss:.2%}",
        **{f"mean, {group}": f"{mean:.0f}" for group, mean in policy.means["funding"].items()},
        **{
            f"lose, {group}": f"{share:.2%}"
            for group, share in policy.outcome.to_dict()["loses"]["funding"].items()
        },
    }
pd.DataFrame(rows)

# %%
# The same on people nobody has looked at: with ``WorseOff(0)`` the gap closes upwards.

before = audit(model, X[test], y[test], happiness=money, sensitive_features="sex")
plots.groups(before, audit(fits["nobody loses"], X[test], y[test]), ways=("the model", "nobody loses"))
