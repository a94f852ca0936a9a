"""What the command that made a run says about it."""

import shlex


def is_real(command: str) -> bool:
    """Whether a run was made by `rota run`, not rehearsed."""
    words = [word for word in shlex.split(command)[1:] if not word.startswith("-")]
    return words[:1] == ["run"]
