"""What the command that made a run says about it."""

import shlex


def is_real(command: str) -> bool:
    """Whether a run was made by `rota run`, not rehearsed."""
    return shlex.split(command)[1:2] == ["run"]
