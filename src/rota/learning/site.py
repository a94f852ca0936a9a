"""Jobs of a cluster, with agents that decide how a resident's network changes: a site for `rota run`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rota.learning.agent import read_agent
from rota.training.job import Networks, bound


def networks(settings: Mapping[str, Any], seed: int) -> Networks:
    """What `[kinds]` in a configuration says."""
    return Networks(bound(settings), seed, lambda folder: read_agent(Path(folder)))
