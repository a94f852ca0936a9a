"""Step 1 on a real partition table and a real file system, in a file that is the disk of a chroot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
MB = 2048  # sectors
LABELS = {"gpt": ("U", "L", "S"), "dos": ("ef", "83", "82")}

INSIDE = """
set -euo pipefail
mount --make-rprivate /
mount "$ROOT_PARTITION" "$PLACE"
for each in /*; do
    [[ $each == /var || $PLACE/ == $each/ ]] && continue
    if [[ -L $each ]]; then cp -P "$each" "$PLACE$each"
    elif [[ -d $each ]]; then mkdir -p "$PLACE$each" && mount --rbind "$each" "$PLACE$each"; fi
done
mkdir -p "$PLACE/var/backups"
cd /
chroot "$PLACE" bash "$STEP" "$@"
"""


PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
HERE = {**os.environ, "PATH": PATH}


def command(*words, env=HERE, **options):
    return subprocess.run(words, env=env, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """An environment that has growpart and sfdisk: those of this machine, or else from Debian's packages."""
    folder = tmp_path_factory.mktemp("tools")
    if os.geteuid() != 0:
        pytest.skip("only root can attach a disk")
    if not (shutil.which("growpart") and shutil.which("sfdisk", path=PATH)):
        _unpack(folder)
    found = [str(folder / "rest" / where) for where in ("sbin", "usr/sbin", "usr/bin")]
    libraries = ":".join({str(file.parent) for file in folder.rglob("libfdisk.so*")})
    path = ":".join([str(folder), *found, PATH])
    if not _may_resize():
        _write(folder / "resize2fs", 'echo "$@" > "$LATER"')
    # A disk in a file is a "loop" to lsblk, which the step refuses, as it should.
    _write(folder / "lsblk", f'{shutil.which("lsblk")} "$@" | sed "s/^loop *$/disk/"')
    return {**os.environ, "PATH": path, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}


def _write(file, body):
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)


def _may_resize():
    """Whether root may resize what is mounted (CAP_SYS_RESOURCE); in a container it often may not."""
    mine = Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0]
    return bool(int(mine, 16) >> 24 & 1)


def _unpack(folder):
    packages = ("cloud-guest-utils", "fdisk", "libfdisk1")
    try:
        command("apt-get", "download", "-o", "APT::Sandbox::User=root", *packages, cwd=folder)
        for package in folder.glob("*.deb"):
            command("dpkg-deb", "--extract", str(package), str(folder / "rest"))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"growpart and sfdisk are not here, and cannot be fetched: {error}")


class RealDisk:
    """A disk of 512 MB: two small partitions, a root of 128 MB, and whatever is said to be behind it."""

    def __init__(self, folder, label, behind, environment):
        self.environment, self.folder = environment, folder
        self.place = folder / "place"
        self.place.mkdir()
        efi, linux, swap = LABELS[label]
        self.file = folder / "disk"
        with self.file.open("wb") as image:
            image.truncate(512 << 20)
        parts = [(1, 4, efi), (5, 4, linux), (9, 128, linux)]
        parts += [(behind, 16, swap)] if behind else []
        lines = [f"start={start * MB}, size={size * MB}, type={kind}" for start, size, kind in parts]
        table = "\n".join([f"label: {label}", *lines])
        command("sfdisk", "--quiet", str(self.file), env=environment, input=table)
        self.device = self._attached()
        self.root = f"{self.device}p3"
        command("mkfs.ext4", "-q", "-F", self.root, env=environment)

    def _attached(self):
        try:
            device = command("losetup", "--find", "--show", "--partscan", str(self.file)).strip()
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no disk can be attached here: {error}")
        if not Path(f"{device}p3").exists():  # a kernel that does not read tables by itself
            subprocess.run(["partx", "--add", device], env=HERE, check=False, capture_output=True)
        if not Path(f"{device}p3").exists():
            command("losetup", "--detach", device)
            pytest.skip("this kernel knows no partitions of a disk in a file")
        return device

    def detach(self):
        subprocess.run(["partx", "--delete", self.device], env=HERE, check=False, capture_output=True)
        command("losetup", "--detach", self.device)

    def table(self):
        return command("sfdisk", "--dump", self.device, env=self.environment).splitlines()

    def size(self):
        """Bytes of the file system."""
        lines = command("dumpe2fs", "-h", self.root, env=self.environment)
        found = dict(line.split(":", 1) for line in lines.splitlines() if ":" in line)
        return int(found["Block count"]) * int(found["Block size"])

    def run(self, *arguments):
        """Run the step; what cannot be resized while it is mounted is resized afterwards."""
        later = self.folder / "later"
        run = self._run(later, *arguments)
        if later.exists():
            assert later.read_text() == f"{self.root}\n"
            later.unlink()
            command("e2fsck", "-f", "-p", self.root)
            command("resize2fs", self.root)
        return run

    def _run(self, later, *arguments):
        variables = {
            "LATER": str(later),
            "ROOT_PARTITION": self.root,
            "PLACE": str(self.place),
            "STEP": str(REPOSITORY / "setup" / "1-disk.sh"),
        }
        return subprocess.run(
            ["unshare", "--mount", "bash", "-c", INSIDE, "inside", *arguments],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self):
        """What is on the file system, looked at from outside."""
        where = str(self.place)
        script = f'mount -o ro {self.root} "{where}" && cd "{where}" && cat var/backups/*.sfdisk'
        return command("unshare", "--mount", "bash", "-c", script)


@pytest.fixture
def attach(tmp_path, tools):
    """A function that attaches a disk; it is detached in the end."""
    attached = []

    def attach(label, behind=0):
        for name in ("losetup", "partx", "mkfs.ext4", "unshare"):
            if not shutil.which(name, path=tools["PATH"]):
                pytest.skip(f"there is no {name} here")
        attached.append(RealDisk(tmp_path, label, behind, tools))
        return attached[-1]

    yield attach
    for disk in attached:
        disk.detach()


def test_a_real_root_grows_once_and_nothing_else_changes(attach):
    disk = attach("gpt")
    before = disk.table()
    assert disk.size() == 128 << 20

    dry = disk.run("--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert dry.stdout.splitlines()[1:] == [
        f"would run: growpart {disk.device} 3",
        f"would run: resize2fs {disk.root}",
    ]
    assert (disk.table(), disk.size()) == (before, 128 << 20)

    run = disk.run()
    assert run.returncode == 0, run.stderr
    after = disk.table()
    assert [line for line in after if line not in before] == after[
        -1:
    ]  # the last line, of the root, has changed
    assert after[-1].split("start=")[1].split(",")[0] == before[-1].split("start=")[1].split(",")[0]
    assert 500 << 20 < disk.size() <= (512 - 9) << 20
    assert disk.files().splitlines() == before

    again = disk.run()
    assert again.returncode == 0
    assert f"already so: the root {disk.root} has all of" in again.stderr
    assert disk.table() == after
    command("e2fsck", "-f", "-n", disk.root)


def test_a_real_root_grows_up_to_unused_swap(attach):
    disk = attach("dos", behind=300)
    run = disk.run()
    assert run.returncode == 0, run.stderr
    assert disk.size() == (300 - 9) << 20
    assert "already so" not in run.stderr
    assert disk.run().returncode == 1  # what is left is swap


def test_a_real_root_before_swap_is_left_as_it_is(attach):
    disk = attach("gpt", behind=137)
    before = disk.table()
    run = disk.run()
    assert run.returncode == 1
    assert f"ends where the swap {disk.device}p4 begins" in run.stderr
    assert (disk.table(), disk.size()) == (before, 128 << 20)


def test_a_disk_that_is_no_disk_is_refused_for_real(attach):
    disk = attach("gpt")
    disk.environment = {
        **disk.environment,
        "PATH": disk.environment["PATH"].split(":", 1)[1],
    }  # the true lsblk
    run = disk.run()
    assert run.returncode == 1
    assert "which is no disk (it is: loop); this step does not touch it" in run.stderr
