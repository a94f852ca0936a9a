"""What a worker of jobs trains: the seam between rota and whatever learns, a stage at a time."""

from typing import Any, Protocol, runtime_checkable


class Working(Protocol):
    """One job on one slot, or one member of its gang.

    `fetch`, `compute`, `exchange` and `update`, in this order, are an iteration. Others may be between their
    own stages meanwhile, in other threads.
    """

    def load(self, content: bytes) -> None:
        """Be what was saved."""

    def save(self) -> bytes:
        """All that `load` needs. It must not be pickled."""

    def fetch(self) -> None:
        """Get the next batch."""

    def compute(self) -> None:
        """What the processor of the slot is for."""

    def exchange(self) -> None:
        """With the other members of the gang."""

    def update(self) -> None:
        """Make the step."""

    def tell(self, room: int, at_s: float) -> None:
        """Before a slice: so many slots are lent to it, at this time of the run."""

    @property
    def metric(self) -> float:
        """How it stands."""

    def notes(self) -> list[dict[str, Any]]:
        """What is to be kept of this slice: plain values."""


@runtime_checkable
class Site(Protocol):
    """Made once per worker, so that it can keep what all jobs need."""

    def open(self, job: int, kind: str, rank: int, size: int, meeting: str) -> Working:
        """A job before its first iteration; members of a gang wait for each other."""
