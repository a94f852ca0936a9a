#!/usr/bin/env python3
"""Compares learned schedulers with rules, durations not known, on the worlds that were set aside for that.

    python scripts/bench_learned_schedulers.py TRACES [AGENT…]

TRACES is a folder with azure/cluster02.csv, philly/philly.csv, muri/trace1.csv and muri/trace3.csv (which are
public). The worlds are those of [reported] in config/learn/schedule-worlds.toml. Without AGENT it is the one
that comes with rota. Ratios are geometric means over worlds, with 95 % bootstrap intervals over worlds.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rota.core.cluster import Cluster
from rota.core.durations import Durations
from rota.core.policy import Policy
from rota.core.text import aligned
from rota.core.timeline import EventKind
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.learned import LearnedScheduler
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import simulate
from rota.simulator.windows import sized, windows
from rota.workload.formats import read
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate

CONTENTIONS = (1.5, 2.0, 3.0)
RULES = ("tiresias", "las", "random", "gittins", "srtf")
UNKNOWN = Durations("none")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path)
    parser.add_argument("agents", type=Path, nargs="*")
    args = parser.parse_args()
    policies: dict[str, Policy] = {"fifo, backfill": Fifo(backfill=True)}
    policies |= {name: scheduler_class(name)() for name in RULES}
    agents = args.agents or [None]
    names = ["learned"] if len(agents) == 1 else [f"learned {number}" for number in range(len(agents))]
    policies |= {name: LearnedScheduler(agent) for name, agent in zip(names, agents, strict=True)}
    families, found = [], {name: [] for name in policies}
    for family, jobs, cluster in worlds(args.traces):
        families.append(family)
        for name, policy in policies.items():
            found[name].append(measured(jobs, cluster, policy))
    results = {name: np.array(rows) for name, rows in found.items()}
    mean_s, p99_s = ({name: rows[:, column] for name, rows in results.items()} for column in (0, 1))
    head = [
        f"{len(families)} worlds",
        "JCT ÷ tiresias",
        "",
        "JCT ÷ gittins",
        "",
        "p99 ÷ tiresias",
        "",
        "instants/s",
    ]
    lines = [head]
    for name in policies:
        cells = (
            mean_s[name] / mean_s["tiresias"],
            mean_s[name] / mean_s["gittins"],
            p99_s[name] / p99_s["tiresias"],
        )
        speed = f"{np.median(results[name][:, 2]):,.0f}"
        lines.append([name, *(part for cell in cells for part in interval(cell)), speed])
    print(*aligned(lines), sep="\n")
    shown = sorted(set(families))
    rows = [["JCT ÷ tiresias", *(f"{family} ({families.count(family)})" for family in shown)]]
    for name in policies:
        ratio = np.log(mean_s[name] / mean_s["tiresias"])
        means = [np.exp(ratio[[each == family for each in families]].mean()) for family in shown]
        rows.append([name, *(f"{mean:.3f}" for mean in means)])
    print("", *aligned(rows), sep="\n")
    return 0


def worlds(traces: Path) -> Iterator[tuple[str, Workload, Cluster]]:
    """Yield the family, the jobs and the cluster of each world."""
    for jobs, cluster in windows(read(traces / "azure/cluster02.csv"), 800, 6, CONTENTIONS, seed=2):
        yield "azure 02", jobs, cluster
    philly = read(traces / "philly/philly.csv")
    by_size = sorted(range(len(philly.groups)), key=lambda group: -int((philly.group == group).sum()))
    for number in (1, 3, 5):
        own = philly.take(np.flatnonzero(philly.group == by_size[number]))
        for jobs, cluster in windows(own, 800, 3, CONTENTIONS, seed=number):
            yield "philly", jobs, cluster
    for name in ("trace1", "trace3"):
        jobs = read(traces / f"muri/{name}.csv")
        for contention in CONTENTIONS:
            cluster = sized(jobs, contention)
            if cluster is not None:
                yield "muri", jobs, cluster
    for number in range(9):
        jobs = generate(SyntheticConfig(jobs=800, load=1.0, seed=3000 + number))
        cluster = sized(jobs, CONTENTIONS[number % 3])
        if cluster is not None:
            yield "synthetic", jobs, cluster


def measured(jobs: Workload, cluster: Cluster, policy: Policy) -> tuple[float, float, float]:
    """Return mean and 99th percentile of completion times, and instants per CPU second."""
    began_s = time.process_time()
    done = simulate(jobs, cluster, policy, durations=UNKNOWN)
    spent_s = time.process_time() - began_s
    events = done.timeline.events
    ended = events[events["kind"] == EventKind.FINISHED]
    jct_s = ended["at_s"] - jobs.submit_s[ended["job"]]
    return float(jct_s.mean()), float(np.quantile(jct_s, 0.99)), done.instants / spent_s


def interval(ratios: np.ndarray) -> tuple[str, str]:
    """Return the geometric mean of ratios, and its interval."""
    logs, random = np.log(ratios), np.random.default_rng(0)
    drawn = np.exp(random.choice(logs, (2000, len(logs))).mean(axis=1))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{np.exp(logs.mean()):.3f}", f"[{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    raise SystemExit(main())
