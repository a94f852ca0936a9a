"""Files that a command is given: the user's, or, where there is none of that name, shipped ones."""

import sys
from pathlib import Path

from rota.commands.say import say
from rota.core.shipped import located


def given_file(text: str) -> Path:
    """Return where a file or folder is that the user names; a note says so if it is a shipped one."""
    path = Path(text)
    found = located(path)
    if found != path:
        say(f"note: {path}: not here, the shipped one is used ({found})", file=sys.stderr)
    return found
