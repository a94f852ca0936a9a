"""Agents that place trials, told from those that change networks."""

from pathlib import Path

from rota.core.facts import parsed
from rota.policies.allocation.agent import FACTS, FORMAT


def is_placement_agent(folder: Path) -> bool:
    """Whether there is one, whole or damaged, as far as its file says."""
    try:
        found = parsed((folder / FACTS).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def placement_agents(folder: Path) -> list[Path]:
    """The folders of those in a folder, and in folders in it."""
    found = (path.parent for path in sorted(folder.rglob(FACTS)))
    return [each for each in found if is_placement_agent(each)]
