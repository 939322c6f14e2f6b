"""The words of an audit's page: decisions as they are, and nothing to choose."""

from __future__ import annotations

from typing import Any

from felicific._audit.names import clean
from felicific._audit.quantity import Quantity, count
from felicific._problem.amounts import MEAN_AMOUNT
from felicific._report import appendix
from felicific._report.charts import Scale, for_axis
from felicific._report.effects import by_baseline, gap_bars, group_note, scale_of_means
from felicific._report.words import Content, Names, confidence_text, kicker_of, title_of


def audit_view(content: Content) -> dict[str, Any]:
    """Everything that the page of an audit shows, as text."""
    names, baseline, verdict = Names.of(content), content["baseline"], content["verdict"]
    aside = [j for j in range(len(names.measures)) if j not in names.own]
    parts = [part for j, part in enumerate(baseline["measures"]) if j in names.shown]
    return {
        "names": names,
        "title": title_of(content, names),
        "kicker": kicker_of(content, "Fairness audit"),
        "people": count(sum(group["people"] for group in content["groups"])),
        "verdict": verdict,
        "flag_rows": [
            [flag[part] for part in ("level", "kind", "name", "sentence")] for flag in verdict["flags"]
        ],
        "lanes_of": [_lanes(content, names, j) for j in (*names.shown, *aside)],
        "folded": [_lanes(content, names, j) for j in names.folded],
        "bounds": any("bounds" in mean for part in parts for mean in part["means"]),
        "measures": appendix.measures(content, names),
        "required": appendix.required(content, names, baseline.get("requirements", ())),
        "ratios": appendix.ratios(content, names),
        "labels": appendix.unlabelled(content),
        "notes": list(dict.fromkeys(appendix.said(content, text) for text in content["notes"])),
        "methods": [appendix.said(content, text) for text in content["methods"]],
        "loss": _loss(content, names),
        "fingerprint": content["fingerprints"]["people"],
        "versions": list(content["versions"].items()),
        "command": content["command"],
        "confidence": confidence_text(content),
    }


def _loss(content: Content, names: Names) -> str:
    """What the decisions lose, in a few words."""
    loss = content["baseline"]["loss"]
    if loss is None:
        return ""
    ends = [loss[end] for end in ("low", "high")]
    if "title" in content["loss"] and None not in ends:
        return _loss_of_amounts(content["loss"], loss)
    if None in ends:
        return f"{names.aim[:1].upper()}{names.aim[1:]}: {names.goods([loss['estimate']])[0]}."
    # Of right decisions, the larger loss is the smaller share.
    low, high = names.goods(ends[::-1] if names.accuracy else ends)
    return f"{names.aim[:1].upper()}{names.aim[1:]}: {names.goods([loss['estimate']])[0]}, {low} to {high}."


def _loss_of_amounts(described: Content, loss: Content) -> str:
    """The same of amounts; of squared errors the root too, which is in the label's unit."""
    quantity, title = Quantity("", described["step"]), described["title"]
    told = f"{title[:1].upper()}{title[1:]}: {quantity(loss['estimate'])}, {quantity.span(loss['low'], loss['high'])}."
    if "root_step" not in described:
        return told
    root = Quantity("", described["root_step"])
    number, low, high = (max(loss[end], 0.0) ** 0.5 for end in ("estimate", "low", "high"))
    return f"{told} Its root: {root(number)}, {root.span(low, high)}."


def _lanes(content: Content, names: Names, j: int) -> dict[str, Any]:
    """One measure: a bar for the gap, a dot with its interval for every group."""
    quantity, part = names.quantities[j], content["baseline"]["measures"][j]
    # Shares of people who lose begin at nobody; amounts are far from 0, and differ by little.
    apart = j in names.own or content["measures"][j]["name"] == MEAN_AMOUNT
    scale, gap = scale_of_means([part], zero=not apart), part["gap"]
    compared = [z for z, group in enumerate(content["groups"]) if group["compared"]]
    asked = content["measures"][j]["asked"]
    return {
        "name": names.measures[j],
        "unit": clean(content["measures"][j]["unit"], 28) if content["measures"][j]["unit"] else "",
        "gap": None
        if gap is None
        else {
            "bar": [places[0] for places in gap_bars(scale, [part], compared)],
            "text": quantity(gap["estimate"]),
            "span": quantity.span(gap["low"], gap["high"]),
            "open": quantity.span(*gap["bounds"]) if gap.get("bounds") else "",
            "asked": "" if asked is None else f"allowed: at most {quantity.given(asked)}",
        },
        "remark": content["measures"][j].get("remark", ""),
        "ticks": scale.ticks(for_axis(quantity), 5),
        "rows": [_row(content, names, scale, j, z) for z in by_baseline(content, j)],
    }


def _row(content: Content, names: Names, scale: Scale, j: int, z: int) -> dict[str, Any]:
    """One group: its mean, the interval, and what hidden reasons leave open."""
    quantity, mean = names.quantities[j], content["baseline"]["measures"][j]["means"][z]
    low, high = scale.span(mean)
    left = mean.get("bounds")
    return {
        "name": names.groups[z],
        "people": count(content["groups"][z]["people"]),
        "note": group_note(content, mean, z),
        "known": mean["estimate"] is not None,
        "text": quantity(mean["estimate"]),
        "span": quantity.span(mean["low"], mean["high"]),
        "x": scale.across(mean["estimate"]),
        "low": low,
        "high": high,
        "bounds": scale.reach(*left) if left else None,
        "open": quantity.span(*left) if left else "",
    }
