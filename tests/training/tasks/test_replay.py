"""What was seen while playing."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from rota.training.tasks.reinforcement import ReplayMemory

CPU = torch.device("cpu")


def add(replay: ReplayMemory, numbers: list[int]) -> None:
    """Transitions that carry a number in every field."""
    column = torch.tensor(numbers)
    seen = column[:, None].float()
    replay.add(before=seen, action=column, after=-seen, fell=column % 2 == 0)


def content(replay: ReplayMemory) -> list[int]:
    rows = replay.rows(torch.arange(len(replay)), CPU)
    numbers = rows["action"]
    assert torch.equal(rows["before"], numbers[:, None].float())
    assert torch.equal(rows["after"], -rows["before"])
    assert torch.equal(rows["fell"], numbers % 2 == 0)
    return sorted(numbers.tolist())


@given(sizes=st.lists(st.integers(1, 5), max_size=8), later=st.lists(st.integers(1, 5), max_size=3))
def test_the_newest_are_kept_and_a_saved_replay_goes_on_alike(sizes, later):
    replay, twin, added = ReplayMemory(7, (1,)), ReplayMemory(7, (1,)), 0
    for size in sizes:
        add(replay, list(range(added, added + size)))
        added += size
        assert content(replay) == list(range(max(0, added - 7), added))
    twin.load_state_dict(replay.state_dict())
    for size in later:
        for one in (replay, twin):
            add(one, list(range(added, added + size)))
        added += size
    assert content(twin) == content(replay) == list(range(max(0, added - 7), added))


def test_rows_come_as_asked_for():
    replay = ReplayMemory(7, (1,))
    add(replay, [5, 6, 7])
    assert replay.rows(torch.tensor([2, 0, 2]), CPU)["action"].tolist() == [7, 5, 7]
