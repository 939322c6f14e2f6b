"""What felicific, fairlearn, OxonFair, AIF360 and error-parity offer a user: the rows that a program can try.

    python benchmarks/offers.py

Makes an environment for every library on first use (``.venv-peers``), tries the library there
(``benchmarks/peers/offers.py``) and writes the table between the markers of ``docs/evidence/libraries.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

from shared import EVIDENCE, ROOT, SCRIPTS, environment, fill

REGISTRIES = ("skops", "mlflow")
ENVIRONMENTS = {
    "felicific": ("-e", f"{ROOT}[pandas]", *REGISTRIES),
    "fairlearn": ("fairlearn", *REGISTRIES),
    "oxonfair": ("oxonfair", *REGISTRIES),
    "aif360": ("aif360", *REGISTRIES),
    "error-parity": ("error-parity", *REGISTRIES),
}


def offered(python: Path, peer: str) -> dict[str, str]:
    """What one library offers, by its own interpreter."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or peer == "felicific"}
    command = [python, SCRIPTS / "offers.py", peer]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
    if done.returncode:
        sys.exit(f"{peer}: {done.stderr[-2000:]}")
    found: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"  {peer:14} {found}", flush=True)
    return found


def table(found: dict[str, dict[str, str]]) -> str:
    """A row for everything that was tried, a column for every library."""
    heads = [f"{peer} {facts['version']}" for peer, facts in found.items()]
    lines = [["", *heads], ["---"] * (len(heads) + 1)]
    rows = [row for row in next(iter(found.values())) if row != "version"]
    lines += [[row, *(facts[row].replace("|", "/") for facts in found.values())] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    parser.add_argument("--envs", type=Path, default=ROOT / ".venv-peers")
    asked = parser.parse_args()
    folder = asked.envs.resolve()
    found = {
        peer: offered(environment(folder / f"offers-{peer}", packages), peer)
        for peer, packages in ENVIRONMENTS.items()
    }
    text = f"{table(found)}\n\nTried on {date.today():%Y-%m-%d}, Python {sys.version.split()[0]}."
    fill(asked.out / "libraries.md", "offers", text)


if __name__ == "__main__":
    main()
