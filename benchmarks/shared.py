"""What several benchmarks share: environments for peers, blocks of a page, and what the machine is."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "docs" / "evidence"
SCRIPTS = Path(__file__).resolve().parent / "peers"
sys.path.append(str(ROOT))  # where `studies` is, whose split and forest some benchmarks take


def environment(folder: Path, packages: Iterable[str]) -> Path:
    """Return the interpreter of an environment that holds these packages, made on first use."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"  making {folder} for {', '.join(packages)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *packages], check=True)
        (folder / "ready").touch()
    return python


def fill(page: Path, block: str, text: str) -> None:
    """Put a text between two markers of the page, and print it."""
    print(f"\n{block}\n\n{text}\n", flush=True)
    if not page.exists():
        return
    pattern = re.compile(rf"(<!-- {block} -->\n).*?(<!-- end of {block} -->)", re.DOTALL)
    content, count = pattern.subn(lambda found: f"{found[1]}{text}\n{found[2]}", page.read_text("utf-8"))
    if count != 1:
        sys.exit(f"{page} has {count} blocks called {block!r}; it should have one.")
    page.write_text(content, "utf-8")


def keep(out: Path, **figures: Any) -> None:
    """Put figures that other pages quote into ``speed.json``, in the place of those of an earlier run."""
    file = out / "speed.json"
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(kept | figures, indent=1, sort_keys=True) + "\n", "utf-8")


def machine() -> str:
    """What was measured on, and how busy it was with other work."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        found = re.search(r"model name\s*:\s*(.+)", facts.read_text())
        model = found[1] if found else model
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load averages at the end of the run {load}."
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
