"""The eight models of the Muri measurements: iteration times, stages and start-up, by gang size.

Measured by the Muri project (SIGCOMM '22) on V100 GPUs; milliseconds per iteration and stage.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats, Ints
from rota.core.costs import SCHEDULED

GANG_SIZES = (1, 2, 4, 8, 16, 32)

UNKNOWN_STARTUP_S = 10.0


@dataclass(frozen=True, slots=True)
class Profile:
    """One iteration of a model on a gang of a given size."""

    iteration_ms: float
    stages_ms: tuple[float, float, float]
    """Loading (storage and CPU), computing, synchronising."""


def _row(*cells: str) -> tuple[Profile, ...]:
    """Cells `iteration: load/compute/synchronise`, one per gang size."""
    profiles = []
    for cell in cells:
        iteration, stages = cell.split(":")
        load, compute, sync = (float(ms) for ms in stages.split("/"))
        profiles.append(Profile(float(iteration), (load, compute, sync)))
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


def profile(model: str, gpus: float) -> Profile:
    """The profile of a model; a gang size between two columns takes the larger, above the last the last."""
    return PROFILES[model][_column(gpus)]


def startup_s(model: str, gpus: float) -> float:
    """Seconds to start the model; 10 if it is not among the measured ones."""
    row = STARTUP_S.get(model)
    return float(row[_column(gpus)]) if row else UNKNOWN_STARTUP_S


def profiled_s(models: Sequence[str], model: Ints, gpus: Floats) -> Floats:
    """Four rows for many jobs at once: seconds per iteration, of loading, computing, synchronising.

    `model` holds each job's place in `models`; a model without a profile gives NaN.
    """
    seconds = np.array([_seconds_by_gang(name) for name in models])
    return np.ascontiguousarray(seconds[model, :, _columns(gpus)].T)


def startups_s(models: Sequence[str], model: Ints, gpus: Floats) -> Floats:
    """As `startup_s`, for many jobs at once."""
    seconds = np.array([[startup_s(name, size) for size in GANG_SIZES] for name in models])
    return np.asarray(seconds[model, _columns(gpus)], np.float64)


def _seconds_by_gang(model: str) -> Floats:
    """The rows of `profiled_s`, one column per gang size."""
    if model not in PROFILES:
        return np.full((4, len(GANG_SIZES)), np.nan)
    rows = [(p.iteration_ms * SCHEDULED / 1000, *(ms / 1000 for ms in p.stages_ms)) for p in PROFILES[model]]
    return np.array(rows).T


def _column(gpus: float) -> int:
    return min(bisect_left(GANG_SIZES, gpus), len(GANG_SIZES) - 1)


def _columns(gpus: Floats) -> Ints:
    return np.minimum(np.searchsorted(GANG_SIZES, gpus), len(GANG_SIZES) - 1)
