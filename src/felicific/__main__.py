"""``python -m felicific`` and the ``felicific`` command."""

from __future__ import annotations

import _thread
import os
import sys
from typing import Any


def main() -> None:
    """Run the command line, or say what to install for it."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # small matrices only: on a busy machine threads wait for each other
    sys.unraisablehook = _ask_again
    try:
        try:
            from felicific.cli import run
        except ModuleNotFoundError as error:
            sys.exit(
                f"felicific: the command line needs {error.name}. Install it: pip install 'felicific[app]'"
            )
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("felicific: interrupted; no file is half-written.", file=sys.stderr)
        code = 130
    sys.exit(code)


def _ask_again(ignored: Any) -> None:
    """Interrupt again when Ctrl-C arrived where Python has to ignore exceptions."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    main()
