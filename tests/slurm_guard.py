"""Ends a Slurm when who started this process is gone, however that ended: its input is closed then.

The only argument is the folder of a Slurm of setup/slurm-local.sh; its last part may be a pattern.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "setup" / "slurm-local.sh"


def main(wanted: Path) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    sys.stdin.read()
    for folder in list(wanted.parent.glob(wanted.name)):
        subprocess.run(["bash", SCRIPT, "stop", "--folder", folder], capture_output=True)
        end_clients_of(folder)
        shutil.rmtree(folder, ignore_errors=True)


def end_clients_of(folder: Path) -> None:
    """A salloc whose Slurm is gone would look for it for ever."""
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            is_client = file.with_name("exe").readlink().name in ("salloc", "srun")
            if is_client and f"SLURM_CONF={folder}/".encode() in file.read_bytes():
                os.kill(int(file.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
