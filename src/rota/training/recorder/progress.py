"""How far a recording is, and how long it will still take."""

from types import TracebackType
from typing import Any

from tqdm import tqdm

BAR = "{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} s of training, {remaining} left"


class Progress:
    """A bar on the terminal, in seconds of training to record; says nothing elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._bar: Any = tqdm(
            total=0.0,
            disable=True if quiet else None,
            unit="s",
            dynamic_ncols=True,
            bar_format=BAR,
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bar.close()

    def expect(self, seconds: float) -> None:
        """There is so much more to do."""
        self._bar.total += seconds
        self._bar.refresh()

    def say(self, what: str) -> None:
        """What is being done."""
        self._bar.set_description(what)

    def advance(self, seconds: float) -> None:
        """So much has been done."""
        self._bar.update(seconds)
