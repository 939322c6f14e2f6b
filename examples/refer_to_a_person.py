"""
Refuse, refer to a person, or approve
=====================================

A model predicts whether a loan is repaid; what is decided is something else: refuse, refer to a person, or approve. The
decisions are listed from the worst to the best for the applicant, and a cost matrix says what each costs the bank.
"""

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Floor, Happiness, audit, plots
from felicific.datasets import synthetic_loans

data = synthetic_loans(24_000, seed=3)
X, y = data.X, data.y
features = ["yearly_salary", "loan_requested"]
train, fit, test = slice(0, 4_000), slice(4_000, 14_000), slice(14_000, None)
model = RandomForestClassifier(100, min_samples_leaf=20, random_state=0).fit(X[train][features], y[train])

# %%
# What was really decided: two cuts of the score. The column is passed as ``baseline``; the model does not see it, and
# nobody has to know it to predict.

score = model.predict_proba(X[features])[:, 1]
X = X.assign(decided=np.select([score > 0.7, score > 0.35], ["approve", "refer"], "refuse"))

# %%
# Rows of the matrix are the labels (not repaid, repaid), columns the decisions. A referral costs a fifth of a bad loan,
# whatever comes out of it. To applicants it is worth 40 % of the loan.

share = {"refuse": 0.0, "refer": 0.4, "approve": 1.0}
funding = Happiness(
    lambda decision, x: share[decision] * x["loan_requested"] / 1000, name="funding", unit="k$"
)
asked = {
    "decisions": ["refuse", "refer", "approve"],
    "loss": [[0, 0.2, 1], [0.6, 0.2, 0]],
    "happiness": funding,
    "baseline": "decided",
    "sensitive_features": "sex",
    "random_state": 0,
}
cheapest = FairClassifier(FrozenEstimator(model), gap=0.0, **asked).fit(X[fit], y[fit])
kept = FairClassifier(
    FrozenEstimator(model), gap=0.0, constraints=[Floor("funding", at_least="baseline")], **asked
).fit(X[fit], y[fit])

# %%
# Loss per person, the gap, and mean funding of the people whom the policies were fitted on; by the second policy no
# group gets less than at present.

rows = {}
for name, outcome in {
    "present": cheapest.impact_["baseline"],
    "cheapest": cheapest.impact_["proposed"],
    "no group below the present": kept.impact_["proposed"],
}.items():
    means = outcome.to_dict()["means"]["funding"]
    rows[name] = {"loss": f"{outcome.loss:.4f}", "gap": f"{outcome.gaps[0]:.1f}"}
    rows[name] |= {group: f"{mean:.1f} k$" for group, mean in means.items()}
print(pd.DataFrame(rows).T.to_string())

# %%
# Better decisions never become less likely as the score rises, so the policy reads as steps.

print("\n".join(kept.policy_.rules(digits=3)))

# %%
# The chance of being approved along the score.

plots.policy(kept.policy_)

# %%
# On people it has not seen: ``predict`` gives decisions, ``predict_proba`` a column for each of ``decisions_``.

print(pd.Series(kept.predict(X[test])).value_counts().to_string())
print(audit(kept, X[test], y[test]))
