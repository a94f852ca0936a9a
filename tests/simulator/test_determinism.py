"""The same seed gives the same timeline in a fresh process, whatever the hash seed."""

import os
import subprocess
import sys

from rota.policies.cluster.registry import SCHEDULERS

SCRIPT = """
import hashlib
from rota.core.cluster import Cluster
from rota.core.costs import COSTS
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.simulator.jobs import simulate
from rota.workload.synthetic import SyntheticConfig, generate

jobs = generate(SyntheticConfig(jobs=60, gpus=16, load=1.5, seed=7))
for name in SCHEDULERS:
    for cost in COSTS.values():
        timeline = simulate(jobs, Cluster.uniform(4, 8), scheduler_class(name)(), cost).timeline
        print(name, hashlib.sha256(timeline.events.tobytes() + timeline.slots.tobytes()).hexdigest())
"""


def digests(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_timelines_do_not_depend_on_the_hash_seed():
    first, second = digests("1"), digests("2")
    assert first == second
    assert len(first) == 2 * len(SCHEDULERS)
