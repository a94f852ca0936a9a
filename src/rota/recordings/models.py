"""What models are called beside each other: with their data where one was recorded on several."""

from collections.abc import Sequence
from typing import Protocol


class Recorded(Protocol):
    """A tree, or what was made of one."""

    @property
    def model(self) -> str: ...

    @property
    def data(self) -> str:
        """Empty if nobody knows."""
        ...


def models(found: Sequence[Recorded]) -> list[str]:
    """The model of each: `ConvNet2`, or `ConvNet2-digits` if some of the others are of other data."""
    data: dict[str, set[str]] = {}
    for each in found:
        data.setdefault(each.model.lower(), set()).update({each.data} - {""})
    several = {model for model, known in data.items() if len(known) > 1}
    return [
        f"{each.model}-{each.data}" if each.data and each.model.lower() in several else each.model
        for each in found
    ]
