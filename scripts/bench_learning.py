"""How many episodes an agent learns from in a second, on one core: our way, and the original's.

And how many decisions a joint agent makes in a second of processor time, learning and only deciding.
"""

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import gettempdir

import torch

from rota.learning.config import ORIGINAL, Method
from rota.learning.joint.cases import CaseGenerator
from rota.learning.joint.rollout import play
from rota.learning.learner import LearningStage, StageLearner
from rota.learning.problem import read_trees
from rota.policies.joint.network import new_weights
from rota.recordings.library import read_growth_trees
from rota.training.device import threads

TREES = Path(__file__).parents[1] / "results" / "recordings" / "trees"
GROWTH = TREES.parent / "growth" / "convnet2-digits"
TURNS, CASES = 5, 6


def per_second(method: Method, updates: int, count: int) -> float:
    """Episodes in a second, of so many trees at once."""
    trees = [tree for tree in read_trees([TREES]) if tree.model == "convnet2" and tree.seed == 0][:count]
    episodes = updates * method.episodes_per_update
    learner = StageLearner(LearningStage(method, tuple(trees), episodes, 1.0, 0, Path(gettempdir())))
    began_s = time.perf_counter()
    learner.learn()
    return learner.stage.drawn / (time.perf_counter() - began_s)


def decisions_per_second(turns: int, *, learning: bool) -> float:
    """Decisions in a second of processor time in cases of 16 trials; with gradients if it learns."""
    generator = CaseGenerator(read_growth_trees([GROWTH]))
    found = (generator.case(number, 0) for number in range(1000))
    cases = [case for case in found if len(case.places) == 16][:CASES]
    flat, hidden, decisions = new_weights(16, 0).flat, 16, 0
    play(cases[0], flat, hidden, 0)
    began_s = time.process_time()
    for seed in range(turns):
        for case in cases:
            decisions += play(case, flat, hidden, seed if learning else None).decisions
    return decisions / (time.process_time() - began_s)


def main() -> int:
    rates = [
        (decisions_per_second(8, learning=True), decisions_per_second(8, learning=False))
        for _ in range(TURNS)
    ]
    learns, decides = (median(each) for each in zip(*rates, strict=True))
    share = median(one / other for one, other in rates)
    print(f"joint agent, 16 trials, one core: {learns:,.0f} decisions a second of CPU, with gradients,")
    print(f"{decides:,.0f} without; ratio {share:.2f} (medians of {TURNS} turns)")
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
