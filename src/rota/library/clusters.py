"""Clusters from configuration files."""

import os
from pathlib import Path

from rota.config.bind import bind
from rota.config.load import read
from rota.config.paths import placed
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.replay.experiment import ClusterConfig


def read_cluster_toml(path: str | os.PathLike[str]) -> Cluster:
    """Return the cluster of a file: its table `[cluster]`, or all of it if it has no such table."""
    file = Path(path)
    table = read(file)
    found = table.get("cluster", table)
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: cluster is not a table")
    where = f"{file}: cluster" if "cluster" in table else file
    return bind(ClusterConfig, placed(found, ("file",), file.parent), where).build()
