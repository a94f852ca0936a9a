"""Speeds of devices from measured profiles, also of models that were not measured there.

A model that was not measured takes the speeds of a measured one of its family, at the nearest batch size.
"""

import math
from dataclasses import dataclass

from rota.core.errors import InputError
from rota.recordings.gavel import REFERENCE
from rota.recordings.profile import Profile, Profiles, relative_speed

FAMILIES = {
    "convnet": ("ResNet-18", False),
    "resnet": ("ResNet-18", False),
    "resnet50": ("ResNet-50", False),
    "vgg": ("ResNet-18", False),
    "shufflenet": ("ResNet-18", False),
    "transformer": ("Transformer", False),
    "feedforward": ("Recommendation", True),
    "a2c": ("A3C", False),
    "dqn": ("A3C", True),
}
"""Beginning of a model's name → the measured model whose speeds it takes, and whether that is assumed."""


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """The speed of a device with a model, relative to a reference device."""

    speed: float
    """Steps on the device while the reference makes one."""
    model: str
    """The measured model."""
    batch_size: int
    """The measured batch size; 0 if the model has only one."""
    assumed: bool
    """Whether the measured model is not even of the same family."""

    def __str__(self) -> str:
        batch = f" at batch size {self.batch_size}" if self.batch_size else ""
        return f"{self.speed:.3g} × as {self.model}{batch}" + (", assumed" if self.assumed else "")


@dataclass(frozen=True)
class DeviceSpeeds:
    """Speeds of devices relative to a reference, by model and batch size."""

    profiles: Profiles
    reference: str = REFERENCE

    def __post_init__(self) -> None:
        self._check(self.reference)

    def speed(self, model: str, batch_size: int, device: str) -> DeviceSpeed:
        """Return the speed of a device with a model.

        Raises InputError if nothing was measured there, or neither the model nor one of its family.
        """
        self._check(device)
        measured, assumed = self._measured(model)
        there = {row.batch_size: row for row in self._rows(measured) if row.device == device}
        on_reference = {row.batch_size: row for row in self._rows(measured) if row.device == self.reference}
        sizes = sorted(there.keys() & on_reference.keys())
        if not sizes:
            raise InputError(
                f"{device}: has no factor for {model}: {measured} was not measured there and on "
                f"{self.reference} at the same batch size"
            )
        nearest = min(sizes, key=lambda size: abs(math.log(max(size, 1) / max(batch_size, 1))))
        speed = relative_speed(there[nearest], on_reference[nearest])
        return DeviceSpeed(speed, measured, nearest, assumed)

    def _check(self, device: str) -> None:
        if device not in self.profiles.devices:
            known = ", ".join(self.profiles.devices) or "nothing"
            raise InputError(f"device {device!r} has no factor; measured were {known}")

    def _measured(self, model: str) -> tuple[str, bool]:
        if self._rows(model):
            return model, False
        family = max((name for name in FAMILIES if model.startswith(name)), key=len, default=None)
        if family is None or not self._rows(FAMILIES[family][0]):
            raise InputError(
                f"model {model!r} has no factor: neither it nor one of its family was measured; "
                f"measured were {', '.join(self.profiles.models)}"
            )
        return FAMILIES[family]

    def _rows(self, model: str) -> list[Profile]:
        return [row for row in self.profiles.rows if row.model == model and row.gang == 1 and not row.beside]
