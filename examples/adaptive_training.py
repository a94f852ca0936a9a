"""A network that grows while it trains and shrinks again, on the digits that come with scikit-learn.

    python examples/adaptive_training.py

Growing (Net2Net) keeps what the network computes, so before it trains on it gets as many right as after the
stage before. Shrinking goes back to the network from before, which the larger one then teaches.
Needs: bash scripts/setup.sh train
"""

import time

from rota.core.network import SHRINK, Change
from rota.training.clock import WallClock
from rota.training.device import device
from rota.training.setup import Setup

EPOCHS = 3
CHANGES = [None, Change.parse("deepen 1"), Change.parse("widen 0 64"), SHRINK, SHRINK]


def main():
    trainer = Setup(model="convnet2", data="digits", threads=1).trainer(WallClock(device()), seed=0)
    print(f"{'':14}{'parameters':>11}{'right, before':>15}{'and after':>11}{'ms a step':>11}")
    for change in CHANGES:
        if change is not None:
            trainer.change(change)
        before, steps, began_s = accuracy(trainer), trainer.progress.steps, time.perf_counter()
        for _ in range(EPOCHS):
            trainer.epoch(evaluate=False)
        step_ms = 1000 * (time.perf_counter() - began_s) / (trainer.progress.steps - steps)
        parameters = sum(each.numel() for each in trainer.network.parameters())
        name = "as it began" if change is None else str(change)
        print(f"{name:14}{parameters:11,}{before:15.1%}{accuracy(trainer):11.1%}{step_ms:11.1f}")


def accuracy(trainer):
    return trainer.task.evaluate(trainer.network)["accuracy"]


if __name__ == "__main__":
    main()
