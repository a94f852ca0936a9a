"""How many episodes an agent learns from in a second, on one core: our way, and the original's."""

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import gettempdir

import torch

from rota.learning.config import ORIGINAL, Method
from rota.learning.learner import LearningStage, StageLearner
from rota.learning.problem import read_trees
from rota.training.device import threads

TREES = Path(__file__).parents[1] / "results" / "recordings" / "trees"
TURNS = 5


def per_second(method: Method, updates: int, count: int) -> float:
    """Episodes in a second, of so many trees at once."""
    trees = [tree for tree in read_trees([TREES]) if tree.model == "convnet2" and tree.seed == 0][:count]
    episodes = updates * method.episodes_per_update
    learner = StageLearner(LearningStage(method, tuple(trees), episodes, 1.0, 0, Path(gettempdir())))
    began_s = time.perf_counter()
    learner.learn()
    return learner.stage.drawn / (time.perf_counter() - began_s)


def main() -> int:
    with threads(1):
        turns = [(per_second(Method(), 300, 5), per_second(ORIGINAL, 300, 1)) for _ in range(TURNS)]
    ours, original = (median(each) for each in zip(*turns, strict=True))
    ratio = median(one / other for one, other in turns)
    print(f"torch {torch.__version__}, one thread, medians of {TURNS} turns")
    print(f"ours, five scenarios at once, 64 episodes of each per update: {ours:10,.0f} episodes a second")
    print(
        f"as the original learns, one scenario, one episode per update: {original:10,.0f} episodes a second"
    )
    print(f"ratio {ratio:,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
