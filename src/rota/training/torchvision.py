"""torchvision, also with the CPU build of PyTorch: `from rota.training.torchvision import torchvision`."""

from importlib import import_module
from typing import Any

import torch


def _load() -> tuple[Any, torch.library.Library | None]:
    try:
        return import_module("torchvision"), None
    except RuntimeError:
        if torch.version.cuda is not None:
            raise
    # torchvision's wheel is built for CUDA: with the CPU build its operators do not load, and importing it
    # asks for these two. Nothing here calls them, so it is enough that their schemas exist.
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        schema = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        library.define(schema)  # type: ignore[no-untyped-call]
    return import_module("torchvision"), library


torchvision, _library = _load()  # the operators vanish with the library object
