"""Units that are there more than once: tensors made wider, and what came from where."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Replicas:
    """For each unit of a wider layer the one it is a copy of; the originals come first."""

    source: Tensor

    @classmethod
    def choose(cls, units: int, width: int, generator: torch.Generator | None) -> "Replicas":
        """Originals first, then copies: drawn if there is a generator, otherwise one after the other."""
        more = torch.arange(width - units) % units
        if generator is not None:
            more = torch.randint(units, (width - units,), generator=generator, device=generator.device).cpu()
        return cls(torch.cat([torch.arange(units), more]))

    def repeated(self, times: int) -> "Replicas":
        """The same for units that have several places each, laid one after the other."""
        places = torch.arange(times)
        return Replicas((self.source[:, None] * times + places).reshape(-1))

    @property
    def share(self) -> Tensor:
        """For each unit one divided by how often its original is there."""
        return 1.0 / torch.bincount(self.source)[self.source]


def spread(values: Tensor, axis: int, replicas: Replicas, power: int = 0) -> Tensor:
    """The tensor with an axis made wider, each entry times its share to a power; laid out as it was."""
    narrow, units = values.detach(), values.shape[axis]
    copies = narrow.index_select(axis, replicas.source[units:].to(values.device))
    shape = [*narrow.shape[:axis], len(replicas.source), *narrow.shape[axis + 1 :]]
    wider = torch.empty_permuted(shape, narrow.dim_order(), dtype=narrow.dtype, device=narrow.device)
    share = replicas.share**power
    # Each number is written once: most of the time goes into touching new memory.
    _scale(narrow, share[:units], axis, wider.narrow(axis, 0, units))
    _scale(copies, share[units:], axis, wider.narrow(axis, units, copies.shape[axis]))
    return wider


def _scale(values: Tensor, factor: Tensor, axis: int, into: Tensor) -> None:
    torch.mul(values, _along(factor, axis, values), out=into)


def _along(factor: Tensor, axis: int, values: Tensor) -> Tensor:
    shape = [-1 if each == axis else 1 for each in range(values.dim())]
    return factor.to(values).reshape(shape)


def remember(part: nn.Module, axis: int, replicas: Replicas) -> None:
    """Note on a layer that an axis of its weights has become wider."""
    past: dict[int, tuple[tuple[int, ...], ...]] = getattr(part, "widened", {})
    part.widened = past | {axis: (*past.get(axis, ()), tuple(replicas.source.tolist()))}  # type: ignore[assignment]


def recalled(part: nn.Module, axis: int, now: int, then: int) -> list[Replicas] | None:
    """How an axis of `now` entries came from one of `then`, last step first; `None` if that is not known."""
    steps: Any = getattr(part, "widened", {}).get(axis, ())
    taken: list[Replicas] = []
    for step in reversed(steps):
        if now == then:
            break
        taken.append(Replicas(torch.tensor(step)))
        now = max(step) + 1
    return taken if now == then else None


def gather(values: Tensor, axis: int, replicas: Replicas) -> Tensor:
    """The originals with their copies added to them."""
    shape = list(values.shape)
    shape[axis] = int(replicas.source.max()) + 1
    return values.new_zeros(shape).index_add_(axis, replicas.source.to(values.device), values.detach())


def leading(values: Tensor, axis: int, replicas: Replicas, power: int = 0) -> Tensor:
    """The originals alone, each divided by its share to a power."""
    units = int(replicas.source.max()) + 1
    first = values.detach().narrow(axis, 0, units)
    return first / _along(replicas.share[:units] ** power, axis, first) if power else first
