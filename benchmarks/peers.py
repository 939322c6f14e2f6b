"""felicific against fairlearn, error-parity, OxonFair and AIF360 on the same rows, in one run.

    pip install -e ".[pandas]" && python benchmarks/peers.py [--rows 500 5000 ... 2000000] [--patience 60]

Times fit, predict, a trade-off curve and intervals, for statistical parity at gap 0 (AIF360: equalized odds, by
labels), and the floor: reading the columns once; then fit and predict once more with the groups as text, the same
column for everybody. Every library runs in an environment and a process of its own; the best of seven is kept unless
one takes longer than two seconds. What a library does not offer is left out, one that cannot be installed is named, and
a step is stopped after ``--patience`` processor seconds. felicific alone fits ``--alone`` rows too. Writes the tables
between the markers of ``docs/evidence/speed.md``, and the times of fits to ``speed.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from shared import EVIDENCE, ROOT, SCRIPTS, environment, fill, keep, machine, table

ENVIRONMENTS = {
    "shared": ("fairlearn", "oxonfair"),
    "error-parity": ("error-parity",),  # it wants numpy<2
    "aif360": ("aif360",),
}
STEPS = ("fit", "predict", "curve", "intervals", "fit, text", "predict, text")


def people(n: int) -> dict[str, Any]:
    """Scores, labels and two groups."""
    rng = np.random.default_rng(0)
    group = (rng.random(n) < 0.65).astype(int)
    score = rng.beta(2, 3, n) * np.where(group == 0, 0.9, 1.0)
    return {"score": score, "y": (rng.random(n) < score).astype(int), "group": group}


def measure(python: Path | str, peer: str, file: Path, patience: float) -> dict[str, Any]:
    """One library on one file, by its own interpreter, with groups as numbers and as text."""
    found = once(python, peer, file, patience)
    named = once(python, peer, file, patience, "text")["seconds"]
    found["seconds"] |= {f"{step}, text": value for step, value in named.items()}
    return found


def once(python: Path | str, peer: str, file: Path, patience: float, *options: str) -> dict[str, Any]:
    """What one process measured."""
    script = SCRIPTS / f"run_{peer.replace('-', '_')}.py"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or peer == "felicific"}
    done = subprocess.run(
        [python, script, file, str(patience), *options],
        capture_output=True,
        text=True,
        check=False,
        env=clean,
    )
    if done.returncode:
        sys.exit(f"{peer}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"  {' '.join([peer, *options]):14} {found['seconds']}", flush=True)
    return found


def seconds(value: float | None, patience: float) -> str:
    if value is None:
        return ""
    return f"over {patience:g} s" if value == float("inf") else f"{value:.3g} s"


def times(ours: float, theirs: float | None, patience: float) -> str:
    if theirs is None:
        return ""
    return f"over {patience / ours:,.0f}" if theirs == float("inf") else f"{theirs / ours:,.3g}"


def report(n: int, found: dict[str, Any], patience: float) -> str:
    """One table of times and one of ratios."""
    mine = found["felicific"]["seconds"]
    rows = [
        [f"{peer} {facts['version']}", *(seconds(facts["seconds"].get(step), patience) for step in STEPS)]
        for peer, facts in found.items()
    ]
    ratios = [
        [peer, *(times(mine[step], facts["seconds"].get(step), patience) for step in STEPS)]
        for peer, facts in found.items()
        if peer != "felicific"
    ]
    head = ["", *STEPS]
    return (
        f"**{n:,} rows.** Reading the columns once: {seconds(mine['floor'], patience)}; aggregates and solve without "
        f"scikit-learn's class: {seconds(mine['aggregates and solve'], patience)}.\n\n{table(head, rows)}\n\n"
        f"Times as long as felicific:\n\n{table(head, ratios)}"
    )


def targets(sizes: dict[int, dict[str, Any]]) -> str:
    """Our fits beside the fastest peer's of every size, and at most rows what else was promised."""
    many = sizes[max(sizes)]
    parts = [f"At {n:,} rows the fit took {_beside(found, 'fit')}." for n, found in sizes.items()]
    slow = many["fairlearn"]["seconds"]["fit"] / many["felicific"]["seconds"]["fit"]
    parts.append(
        f"At {max(sizes):,} rows, with groups as text, it took {_beside(many, 'fit, text')}, and 1/{slow:.0f} of "
        f"fairlearn's (the aim is 1/50); predict took {_beside(many, 'predict')} (the aim is at most 1), with text "
        f"{_beside(many, 'predict, text')}."
    )
    return " ".join(parts)


def _beside(found: dict[str, Any], step: str) -> str:
    """Our time as a multiple of the fastest peer's."""
    others = [
        (facts["seconds"][step], peer)
        for peer, facts in found.items()
        if peer != "felicific" and step in facts["seconds"]
    ]
    least, peer = min(others)
    return f"{found['felicific']['seconds'][step] / least:.2f} of the fastest peer's time ({peer})"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 5_000, 50_000, 500_000, 2_000_000])
    parser.add_argument("--alone", type=int, default=10_000_000)
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    parser.add_argument("--envs", type=Path, default=ROOT / ".venv-peers")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    pythons: dict[str, Path] = {}
    texts, sizes = [], {}
    for name, packages in ENVIRONMENTS.items():
        try:
            pythons |= dict.fromkeys(packages, environment(asked.envs.resolve() / name, packages))
        except subprocess.CalledProcessError:
            texts.append(f"Not measured, because they could not be installed: {', '.join(packages)}.")
    with tempfile.TemporaryDirectory() as folder:
        for n in [*asked.rows, asked.alone]:
            file = Path(folder) / f"{n}.npz"
            np.savez(file, **people(n))
            print(f"{n:,} rows")
            found = {"felicific": measure(sys.executable, "felicific", file, asked.patience)}
            if n != asked.alone:
                found |= {
                    peer: measure(python, peer, file, asked.patience) for peer, python in pythons.items()
                }
                texts.append(report(n, found, asked.patience))
            sizes[n] = found
            file.unlink()
    kept = {
        str(n): {peer: float(f"{facts['seconds']['fit']:.3g}") for peer, facts in found.items()}
        for n, found in sizes.items()
    }
    alone = sizes.pop(asked.alone)["felicific"]["seconds"]
    texts.append(
        f"felicific alone, {asked.alone:,} rows: fit {alone['fit']:.2f} s, with text {alone['fit, text']:.2f} s."
    )
    texts += [targets(sizes), machine()]
    fill(asked.out / "speed.md", "peers", "\n\n".join(texts))
    keep(asked.out, fits=kept)


if __name__ == "__main__":
    main()
