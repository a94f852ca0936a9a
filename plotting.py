#!/usr/bin/env python3
"""Draws every figure of what is in results/: ./plotting.py [options of `rota plot`]

Works from any folder and with any Python 3: where rota is not installed, it is set up in .venv first.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent
AGAIN = "ROTA_PLOTTING_AGAIN"


def set_up():
    """The Python of an environment that has rota; made if there is none."""
    found = ROOT / ".venv" / "bin" / "python"
    if found.exists() and not os.environ.get(AGAIN):
        return str(found)
    elsewhere = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    made = subprocess.run(
        ["bash", str(ROOT / "scripts" / "setup.sh")], env=elsewhere, stdout=subprocess.PIPE, check=False
    )
    if made.returncode:
        sys.exit("plotting.py: rota could not be set up (above)")
    return made.stdout.decode().strip()


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # this folder: its profile.py would hide the module of that name
    if find_spec("rota") is None:
        if os.environ.get(AGAIN) == "2":
            sys.exit("plotting.py: the environment in .venv has no rota; delete it, and try again")
        python = set_up()
        again = str(int(os.environ.get(AGAIN, "0")) + 1)
        os.execve(python, [python, *sys.argv], {**os.environ, AGAIN: again})
    from rota.cli import main
    from rota.commands import plot

    here = Path(os.path.relpath(ROOT))
    plot.RUNS, plot.OUT = here / "results", here / "plots"  # of this checkout, wherever the user is
    words = sys.argv[1:]
    sys.exit(main(["plot", *words, *(() if "--quick" in words or "--svg" in words else ("--svg",))]))
