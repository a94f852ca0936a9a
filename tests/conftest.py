"""Fixtures for every test."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture
def reference() -> Callable[..., Path]:
    """Gives a function that finds public reference data; the test is skipped where it is absent."""
    folder = Path(os.environ.get("ROTA_REFERENCE") or REPOSITORY.parent / "shared" / "reference")

    def find(*parts: str) -> Path:
        path = folder.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"no reference data {'/'.join(parts)}; set ROTA_REFERENCE to its folder")
        return path

    return find
