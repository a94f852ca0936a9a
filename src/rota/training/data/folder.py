"""Where data sets are kept."""

import os
from pathlib import Path

DEBIAN = Path("/usr/share/datasets")
"""Where Debian's packages put data sets."""


def data_folder(root: Path | None = None) -> Path:
    """The folder given, or else ROTA_DATA, or else one in the user's cache."""
    if root is not None:
        return Path(root)
    named = os.environ.get("ROTA_DATA")
    return Path(named) if named else Path.home() / ".cache" / "rota" / "data"
