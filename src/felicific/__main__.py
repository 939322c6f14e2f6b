"""``python -m felicific`` and the ``felicific`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from felicific.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"felicific: the command line needs {error.name}. Install it: pip install 'felicific[app]'")
    app()


if __name__ == "__main__":
    main()
