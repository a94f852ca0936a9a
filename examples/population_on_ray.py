"""A population on Ray: six networks on two slots; those that do badly become like those that do well.

    python examples/population_on_ray.py

Ray is started for it, on the loopback only and with a token, and ends with it. On a cluster that runs, in a
folder that can be resumed, and with nodes that may die: docs/run-on-ray.md.
Needs: bash scripts/setup.sh train ray
"""

import json
import sys
import tempfile
from pathlib import Path

from rota.cli import main as rota

CONFIG = """
allocation = "finish"       # which trials an idle slot gets: the list with which all would be done soonest
evolution = "pbt"           # what becomes of a trial that reported
backend = "ray"

[population]
trials = 6
steps = 100
interval = 25

[population.start]
lr = { low = 0.0003, high = 1.0, log = true }

[options.pbt.space]
lr = { low = 0.0001, high = 1.0, log = true }

[training]
model = "convnet2"
data = "digits"
optimizer = "sgd"
threads = 1
decay = { factor = 1.0 }    # the population finds the learning rate

[ray]
slots = [{ count = 2, cpus = 1 }]
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        config, run = Path(folder) / "population.toml", Path(folder) / "run"
        config.write_text(CONFIG)
        if code := rota(["run", str(config), "--out", str(run)]):
            return code
        found = json.loads((run / "result.json").read_text())
    print(
        f"\n{found['reports']} reports, {found['clones']} clones, {found['wall_s']:.1f} s once actors were up"
    )
    print(f"\n{'trial':>5}{'learning rate in the end':>26}{'right at best':>15}")
    for trial in sorted(found["trials"], key=lambda trial: -trial["best_metric"]):
        print(f"{trial['id']:5}{trial['hyper']['lr']:26.4f}{trial['best_metric']:15.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
