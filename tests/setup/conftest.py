"""A machine made of stand-in commands, on which the steps of setup/ can be tried."""

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

PLAIN = ("awk", "cat", "date", "dirname", "env", "grep", "head", "numfmt", "sed", "seq", "tail", "tr")
"""Commands that are the real ones on every machine."""
ACTS = (
    "add-apt-repository", "apt-get", "bash", "growpart", "modprobe", "reboot", "resize2fs", "sleep", "sudo",
    "swapoff", "update-initramfs",
)  # fmt: skip
"""Commands that do something. They are stand-ins from the start, and so is what is in /usr/sbin elsewhere."""
LOOKS = ("apt-cache", "dpkg-query", "dumpe2fs", "lsmod", "modinfo", "sfdisk", "swapon")
HARMLESS = ("--simulate", "--showconfig", "sleep ")


class Machine:
    """A checkout, and a PATH that has only stand-ins and a few plain commands; this is root."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "my checkout"
        self.bin = folder / "bin"
        self.log = folder / "log"
        shutil.copytree(REPOSITORY / "setup", self.root / "setup")
        self.bin.mkdir()
        for name in PLAIN:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        for name in ACTS + LOOKS:
            self.command(name)
        self.command("sudo", '"$@"')
        self.is_user("root", 0)
        self.variables: dict[str, str] = {}

    def command(self, name: str, body: str = "") -> None:
        """A stand-in that writes down how it was called, and then does what the body says."""
        file = self.bin / name
        file.unlink(missing_ok=True)
        file.write_text(f'#!/bin/bash\necho "{name} $*" >> "{self.log}"\n{body}\n')
        file.chmod(0o755)

    def without(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()

    def is_user(self, name: str, number: int) -> None:
        self.command("id", f"if [[ $1 == -u ]]; then echo {number}; else echo {name}; fi")

    def knows(self, *packages: str) -> None:
        """What apt would install, as `name version`."""
        lines = ["{}) found={} ;;".format(*each.split()) for each in packages]
        choice = "\n".join(['found="(none)"', 'case "$2" in', *lines, "esac"])
        self.command("apt-cache", f'{choice}\necho "$2:"\necho "  Candidate: $found"')

    def has_installed(self, *packages: str) -> None:
        """Packages as `name version`, of which those that match a pattern are listed."""
        tests = [f'[[ {each.split()[0]} == ${{@: -1}} ]] && echo "installed {each}"' for each in packages]
        lines = "\n".join(tests)
        self.command("dpkg-query", f"{lines}\ntrue")

    def run(self, step: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        self.log.unlink(missing_ok=True)
        return subprocess.run(
            [str(shutil.which("bash")), f"setup/{step}", *arguments],
            cwd=self.root,
            env={"PATH": str(self.bin), "HOME": str(self.root.parent), **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def did(self) -> list[str]:
        """What was done in the last run that would change a real machine."""
        calls = self.log.read_text().replace(str(self.root), "ROOT").splitlines() if self.log.exists() else []
        acts = [call for call in calls if call.split()[0] in ACTS]
        return [call for call in acts if not any(word in call for word in HARMLESS)]

    def would(self, step: str, *arguments: str) -> list[str]:
        """What a step would do, as it says in a dry run, which does nothing."""
        run = self.run(step, "--dry-run", *arguments)
        assert run.returncode == 0, run.stderr
        assert self.did() == []
        assert "this was a dry run: nothing has been changed" in run.stderr
        lines = run.stdout.replace(str(self.root), "ROOT").splitlines()
        assert all(line.startswith("would run: ") for line in lines), run.stdout
        return [line.removeprefix("would run: ") for line in lines]

    def refuses(self, step: str, *arguments: str) -> str:
        """The sentence with which a step refuses, in a dry run as well as in earnest, having done nothing."""
        said = set()
        for more in (["--dry-run"], []):
            run = self.run(step, *more, *arguments)
            assert run.returncode == 1, (run.stdout, run.stderr)
            assert not [call for call in self.did() if not call.endswith(" update")]
            said.add(run.stderr.splitlines()[-1])
        assert len(said) == 1, said
        return said.pop().removeprefix(f"{step}: ")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
