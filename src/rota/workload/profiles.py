"""Iteration times, stages and start-up times of models: measured, borrowed or drawn."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rota.core.arrays import Floats, Ints
from rota.core.costs import MURI_SCHEDULER_OVERHEAD
from rota.core.errors import InputError
from rota.recordings.gavel import REFERENCE, job_name
from rota.recordings.profile import PACKED, Profile, nearest_gang, read_profiles, relative_speed

GANG_SIZES = (1, 2, 4, 8, 16, 32)

UNKNOWN_STARTUP_S = 10.0


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """Times of one iteration of a model on a gang of some size."""

    iteration_ms: float
    stages_ms: tuple[float, float, float]
    """Milliseconds of loading (storage and CPU), computing and synchronising."""


def _row(*cells: str) -> tuple[ModelTimes, ...]:
    """Parse cells `iteration: load/compute/synchronise`, one per gang size."""
    profiles = []
    for cell in cells:
        iteration, stages = cell.split(":")
        load, compute, sync = (float(ms) for ms in stages.split("/"))
        profiles.append(ModelTimes(float(iteration), (load, compute, sync)))
    return tuple(profiles)


PROFILES = {
    "vgg16": _row(
        "107:117/68/0", "191:114/72/40", "201:82/72/67",
        "214:82/75/66", "332:83/68/110", "336:87/67/131",
    ),
    "vgg19": _row(
        "109:114/80/0", "205:115/83/41", "212:84/85/73",
        "226:82/88/60", "302:102/78/123", "356:89/79/141",
    ),
    "resnet18": _row(
        "779:711/110/0", "881:687/110/95", "921:723/113/73",
        "1010:784/117/77", "1055:736/108/93", "1059:712/111/93",
    ),
    "shufflenet_v2_x1_0": _row(
        "798:706/59/0", "850:747/58/18", "886:703/62/17",
        "957:769/57/10", "1006:776/57/21", "1019:799/56/24",
    ),
    "bert": _row(
        "178:0.5/160/0", "195:0.5/163/18", "190:0.5/163/18",
        "192:0.5/167/59", "244:0.5/166/86", "260:0.5/166/133",
    ),
    "gpt2": _row(
        "426:0.6/410/0", "464:0.7/416/40", "433:0.6/413/20",
        "437:0.6/419/49", "491:0.6/415/137", "514:0.7/414/216",
    ),
    "a2c": _row(
        "517:514/14/0", "525:504/14/0.5", "533:502/10/0.3",
        "555:502/14/0.4", "567:514/14/1.2", "585:507/14/2",
    ),
    "dqn": _row(
        "490:446/8/0", "495:441/8/0.6", "505:440/8/0.4",
        "509:435/8/0.5", "525:438/8/1.2", "546:437/8/1.6",
    ),
}  # fmt: skip

STARTUP_S = {
    "vgg16": (7, 7, 8, 9, 9, 10),
    "vgg19": (7, 7, 8, 9, 10, 10),
    "resnet18": (4, 5, 5, 7, 7, 7),
    "shufflenet_v2_x1_0": (4, 4, 5, 5, 7, 8),
    "bert": (10, 10, 10, 10, 10, 10),
    "gpt2": (10, 10, 10, 10, 10, 10),
    "a2c": (38, 39, 39, 46, 46, 46),
    "dqn": (5, 5, 6, 6, 8, 8),
}

MODELS = tuple(PROFILES)


def profile(model: str, gpus: float) -> ModelTimes:
    """Return the profile of a model at the next larger gang size, or else the largest."""
    return PROFILES[model][_column(gpus)]


def startup_s(model: str, gpus: float) -> float:
    """Return the seconds to start a model; 10 if it was not measured."""
    row = STARTUP_S.get(model)
    return float(row[_column(gpus)]) if row else UNKNOWN_STARTUP_S


def profiled_s(models: Sequence[str], model: Ints, gpus: Floats) -> Floats:
    """Return four rows for many jobs: seconds per iteration, of loading, computing, synchronising.

    `model` holds each job's index in `models`; a model without a profile gives NaN.
    """
    seconds = np.array([_seconds_by_gang(name) for name in models])
    return np.ascontiguousarray(seconds[model, :, _columns(gpus)].T)


def startups_s(models: Sequence[str], model: Ints, gpus: Floats) -> Floats:
    """Return `startup_s` for many jobs at once."""
    seconds = np.array([[startup_s(name, size) for size in GANG_SIZES] for name in models])
    return np.asarray(seconds[model, _columns(gpus)], np.float64)


def _seconds_by_gang(model: str) -> Floats:
    """Return the rows of `profiled_s`, one column per gang size."""
    if model not in PROFILES:
        return np.full((4, len(GANG_SIZES)), np.nan)
    rows = [
        (p.iteration_ms * MURI_SCHEDULER_OVERHEAD / 1000, *(ms / 1000 for ms in p.stages_ms))
        for p in PROFILES[model]
    ]
    return np.array(rows).T


def _column(gpus: float) -> int:
    return min(bisect_left(GANG_SIZES, gpus), len(GANG_SIZES) - 1)


def _columns(gpus: Floats) -> Ints:
    return np.minimum(np.searchsorted(GANG_SIZES, gpus), len(GANG_SIZES) - 1)


STAND_INS = {
    "Transformer": "bert",
    "bert": "bert",
    "LM": "gpt2",
    "deepspeech2": "gpt2",
    "ResNet-18": "resnet18",
    "ResNet-50": "resnet18",
    "cifar10": "resnet18",
    "imagenet": "resnet18",
    "CycleGAN": "vgg19",
    "yolov3": "vgg19",
    "A3C": "a2c",
    "Recommendation": "dqn",
    "ncf": "dqn",
}

Stages = tuple[float, float, float]


def borrowed_stages_s(model: str, gpus: float, iteration_s: float) -> Stages:
    """Return stages in the proportions of a similar model; all computing without one."""
    name = STAND_INS.get(model)
    if name is None:
        return (0.0, iteration_s, 0.0)
    measured = profile(name, gpus)
    load, compute, sync = (iteration_s * ms / measured.iteration_ms for ms in measured.stages_ms)
    return (load, compute, sync)


def split_stages_s(model: str, gpus: float, iteration_s: float, sync_s: float) -> Stages:
    """Return the measured synchronise stage, and the rest split as in a similar model."""
    load, compute, _ = borrowed_stages_s(model, gpus, iteration_s)
    rest_s = max(iteration_s - sync_s, 0.0)
    return (rest_s * load / (load + compute), rest_s * compute / (load + compute), sync_s)


STARTUP = "startup_s"
"""Extra column of a profile with the seconds of a start."""


SHOWN = 8
"""Batch sizes that an error names, apart from the largest."""


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Measured profiles of one device by model and gang size, and the speeds of others."""

    source: str
    rows: dict[str, dict[int, Profile]] = field(default_factory=dict)
    """Model, or `MODEL (batch size N)`, → gang size → profile."""
    expected_s: float = math.nan
    """Seconds per iteration of a model that was not measured; NaN if not known."""
    speeds: dict[str, dict[str, float]] = field(default_factory=dict)
    """Other device → model → its speed relative to the device of the profiles."""
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Model that was measured with several batch sizes → these; its name alone does not say which."""

    def find(self, model: str, gpus: float) -> Profile | None:
        """Return the profile at the measured gang size that stands for this one.

        Raises InputError for a model that was measured with several batch sizes, without one.
        """
        if model in self.sizes:
            *some, last = self.sizes[model]
            more = " …" if len(some) > SHOWN else ""
            raise InputError(
                f"{self.source}: has {model} with batches of {', '.join(map(str, some[:SHOWN]))}{more} and "
                f"{last}; name "
                f"one of them in the trace, as in {job_name(model, last)!r}"
            )
        gangs = self.rows.get(model)
        return gangs[nearest_gang(gpus, gangs)] if gangs else None

    def columns(self, models: Sequence[str], gpus: Floats) -> Floats:
        """Return five rows, a column per job: an iteration, its three stages, a start; NaN if not known."""
        found = [self._column(*job) for job in zip(models, gpus.tolist(), strict=True)]
        return np.array(found, float).reshape(-1, 5).T

    def _column(self, model: str, gpus: float) -> tuple[float, ...]:
        found = self.find(model, gpus)
        if found is None:
            return self.expected_s, 0.0 * self.expected_s, self.expected_s, 0.0, 0.0
        stages = (0.0 if math.isnan(stage) else stage for stage in found.stages_s)
        return found.iteration_s, *stages, found.extra.get(STARTUP, 0.0)


def read_measured(folder: Path) -> MeasuredTimes:
    """Return the profiles of a recording in which each model ran alone, on one device or several.

    Of several devices, the V100 counts, and others are as fast in relation to it as was measured. Raises
    InputError if there is none.
    """
    profiles = read_profiles(folder)
    alone = [row for row in profiles.rows if not row.beside and row.placement == PACKED]
    devices = list(dict.fromkeys(row.device for row in alone))
    if len(devices) > 1 and REFERENCE not in devices:
        raise InputError(
            f"{folder}: was measured on {', '.join(devices)}; give a recording of one device, or with a "
            f"{REFERENCE}, to which others are compared"
        )
    found: dict[str, set[int]] = {}
    for row in alone:
        found.setdefault(row.model, set()).add(row.batch_size)
    sizes = {model: tuple(sorted(each)) for model, each in found.items() if len(each) > 1}
    by_device: dict[str, dict[str, dict[int, Profile]]] = {device: {} for device in devices}
    for row in alone:
        names = {job_name(row.model, row.batch_size), *({row.model} - sizes.keys())}
        for name in names:
            by_device[row.device].setdefault(name, {}).setdefault(row.gang, row)
    reference = REFERENCE if len(devices) > 1 else "".join(devices)
    rows = by_device.get(reference, {})
    speeds = {
        device: {model: speed for model in rows if (speed := _speed(rows[model], there.get(model, {})))}
        for device, there in by_device.items()
        if device != reference
    }
    return MeasuredTimes(str(folder), rows, speeds=speeds, sizes=sizes)


def _speed(here: Mapping[int, Profile], there: Mapping[int, Profile]) -> float:
    """Return how much faster a model is there: with one device, or else the mean over gangs; 0 if unknown."""
    gangs = sorted(here.keys() & there.keys())
    ratios = [relative_speed(there[gang], here[gang]) for gang in gangs]
    return ratios[0] if gangs[:1] == [1] else math.fsum(ratios) / len(ratios) if ratios else 0.0
