"""The device that training runs on: CUDA if there is a GPU, else the CPU, through the same code."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from rota.core.errors import ConfigError


def device(name: str = "auto") -> torch.device:
    """Return the device of that name; `auto` is the first GPU, or else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device {name!r}: is not one; give auto, cpu, cuda or cuda:1") from None
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r}: rota trains on the CPU and on CUDA; give auto, cpu or cuda")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r}: PyTorch sees no GPU here; give cpu or auto")
    if found.type == "cuda" and (found.index or 0) >= (count := torch.cuda.device_count()):
        raise ConfigError(f"device {name!r}: PyTorch sees {count} GPUs here: give cuda:0 to cuda:{count - 1}")
    return found


def synchronise(where: torch.device) -> None:
    """Wait until the device is idle, so that the next reading of a clock is right."""
    if where.type == "cuda":
        torch.cuda.synchronize(where)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use so many CPU threads in the meantime."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def description(where: torch.device, threads: int | None = None) -> str:
    """Return the maker's name of the device, and for a CPU its number of threads."""
    if where.type == "cuda":
        return torch.cuda.get_device_name(where)
    count = threads or torch.get_num_threads()
    return f"{_processor()}, {count} thread{'s' if count > 1 else ''}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
