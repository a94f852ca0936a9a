"""Checkpoints of actors on nodes that do not see the folder of the run: they go through the object store."""

from pathlib import Path
from typing import Any

from rota.execution.checkpoints import Checkpoints, Damaged, Kept
from rota.execution.journal import NotWritten
from rota.execution.orders import Done, Made, done


class StoreActor:
    """On the node of the controller: it reads and writes for those that cannot."""

    def __init__(self, folder: str) -> None:
        self._checkpoints = Checkpoints(Path(folder))

    def read(self, which: tuple[Any, ...]) -> tuple[dict[str, Any], bytes] | str:
        """What was answered and the content; or why there is none."""
        try:
            kept = self._checkpoints.read(Made(*which))
        except Damaged as damage:
            return str(damage)
        return kept.answer.record(), kept.content

    def write(
        self, answer: dict[str, Any], which: tuple[Any, ...], content: bytes, over: tuple[int, int] | None
    ) -> str:
        """Nothing, or why it could not."""
        try:
            self._checkpoints.write(done(answer), Made(*which), content, over)
        except NotWritten as error:
            return str(error)
        return ""


class FarCheckpoints:
    """What `Checkpoints` is to a worker, where they are elsewhere."""

    def __init__(self, store: Any) -> None:
        import ray

        self._store, self._ray = store, ray

    def read(self, which: Made) -> Kept:
        found = self._asked(self._store.read, tuple(which))
        if isinstance(found, str):
            raise Damaged(found)
        answer, content = found
        return Kept(done(answer), content)

    def write(self, answer: Done, which: Made, content: bytes, over: tuple[int, int] | None = None) -> None:
        why = self._asked(self._store.write, answer.record(), tuple(which), content, over)
        if why:
            raise NotWritten(why)

    def _asked(self, method: Any, *arguments: Any) -> Any:
        """What the store answers. That it is gone has nothing to do with a trial."""
        try:
            return self._ray.get(method.remote(*arguments))
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            raise NotWritten(
                f"the store of checkpoints does not answer ({said}); see how its node is"
            ) from None
