"""Saying what is on an image."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from rota.core.errors import ConfigError, unknown
from rota.training.data.images import Crops, Images, Normal, Splits, Stream
from rota.training.evaluation import evaluating
from rota.training.task import Batch

EVALUATED = {"cpu": 128, "cuda": 1024}
"""So many images are evaluated at once: on a CPU what its cache holds, which is faster than more."""


class Classification:
    """Images in, a score for each class out. It has no state: a position in the stream says it all."""

    metric = "accuracy"
    scores = True
    digest = ""

    def __init__(self, splits: Splits, *, device: torch.device, seed: int = 0, augment: bool = False) -> None:
        channels, height, width = splits.train.images.shape[1:]
        margin = height // 8 if augment else 0
        self.inputs: tuple[int, ...] = (channels, height, width)
        self.outputs = len(splits.classes)
        self.examples = len(splits.train)
        self._splits = {"train": splits.train, "validation": splits.validation, "test": splits.test}
        self._device = device
        self._normal = Normal(splits.train.images, device)
        self._images = splits.train.images.numpy()
        self._labels = splits.train.labels.numpy()
        self._stream = Stream(self.examples, seed=seed, margin=margin)
        self._crops = Crops(self._images, margin=margin, mirror=splits.mirrored) if augment else None

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        """The `size` examples from `position` on, augmented if that was asked for, on the device."""
        taken = self._stream.take(position, size)
        pixels = self._crops.take(taken) if self._crops else self._images.take(taken.order, axis=0)
        labels = torch.from_numpy(self._labels.take(taken.order))
        return Batch(self._normal(torch.from_numpy(pixels)), labels.to(self._device))

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        return cross_entropy(outputs, batch.targets)

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """Accuracy and mean loss on all of a split, as it is; an answer that is not a number is wrong."""
        if split not in self._splits:
            raise ConfigError(unknown("split", split, self._splits))
        images = self._splits[split]
        correct = torch.zeros((), dtype=torch.int64, device=self._device)
        loss = torch.zeros((), dtype=torch.float64, device=self._device)
        with evaluating(network):
            for pixels, labels in self._parts(images):
                outputs = network(pixels)
                right = (outputs.argmax(1) == labels) & ~outputs.isnan().any(1)
                correct += right.sum()
                loss += cross_entropy(outputs, labels, reduction="sum")
        return {"accuracy": correct.item() / len(images), "loss": loss.item() / len(images)}

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the position says it all."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""

    def _parts(self, images: Images) -> Iterator[tuple[Tensor, Tensor]]:
        size = EVALUATED.get(self._device.type, 1024)
        for start in range(0, len(images), size):
            part = slice(start, start + size)
            yield self._normal(images.images[part]), images.labels[part].to(self._device)
