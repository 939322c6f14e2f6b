"""
Why, for one person
===================

Somebody was refused and asks why. An explanation says what the model decides and what the policy decides, by which
score and which cut, how far away, at random or not, whether the group mattered, and which requirement pays for the
difference. It also says what it is not: the legal reasons for a refusal.
"""

from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Happiness, plots
from felicific.datasets import synthetic_loans

data = synthetic_loans(24_000, seed=3)
X, y = data.X.assign(woman=data.X["sex"] == "Female"), data.y
features = ["yearly_salary", "loan_requested", "woman"]
train, fit, test = slice(0, 4_000), slice(4_000, 14_000), slice(14_000, None)
model = RandomForestClassifier(50, random_state=0).fit(X[train][features], y[train])
money = Happiness("decision * loan_requested / 1000", name="funding", unit="k$")
fair = FairClassifier(FrozenEstimator(model), happiness=money, gap=0.0, sensitive_features="sex").fit(
    X[fit], y[fit]
)
plots.policy(fair.policy_)

# %%
# Who is approved by the model and refused by the policy? The first of them asks.

asking = X[test]
refused = (fair.predict(asking, key=asking.index) == 0) & (model.predict(asking[features]) == 1)
person = asking[refused].iloc[0]
found = fair.explain(person, key=person.name)
print(found)

# %%
# The same as data, for a file or another program.

print(found.decision, found.baseline, found.score, found.distance)
