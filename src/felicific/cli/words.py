"""The words of the shell: what the library asks for in Python, as options of a command."""

from __future__ import annotations

import re

#: What the library's messages ask for in Python, and how a command line says it; then each argument by its option.
IN_THE_SHELL = {
    r"say Happiness\(\.\.\., rate=True\)": "write it as a comparison",
    r"Happiness\(\.\.\., bounds=\(low, high\)\)": "--bounds LOW,HIGH",
    r"leave bounds= or rate= out": "leave --bounds out",
    r", without Happiness\(\.\.\.\)": "",
    r"collect the table into memory: solve\(table\.collect\(\), prediction=\.\.\.\)": "fit to the people themselves: "
    "felicific fit FILE --prediction COLUMN",
    r"or solve\(table in memory, prediction=\.\.\., today=\.\.\.\)": "or fit to the people themselves: "
    "felicific fit FILE --prediction COLUMN --today COLUMN",
    r"Collect the table into memory, and use FairRegressor\(policy='individual'\)": "Use FairRegressor in Python",
    r"`policy\.apply\(table, prediction=\.\.\.\)`": "felicific apply --prediction COLUMN",
    r"policy\.apply\(table, prediction=\.\.\., sensitive_features=\.\.\., key=\.\.\.\)": "--prediction COLUMN",
    r"\bprediction=(?=[ ,.;])": "--prediction",
    r"proba=\{class: column\}": "--proba CLASS=COLUMN",
    r"group_proba=\{group: column\}": "--group-proba GROUP=COLUMN",
    r"; of a FairClassifier, fair\.group_model_\.predict_proba\(X\)": "",
    r"group_at_predict=False": "--no-group-at-predict",
    r"(use|leave) group_at_predict=True": "leave --no-group-at-predict out",
    r"audit\(\.\.\., missing_labels=MissingLabels\(hidden=\.\.\.\)\)": "felicific audit --hidden NUMBER",
    r"audit\(\.\.\., amounts=True\)": "felicific audit --amounts",
    r"amounts=True": "--amounts",
    r"Of classes, say amounts=False": "Of classes, name each with --class",
    r"amounts=False": "--class for each",
    r"audit\(\.\.\.\)": "felicific audit",
    r"again and again use watch": "again and again use felicific watch",
    r"missing_labels='explained', MissingLabels\(odds=column\), MissingLabels\(hidden=3\) or 'unknown'": (
        "--missing-labels explained, --odds COLUMN, --hidden 3, or --missing-labels unknown"
    ),
    r"(missing_labels=)?MissingLabels\(odds=(?:column|\.\.\.)\)": "--odds COLUMN",
    r"(missing_labels=)?MissingLabels\(odds=[^()]*(?:\(\))?\)": "--odds COLUMN",
    r"(missing_labels=)?MissingLabels\(hidden=\.\.\.\)": "--hidden NUMBER",
    r"policy\.apply\(\.\.\., odds=True\)": "felicific apply --odds",
    r"leave odds=True out": "leave --odds out",
    r"policy\.apply\(table, \.\.\.\), where Python runs": "felicific apply, where Python runs",
    r"policy\.apply\(table, \.\.\.\), which needs no names": "felicific apply, which replaces nothing",
    r"Explore\(\.\.\.\)": "--explore CHANCE",
    r"hidden=math\.inf \('unknown'\)": "--missing-labels unknown",
    r"hidden=(?=[ ,.])": "--hidden",
    r"hidden=(\d[\d.]*)": r"--hidden \1",
    r"math\.inf where nothing is assumed": "or --missing-labels unknown where nothing is assumed",
    r"^names has": "--decision-name has",
    r"fair\.report\(X_test, y_test\)": "felicific report --test FILE",
    r'labels="all" or "selected"': "--labels all or --labels selected",
    r"Happiness\(\.\.\., name=('[^']*'|\"[^\"]*\")\)": r"--name \1",
    r"gap=number, or gap=\{name: number\}": "--gap NUMBER, or --gap NAME=NUMBER",
    r"gap=\{('[^']*'|\"[^\"]*\"|name): number\}": "--gap NAME=NUMBER",
    r"gap=number": "--gap NUMBER",
    r"Floor\(\.\.\., at_least=number\)": "--floor NUMBER",
    r", group_at_predict=True,": ", without --no-group-at-predict,",
    r"begin a new one: policy\.steer\(\.\.\.\)": "name another file with --steer",
    r" of steer and load": "",
    r"Floor\((['\"])(.+?)\1, (?:at_least=)?['\"]today['\"]\)": r'--floor "\2=today"',
    r"let the policy see more( \(another policy=\))?": "let the policy see more (--policy individual; if it does not "
    "see the group, with --group-proba GROUP=COLUMN)",
    r"Say what people want more of: Losers\(.*?\)": "Give a --happiness that people want more of",
    r"A decision needs at least two different classes: pass classes=": "Name the column of every class: --proba "
    "CLASS=COLUMN, each once; or the decisions of today, --today COLUMN",
    r"by a Floor or a Budget": "by --floor or --budget",
    r"Ask for a Gap of it": "Ask for a --gap of it",
    r"[Ll]eave confidence out": "leave --confidence out",
    r"fewer than min_people": "fewer than --min-people",
    r"when they are made: moments\(\.\.\., constraints=\[Losers\(\.\.\.\)\]\)": "when they are made: felicific moments "
    "--losers SHARE",
    r"Losers\((\d[\d.]*)\)": r"--losers \1",
    r"Explore\(\.\.\.\)|Explore(?= speaks| keeps)": "--explore",
    r"Ratio\(\.\.\., (\d[\d.]*)\)": r"--ratio \1",
    r"Gap\(\.\.\., (\d[\d.]*)\)": r"--gap \1",
    r"Gap\(\.\.\., (min_people=\d+)\)": r"\1",
    r"Read tau \(the number that moves\), .* or move a Gap": "Leave --chart out, or ask for a --gap",
    r"or several in a list": "or several, COLUMN,COLUMN",
    r"Use fewer cells \(Score\(cells=\.\.\.\)\) or ": "Use ",
    r" \([^()]* with Score\(monotone=False\)\)": "",
    r"Save policy\.resalted\(\), or fit it with random_state=None": "Leave --seed out",
    r"Pass what the model's predict_proba returns": "Name their column(s) with --proba",
}
OPTIONS = {
    "classes": "class",
    "groups": "group-name",
    "random_state": "seed",
    "sample_weight": "weight",
    "sensitive_features": "group",
    "y": "label",
} | {
    name: name.replace("_", "-")
    for name in [
        "between",
        "bounds",
        "change_cost",
        "cluster",
        "column",
        "confidence",
        "favourable",
        "gap",
        "group_proba",
        "happiness",
        "key",
        "loss",
        "loss_slack",
        "method",
        "min_people",
        "missing_group",
        "missing_labels",
        "pace",
        "policy",
        "predicted",
        "proba",
        "reach",
        "today",
        "weight_kind",
    ]
}


def in_the_shell(text: str) -> str:
    """A message of the library that names options where it names arguments."""
    for said, meant in IN_THE_SHELL.items():
        text = re.sub(said, meant, text)
    names = "|".join(OPTIONS)
    # An option may take NAME=VALUE itself; what stands in quotes was named by the user.
    argument = rf"(--[\w-]+ '?)?(?<![\w'])({names})=(?:'([^']*)'|(-?[\d.]*\d)|(?![\w'=]))"

    def option(found: re.Match[str]) -> str:
        before, name, text, number = found.groups()
        value = text if text is not None else number
        return found[0] if before else f"--{OPTIONS[name]}" + ("" if value is None else f" {value}")

    text = re.sub(argument, option, text)
    long = "|".join(name for name in OPTIONS if "_" in name)
    return re.sub(rf"(?<![\w'])({long})(?![\w'=(])", lambda found: f"--{OPTIONS[found[1]]}", text)
