"""Sweeps of a second or two, each in a folder of its own."""

from collections.abc import Callable
from typing import Any

import pytest

import rota.sweeps as ss


@pytest.fixture
def sweep(tmp_path) -> Callable[..., ss.Experiment]:
    """Gives a function that makes an experiment in the folder of the test."""

    def make(train: Callable[[dict[str, Any]], object], cfg: dict[str, Any], **options: Any) -> ss.Experiment:
        return ss.Experiment(train, cfg, local_dir=tmp_path / "sweeps", **options)

    return make
