"""Results of the delayed study: its numbers as plain data and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from felicific.datasets import fico
from felicific.studies._cost import Cost
from felicific.studies._delayed import CRITERIA, DEFAULTED, REPAID, Credit, facts
from felicific.studies._results import claim, software, tables_of, whole_page
from felicific.studies._verdict import plain, verdict_of

ASSUMPTIONS = (
    f"A repaid loan raises the score by {REPAID:g} points, a default lowers it by {-DEFAULTED:g}; the lender loses 4 "
    "(or 10) by a default for every 1 it gains by a repaid loan. All of these are numbers of Liu et al. (2018).",
    "Today is the most profitable single cutoff on the credit score for everybody; no group has its own. Liu et al. "
    "start from a cutoff per group, which is the loose end of every frontier here.",
    "Four groups, weighted by their published sizes; Liu et al. compare two.",
    "Policies are monotone in the score: a higher score never has a lower chance. A lottery may decide at some scores, "
    "the more so where people of a higher score repay less often, as the tables have it here and there.",
    "Of equally profitable policies the one nearest to today's decisions is taken, as everywhere on a frontier.",
    "The tables are the population: nothing is sampled, so there are no standard errors. Shares are printed with two "
    "decimals of a per cent, so a mean change is good to about 0.01 points.",
    "Points of change are those of a scale of 300 to 850, whereas the tables grade people from 0 to 100; no score is "
    "cut off at an end of the scale, and nobody reacts to the policy.",
)


def delayed_results(lenders: Sequence[Credit], cost: Cost) -> dict[str, Any]:
    """Everything that was found, as plain data."""
    found = [facts(credit) for credit in lenders]
    claims = [item for lender in found for item in _claims(lender)]
    return {
        "study": "delayed",
        "title": "Delayed impact: credit scores after equal approval",
        "verdict": verdict_of(claims),
        "data": " ".join(fico().description.split("\n\n")[0].split()),
        "assumptions": list(ASSUMPTIONS),
        "claims": claims,
        "tables": [_lender_tables(lender) for lender in found],
        "notes": [],
        "lenders": found,
        "command": "felicific reproduce delayed --out studies",
        "cost": {"seconds": cost.seconds, "peak memory, MB": cost.peak_mb},
        "software": software(),
    }


def _claims(lender: dict[str, Any]) -> list[dict[str, Any]]:
    """Where equal approval harms the group that it means to help."""
    group, ratio = (
        lender["group approved least often today"],
        lender["lost by a default per unit gained by a repaid loan"],
    )
    now = lender["today"]["change"][group]
    found = []
    for name in ("statistical parity", "equal opportunity", "happiness parity"):
        then = lender["criteria"][name]["least gap"]["change"][group]
        says = f"default costs {ratio:g}: {name} exactly met changes {group} scores by ({plain(now)} today), points"
        number = {"mean": then, "standard error": None, "values": [then]}
        found.append(claim(says, "", number, None, _harm(then, now), by="felicific"))
    return found


def _harm(then: float, now: float) -> str:
    return "scores fall" if then < 0 else "worse than today" if then < now - 1e-9 else "not worse than today"


def delayed_markdown(results: dict[str, Any]) -> str:
    """The page as text: today, every criterion at its least gap, and where harm begins."""
    return whole_page(results, [], list(tables_of(results)))


def _lender_tables(lender: dict[str, Any]) -> dict[str, Any]:
    ratio = lender["lost by a default per unit gained by a repaid loan"]
    return {
        "title": f"A default costs {ratio:g} repaid loans",
        "parts": [{"about": "", **states_table(lender)}],
        "lines": harm_sentences(lender),
    }


def states_table(lender: dict[str, Any]) -> dict[str, Any]:
    """Profit, and approval and change of every group, today and at every criterion's least gap."""
    states = {f"today (cutoff {lender['today']['cutoff']:g})": lender["today"]}
    for name in CRITERIA:
        states[name] = lender["criteria"][name]["least gap"]
    groups = list(lender["today"]["change"])
    rows = []
    for name, state in states.items():
        eps = plain(state["eps"]) if "eps" in state else ""
        cells = [f"{100 * state['approved'][group]:.1f} %, {state['change'][group]:+.2f}" for group in groups]
        rows.append([name, eps, f"{state['profit per applicant']:.4f}", *cells])
    header = [
        "decides",
        "least gap",
        "profit per applicant",
        *(f"{group}: approved, change" for group in groups),
    ]
    return {"header": header, "rows": rows}


def harm_sentences(lender: dict[str, Any]) -> list[str]:
    """Say in words where each criterion begins to harm the group approved least often."""
    group = lender["group approved least often today"]
    now, found = lender["today"]["change"][group], []
    for name in CRITERIA:
        facts = lender["criteria"][name]
        best, end = facts["best for that group"], facts["least gap"]
        text = f"{name}: {group} scores change by {best['change']:+.2f} at best (at a gap of {plain(best['eps'])})"
        text += (
            f" and by {end['change'][group]:+.2f} at its least gap of {plain(end['eps'])}; {now:+.2f} today."
        )
        for what, level, key in (
            ("They are worse off than today", now, "eps at which that group passes today's change"),
            ("Their scores fall", 0.0, "eps at which that group's change passes 0"),
        ):
            ways = []
            if facts[key] and end["change"][group] < level:
                ways.append(f"at gaps below {plain(min(facts[key]))}")
            if facts[key] and facts["least loss"]["change"][group] < level:
                ways.append(f"at gaps above {plain(max(facts[key]))}")
            text += f" {what} {' and '.join(ways)}." if ways else ""
        found.append(text)
    return found
