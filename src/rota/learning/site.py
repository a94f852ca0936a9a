"""Jobs whose networks grow as a learned agent decides, for `rota run`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rota.learning.agent import read_agent
from rota.training.job import Networks, bound


def networks(settings: Mapping[str, Any], seed: int) -> Networks:
    """Return the jobs that `[kinds]` in a configuration describes."""
    return Networks(bound(settings), seed, lambda folder: read_agent(Path(folder)))
