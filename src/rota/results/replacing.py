"""Whether a run may be written where another one is."""

import json
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.results.folder import RunFolder
from rota.results.population.folder import PopulationFolder


def check_replaceable(path: Path, inputs: str, command: str) -> None:
    """Raise an error if there is a complete run, of whatever, that another command made from other inputs.

    What the same command made before may be made anew: its trace, or rota, has changed.
    """
    for file in (RunFolder(path).metrics, PopulationFolder(path).summary):
        found = _facts(file)
        if found.get("inputs", inputs) != inputs and found.get("command", command) != command:
            made_by = f"made by: {found['command']}"
            raise InputError(f"{path}: holds another run, {made_by}; choose another --out, or add --replace")


def _facts(file: Path) -> dict[str, Any]:
    """What a run says of itself; nothing if it does not."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
