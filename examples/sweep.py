"""A sweep: 24 small networks learn a sine, and those that do badly are stopped early (ASHA).

    python examples/sweep.py                                                    # a trial per core at once
    sbatch --nodes=2 --ntasks-per-node=2 --wrap "python examples/sweep.py"      # on Slurm, four at once

The folder of the sweep is slurm-sweeps, or the one that is named.
"""

import sys

import rota.sweeps as ss


def train(cfg):
    import numpy as np

    random = np.random.default_rng(0)
    x = np.linspace(-1, 1, 256)[:, None]
    y = np.sin(6 * x)
    width = cfg["width"]
    weights = [random.normal(0, 3, (1, width)), random.normal(0, 1, width), np.zeros((width, 1)), np.zeros(1)]
    speeds = [np.zeros_like(each) for each in weights]
    for epoch in range(16):
        for _ in range(50):
            hidden = np.tanh(x @ weights[0] + weights[1])
            error = hidden @ weights[2] + weights[3] - y
            back = error @ weights[2].T * (1 - hidden**2)
            slopes = [x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]
            for weight, speed, slope in zip(weights, speeds, slopes, strict=True):
                speed *= cfg["momentum"]
                speed -= cfg["lr"] * slope / len(x)
                weight += speed
        ss.log({"error": float(np.mean(error**2))}, epoch)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "slurm-sweeps"
    space = {
        "lr": ss.LogUniform(0.001, 1.0, seed=0),
        "momentum": ss.Choice([0.0, 0.5, 0.9], seed=1),
        "width": ss.Choice([8, 32], seed=2),
    }
    asha = ss.ASHA("error", "min", max_t=16)
    sweep = ss.Experiment(train, space, name="sine", local_dir=folder, asha=asha, overwrite=True)
    result = sweep.run(n_trials=24)
    ended = [trial.status for trial in result.trials]
    print(
        f"\n{ended.count('completed')} trials were trained to the end, {ended.count('pruned')} stopped early"
    )
    best = result.best_trial()
    print(f"best: an error of {best.metrics['error'][15]:.4f} with {best.cfg}")


if __name__ == "__main__":
    main()
