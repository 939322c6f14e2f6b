"""Everything that is measured of requirements and defaults, part by part.

``python benchmarks/requirements.py`` runs all parts, an hour or so on two cores; named after it, some of them.
They fill their blocks of the pages in docs/evidence.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: What each part measures; each is a file of its own beside this one.
PARTS = {
    "family": "gaps between attributes, intersections and ratios on Adult: loss, what is left on test, prices, seconds",
    "worse_off": "what it costs that fewer people get less than from the baseline",
    "precision": "precision parity, alone and with equalized odds: loss, programs, seconds",
    "changes": "what a cost of changes does, by kind of policy, size and rare groups, against none",
    "expected": "the gap on new people over the gap that was to be expected",
    "ratios": "how often intervals of ratios hold the truth",
    "alternatives": "how often a less discriminatory alternative is found where there is none, and on Adult",
    "blind": "policies that do not see the group: gap and accuracy by how the group is believed, seconds",
}


def main(parts: list[str]) -> int:
    """Run some parts one after the other, and say which of them failed."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"There is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    failed = []
    for part in parts or list(PARTS):
        print(f"\n# {part}: {PARTS[part]}\n", flush=True)
        if subprocess.run([sys.executable, str(Path(__file__).with_name(f"{part}.py"))]).returncode:
            failed.append(part)
    print(f"\nFailed: {', '.join(failed)}." if failed else "\nEvery part ran.")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
