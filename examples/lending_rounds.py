"""
A lender learns about the people it refuses
===========================================

Decide, observe, fit again. Run it with ``python examples/lending_rounds.py [people a round]``.

Who repays is known of the approved only. At first an officer decides, who also reads what is not in the table: rightly
for group A, wrongly for group B. Policies are then fitted in three ways:

- "left out": on those who have a label, as if there were no others. The officer goes on deciding.
- "at_random": the table is taken to explain who has a label. It does not. The officer goes on deciding.
- "Exploration(.02)": the same at first, but from then on the policy decides, and everybody keeps two chances in a
  hundred of a loan. The probabilities of every decision are written down, so later fits know them and need to suppose
  nothing.

The world is simulated, so that each can be told what is true: of 100,000 others, and by their true chances to repay.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import Exploration, FairClassifier, MissingLabels, plots
from felicific.exceptions import PolicyWarning

ROUNDS, FEATURES = 4, ["income", "history"]
NAMES = {"key": "id", "sensitive_features": "group"}


def logistic(x):
    """From anywhere to between 0 and 1."""
    return 1 / (1 + np.exp(-x))


def applicants(n, rng, first_id=0):
    """People as the lender sees them; and, known to the simulation, chances to repay and of the officer's yes."""
    minority = rng.integers(2, size=n)
    income, history, unseen = rng.normal(-0.3 * minority), rng.normal(size=n), rng.normal(size=n)
    lean = income + 0.7 * history
    read = np.where(minority == 1, -1.5, 0.8)  # what the officer makes of what is unseen
    people = pd.DataFrame(
        {
            "id": np.arange(first_id, first_id + n),
            "group": np.where(minority == 1, "B", "A"),
            "income": income,
            "history": history,
        }
    )
    repays = logistic(lean + 1.2 * unseen + 0.2)
    return people, repays, logistic(1.7 * (lean + read * unseen - 0.9 * minority - 0.3))


def observed(repays, approved, rng):
    """1 or 0 for those who got a loan, nothing for the others."""
    return pd.Series(rng.random(len(repays)) < repays).astype("Int64").where(approved)


def fair_policy(model, missing_labels=None, exploration=None):
    """Least errors, such that people who would repay are approved alike, whatever their group."""
    return FairClassifier(
        FrozenEstimator(model),
        happiness="equal_opportunity",
        gap=0.02,
        missing_labels=missing_labels,
        constraints=[Exploration(at_least=exploration)] if exploration else [],
        change_cost=0.0,
        random_state=0,
        **NAMES,
    )


def true_gap_and_loss(fair, people, repays):
    """By true chances: rates of loans among those who would repay, A minus B, and the share of errors."""
    chance = fair.predict_proba(people)[:, 1]
    rate = {
        name: np.average(chance[rows], weights=repays[rows])
        for name, rows in ((name, people["group"] == name) for name in "AB")
    }
    return rate["A"] - rate["B"], np.mean(chance * (1 - repays) + (1 - chance) * repays)


def main(n=10_000, fresh=100_000, seed=0):
    """Five fits of each way; returns stated and true gap and loss, by way and round."""
    warnings.simplefilter(
        "ignore", PolicyWarning
    )  # that so few labels leave a wider gap is a column of the table
    rng = np.random.default_rng(seed)
    others, repays_others, _ = applicants(fresh, rng)

    people, repays, officer = applicants(n, rng)
    y = observed(repays, rng.random(n) < officer, rng)
    model = LogisticRegression().fit(people.loc[y.notna(), FEATURES], y.dropna().astype(int))

    found, kept = [], None
    for number in range(ROUNDS + 1):
        people, repays, officer = applicants(n, rng, first_id=(number + 1) * n)
        y = observed(repays, rng.random(n) < officer, rng)
        known = y.notna()
        fits = {
            "left out": fair_policy(model).fit(people[known], y[known]),
            "at_random": fair_policy(model, "at_random").fit(people, y),
        }
        if number == 0:  # nobody knows the probabilities with which the officer decided
            exploring = fair_policy(model, "at_random", exploration=0.02).fit(people, y)
        else:  # the policy of the round before decides; all people it ever decided on are fitted on
            scored = people.assign(score=model.predict_proba(people[FEATURES])[:, 1])
            decided = exploring.policy_.apply(scored, score="score", with_proba=True, **NAMES)
            decided["repaid"] = observed(repays, decided["decision"] == 1, rng)
            kept = decided if kept is None else pd.concat([kept, decided], ignore_index=True)
            exploring = fair_policy(model, MissingLabels(label_proba="proba"), exploration=0.02)
            exploring.fit(kept.drop(columns=["decision", "repaid"]), kept["repaid"])
        fits["Exploration(.02)"] = exploring
        for name, fair in fits.items():
            gap, loss = true_gap_and_loss(fair, others, repays_others)
            stated = fair.gaps_["true positive rate"], fair.expected_gaps_["true positive rate"]
            found.append([name, number, *stated, gap, fair.loss_, loss])
    heads = ["way", "round", "stated gap", "to expect", "true gap", "stated loss", "true loss"]
    found = pd.DataFrame(found, columns=heads).sort_values(["way", "round"], ascending=[False, True])
    print(found.to_string(index=False, float_format="{:.3f}".format))
    return found


def drawn(found):
    """The true gap after each round: a thin line for every lender, a thick one for their mean."""
    import altair as alt

    found = found[["way", "round", "true gap", "lender"]].rename(columns={"true gap": "gap"})
    ways, theme = ["at_random", "left out", "Exploration(.02)"], plots.LIGHT
    colour = alt.Color("way:N", legend=None).scale(domain=ways, range=theme.colours(3))
    shape = alt.Shape("way:N", legend=None).scale(domain=ways, range=theme.forms(3))
    x = alt.X("round:O", title="round", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y("gap:Q", title=None, axis=alt.Axis(tickCount=6, domain=False, ticks=False))
    mean = found.groupby(["way", "round"], as_index=False)["gap"].mean()
    each = plots.values(found.to_dict("records")).mark_line(strokeWidth=0.8, opacity=0.35)
    line = plots.values(mean.to_dict("records"))
    last = plots.values(mean[mean["round"] == mean["round"].max()].to_dict("records"))
    asked = plots.values([{"from": -0.02, "to": 0.02, "gap": 0.0, "words": "asked for"}])
    parts = [
        asked.mark_rect(color=theme.accent, opacity=0.12).encode(y=alt.Y("from:Q"), y2="to:Q"),
        asked.mark_text(align="left", dx=6, color=theme.muted).encode(x=alt.value(0), y=y, text="words:N"),
        each.encode(x=x, y=y, color=colour, detail=["lender:N", "way:N"]),
        line.mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour),
        line.mark_point(size=80, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
        last.mark_text(align="left", dx=12, fontWeight="bold").encode(x=x, y=y, text="way:N"),
    ]
    chart = alt.layer(*parts).properties(width=460, height=260, padding={"right": 90})
    title = "true gap of loans among those who would repay, A minus B"
    return plots.themed(chart.properties(title=title), theme)


if __name__ == "__main__":
    chart = drawn(main(*map(int, sys.argv[1:])).assign(lender=0))
