"""Trees that can be worked out by hand."""

from collections.abc import Callable
from itertools import product

import pytest
import torch

from rota.recordings.folder import Provenance
from rota.recordings.tree import EpochPoint, Prefix, Tree


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Small networks train faster on one thread than on several that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _same_each_time():
    """Whatever a test draws without a seed of its own."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def origin() -> Provenance:
    return Provenance(
        device="cpu",
        libraries={"torch": "2.13.0"},
        commit="abc",
        seed=0,
        command="rota record trees.toml",
        recorded_at="2026-01-02T03:04:05+00:00",
        rota="0.1.0",
        note="by hand",
    )


def zeros(sequence: Prefix) -> float:
    """0.2, and 0.1 more for each action 0: 0.5 at best, 0.275 on average, 0.2 for doing nothing."""
    return 0.2 + 0.1 * sequence.count(0)


@pytest.fixture
def make_tree(origin) -> Callable[..., Tree]:
    """Gives a function that makes a whole tree of ConvNet2, with three decisions between four actions.

    They are due at 100, 200 and 300 s of 400 s: from `start_s` on, evenly until the end of the budget.
    """

    def make(accuracy: Callable[[Prefix], float] = zeros, **changes) -> Tree:
        fields = {
            "model": "convnet2",
            "data": "cifar10",
            "scenario": "early",
            "seed": 0,
            "budget_s": 400.0,
            "start_s": 100.0,
            "decisions": 3,
            "actions": ("deepen 0", "deepen 1", "deepen 2", "nothing"),
            "provenance": origin,
            **changes,
        }
        return Tree(**{"curves": curves(fields, accuracy), **fields})

    return make


def curves(fields: dict, accuracy: Callable[[Prefix], float]) -> dict[Prefix, tuple[EpochPoint, ...]]:
    """One point per prefix; what is measured before the end is a tenth."""
    decisions, actions = fields["decisions"], range(len(fields["actions"]))
    step_s = (fields["budget_s"] - fields["start_s"]) / decisions
    found = {}
    for length in range(decisions + 1):
        at_s = fields["start_s"] + length * step_s
        for prefix in product(actions, repeat=length):
            reached = accuracy(prefix) if length == decisions else 0.1
            found[prefix] = (EpochPoint(length + 1, at_s, 10 * (length + 1), 1.0, reached),)
    return found
