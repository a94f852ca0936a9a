"""Train again, alone, along the schedule that made the best trial of a run."""

from collections.abc import Iterator

from rota.core.errors import RotaError
from rota.execution.checkpoints import Checkpoints
from rota.execution.lineage import Lineage
from rota.execution.orders import Done, Made, Order, Undone, made
from rota.execution.workers import Died, NodeWent, Workers

WAKE_S = 0.5


class NotTrained(RotaError):
    """A part that was trained once cannot be trained again."""


def retrain(
    lineage: Lineage, workers: Workers, checkpoints: Checkpoints, slot: int = 0, node: int = 0
) -> Iterator[Done]:
    """One stage after the other, on one slot; goes on where it was if that was done in part before."""
    path: list[Made] = []
    for version, stage in enumerate(lineage.stages, start=1):
        source = path[-1] if path else None
        make = made(
            lineage.root, version, stage.steps, stage.hyper, stage.changes, source, f"{lineage.run} again"
        )
        workers.send(slot, Order(make, source, (*path[-2::-1], None)))
        yield _answer(workers, node)
        checkpoints.prune([(path[-2].trial, path[-2].version)] if len(path) > 1 else [])
        path.append(make)


def _answer(workers: Workers, node: int) -> Done:
    while True:
        for message in workers.wait(WAKE_S):
            if isinstance(message, Died):
                raise NotTrained(message.why)
            if message == NodeWent(node):
                raise NotTrained("its node is gone; try again, and it goes on where it was")
            answer = getattr(message, "answer", None)
            if isinstance(answer, Undone):
                raise NotTrained(answer.why)
            if isinstance(answer, Done):
                return answer
