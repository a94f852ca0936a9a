"""Supervised tasks: classify images, predict the next byte of a program."""

import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from rota.core.errors import ConfigError, InputError, unknown
from rota.core.limits import at_least
from rota.training.data.images import Crops, Images, Normal, Splits, Stream
from rota.training.task import Batch, Task, evaluating

IMAGES_AT_ONCE = {"cpu": 128, "cuda": 1024}
"""Number of images evaluated at once; on a CPU as many as its cache holds."""


class Classification(Task):
    """Classification of images: images in, a score for each class out."""

    metric = "accuracy"
    scores = True

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
        """Return the `size` examples from `position` on, augmented if so configured, on the device."""
        taken = self._stream.take(position, size)
        pixels = self._crops.take(taken) if self._crops else self._images.take(taken.order, axis=0)
        labels = torch.from_numpy(self._labels.take(taken.order))
        return Batch(self._normal(torch.from_numpy(pixels)), labels.to(self._device))

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of the batch."""
        return cross_entropy(outputs, batch.targets)

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """Return accuracy and mean loss on a split, without augmentation; a NaN output is wrong."""
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

    def _parts(self, images: Images) -> Iterator[tuple[Tensor, Tensor]]:
        size = IMAGES_AT_ONCE.get(self._device.type, 1024)
        for start in range(0, len(images), size):
            part = slice(start, start + size)
            yield self._normal(images.images[part]), images.labels[part].to(self._device)


TEXTS = {
    "train": (
        "argparse ast base64 bdb calendar codecs configparser contextlib csv dataclasses difflib dis doctest "
        "enum fractions ftplib functools gettext gzip heapq imaplib inspect ipaddress mailbox mimetypes "
        "ntpath optparse os"
    ),
    "validation": "pickle platform plistlib poplib",
    "test": "posixpath pprint pyclbr queue random shutil",
}
"""Modules that are single files in every version of Python from 3.11 on, by split."""
VOCABULARY = 256
EVALUATED_TEXTS = 512
"""Number of texts, evenly spread over a split, that evaluate a network."""
TEXTS_AT_ONCE = 64


class Language(Task):
    """Prediction of Python's own library: texts of `context` bytes in, scores for each next byte out."""

    outputs = VOCABULARY
    metric = "accuracy"
    scores = True

    def __init__(self, *, device: torch.device, seed: int = 0, context: int = 64) -> None:
        at_least(1, context=context)
        self.inputs: tuple[int, ...] = (context,)
        self._device = device
        texts = {split: b"".join(map(_source, names.split())) for split, names in TEXTS.items()}
        self.digest = hashlib.sha256(b"\0".join(texts.values())).hexdigest()
        self._texts = {split: _windows(split, text, context) for split, text in texts.items()}
        self.examples = len(self._texts["train"])
        self._stream = Stream(self.examples, seed=seed)

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        """Return the `size` texts from `position` on."""
        order = torch.from_numpy(self._stream.take(position, size).order)
        return self._batch(self._texts["train"][order])

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """Return the cross-entropy in nats per byte."""
        return cross_entropy(outputs.flatten(0, 1), batch.targets.flatten())

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """Return the share of bytes that had the highest score, and the mean loss."""
        if split not in self._texts:
            raise ConfigError(unknown("split", split, self._texts))
        texts = self._texts[split]
        evenly = torch.linspace(0, len(texts) - 1, min(EVALUATED_TEXTS, len(texts))).long()
        correct, loss = 0, 0.0
        with evaluating(network):
            for start in range(0, len(evenly), TEXTS_AT_ONCE):
                batch = self._batch(texts[evenly[start : start + TEXTS_AT_ONCE]])
                outputs = network(batch.inputs)
                right = (outputs.argmax(2) == batch.targets) & ~outputs.isnan().any(2)
                correct += int(right.sum())
                loss += self.loss(outputs, batch).item() * batch.targets.numel()
        symbols = len(evenly) * self.inputs[0]
        return {"accuracy": correct / symbols, "loss": loss / symbols}

    def _batch(self, texts: Tensor) -> Batch:
        symbols = texts.to(self._device).long()
        return Batch(symbols[:, :-1], symbols[:, 1:])


def _windows(split: str, text: bytes, context: int) -> Tensor:
    """Return the text of a split in rows of `context` + 1 bytes; each byte is predicted once."""
    if len(text) <= context:
        raise ConfigError(
            f"context is {context}; the {split} text has only {len(text)} bytes: give a smaller one"
        )
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).unfold(0, context + 1, context)


def _source(module: str) -> bytes:
    file = Path(sysconfig.get_path("stdlib"), f"{module}.py")
    try:
        return file.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        source = "the text to learn from is the source of Python's own library"
        raise InputError(f"{file}: cannot be read ({error.strerror}); {source}: install it") from None
