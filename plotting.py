#!/usr/bin/env python3
"""Draws every figure of what has been simulated: ./plotting.py [options of `rota plot`]"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # this folder: its profile.py would hide the module of that name
    if find_spec("rota") is None:
        python = VENV / "bin" / "python"
        if not python.exists() or Path(sys.prefix).resolve() == VENV:
            sys.exit("plotting.py: rota is not installed; set it up first: bash scripts/setup.sh")
        os.execv(python, [str(python), *sys.argv])
    from rota.cli import main
    from rota.commands import plot

    here = Path(os.path.relpath(ROOT))
    plot.RUNS, plot.OUT = here / "results", here / "plots"  # of this checkout, wherever the user is
    sys.exit(main(["plot", *sys.argv[1:]]))
