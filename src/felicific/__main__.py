"""``python -m felicific`` and the ``felicific`` command."""

from __future__ import annotations

import _thread
import os
import signal
import sys
from typing import Any

#: Exit code of what SIGTERM ended, and seconds after which it is asked again to end.
TERMINATED, AGAIN = 128 + signal.SIGTERM, 3.0


def main() -> None:
    """Run the command line, or say what to install for it."""
    signal.signal(signal.SIGTERM, _terminate)
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
    # A library may have made something else of it on the way.
    terminated = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    if terminated and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    sys.exit(TERMINATED if terminated else code)


def _terminate(*_: object) -> None:
    """End as Ctrl-C does, so that files that are being written are removed.

    Libraries written in C swallow an exception now and then, so it is raised again until the end is reached.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _terminate)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    raise SystemExit(TERMINATED)


def _ask_again(ignored: Any) -> None:
    """Interrupt again when a signal arrived where Python has to ignore exceptions."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        _thread.interrupt_main()
    elif isinstance(ignored.exc_value, SystemExit) and hasattr(signal, "SIGALRM"):
        _thread.interrupt_main(signal.SIGALRM)
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    main()
