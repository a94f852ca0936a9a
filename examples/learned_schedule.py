"""Which job runs first, if nobody knows how long jobs take? A linear score, learned in simulations.

    python examples/learned_schedule.py

The cross-entropy method, in NumPy: draw candidates, play each on the same worlds, keep the best, draw around
them. Whole episodes are played in compiled code, so a round of 256 takes a fraction of a second.
"""

import numpy as np

import rota
from rota.learning.scheduling.kernels import JOB_FEATURES

CLUSTER = rota.Cluster.uniform(nodes=4, gpus=8)
WORLDS, CANDIDATES, BEST, ROUNDS = 8, 32, 6, 15
USED = ("running", "gpus", "age", "waited", "attained", "startup", "fits", "group_mean", "group_count")
"""What a score is made of; logarithms of seconds, numbers of GPUs …"""


def world(seed):
    """200 jobs that ask for one and a half times what the cluster can do."""
    return rota.synthetic_trace(jobs=200, gpus=32, load=1.5, seed=seed)


TRAINING = [world(seed) for seed in range(WORLDS)]
UNSEEN = [world(seed) for seed in range(100, 112)]


def mean_jct_s(scheduler, worlds, **options):
    runs = [rota.simulate(jobs, CLUSTER, scheduler, options=options) for jobs in worlds]
    return np.array([run.metrics.avg_jct_s for run in runs])


def ratios(envs, candidates, baseline_s):
    """Candidate → mean JCT ÷ that of the baseline, geometric mean over the worlds."""
    worlds = len(baseline_s)
    weights = np.zeros((len(candidates) * worlds, envs.job_features))
    weights[:, [JOB_FEATURES.index(name) for name in USED]] = np.repeat(candidates, worlds, axis=0)
    envs.reset(options={"world": np.tile(np.arange(worlds), len(candidates))})
    found_s = envs.play(weights)["avg_jct_s"].reshape(len(candidates), worlds)
    return np.exp(np.log(found_s / baseline_s).mean(axis=1))


def main():
    fifo_s = mean_jct_s("fifo", TRAINING)
    envs = rota.SchedulingVectorEnv(CANDIDATES * WORLDS, TRAINING, CLUSTER, durations="none", most_jobs=200)
    rng = np.random.default_rng(0)
    mean, deviation = np.zeros(len(USED)), np.ones(len(USED))
    for number in range(1, ROUNDS + 1):
        candidates = mean + deviation * rng.normal(size=(CANDIDATES, len(USED)))
        found = ratios(envs, candidates, fifo_s)
        best = np.argsort(found)[:BEST]
        mean, deviation = candidates[best].mean(axis=0), candidates[best].std(axis=0) + 0.3 / number
        if number % 5 == 0:
            print(f"round {number:2}: the best have {found[best].mean():.3f} times fifo's mean JCT")
    fifo_s = mean_jct_s("fifo", UNSEEN)
    envs = rota.SchedulingVectorEnv(len(UNSEEN), UNSEEN, CLUSTER, durations="none", most_jobs=200)
    print(f"\nMean JCT ÷ that of fifo, on {len(UNSEEN)} worlds that were not used above")
    print(f"{'learned':10}{ratios(envs, mean[np.newaxis], fifo_s)[0]:.3f}")
    for name, scheduler, options in (
        ("backfill", "fifo", {"backfill": True}), ("tiresias", "tiresias", {}), ("srtf", "srtf", {}),
    ):  # fmt: skip
        ratio = np.exp(np.log(mean_jct_s(scheduler, UNSEEN, **options) / fifo_s).mean())
        print(f"{name:10}{ratio:.3f}{'  (knows durations)' if name == 'srtf' else ''}")


if __name__ == "__main__":
    main()
