"""What should come soon: the end of all trials, or a first one that is as good as asked."""

from typing import Literal

Goal = Literal["makespan", "target"]


def time_to(goal: Goal) -> str:
    """What is measured, and divided by the least that it can be."""
    return "makespan" if goal == "makespan" else "time to target"
