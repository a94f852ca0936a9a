"""The root grows into the free space behind it, and no disk is touched that is not as expected."""

import re

import pytest

GB = 1 << 30
SECTORS = GB // 512
STEP = "1-disk.sh"
LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
SWAP = "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F"
EFI = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"


class Disk:
    """A disk of 480 GB as on a fresh node: EFI, boot, a root of 64 GB, then nothing."""

    def __init__(self, machine, name="sda"):
        self.machine, self.name, self.size = machine, name, 480 * GB
        self.type, self.root_type, self.file_system, self.label = "disk", "part", "ext4", "gpt"
        self.file_system_bytes = 64 * GB
        self.swaps = ""
        self.partitions = {
            1: (2048, SECTORS, EFI),
            2: (2048 + SECTORS, SECTORS, LINUX),
            3: (2048 + 2 * SECTORS, 64 * SECTORS, LINUX),
        }

    def part(self, number):
        return f"/dev/{self.name}{'p' if self.name[-1].isdigit() else ''}{number}"

    def behind(self, number, kind, gap=0):
        last = max(start + size for start, size, _ in self.partitions.values())
        self.partitions[number] = (last + gap, 8 * SECTORS, kind)

    def dump(self):
        """As sfdisk prints it."""
        lines = [f"label: {self.label}", f"device: /dev/{self.name}", "unit: sectors", "sector-size: 512", ""]
        for number, (start, size, kind) in self.partitions.items():
            name = ', name="a type=82, start=1"' if self.label == "gpt" else ""
            lines.append(f"{self.part(number)} : start={start:>12}, size={size:>12}, type={kind}{name}")
        return "\n".join(lines)

    def attach(self, root=None):
        """Make the stand-ins answer as on a machine with this disk."""
        root = root or self.part(3)
        machine = self.machine
        machine.command(
            "findmnt", f'case "$*" in *FSTYPE*) echo {self.file_system} ;; *) echo {root} ;; esac'
        )
        machine.command(
            "lsblk",
            f"""case "${{@: -2}}" in
                "TYPE {root}") echo {self.root_type} ;;
                "PKNAME {root}") echo {self.name} ;;
                "TYPE /dev/{self.name}") echo "{self.type} " ;;
                "SIZE /dev/{self.name}") echo {self.size} ;;
                *) echo "lsblk: $*: not a block device" >&2; exit 32 ;;
            esac""",
        )
        machine.command("sfdisk", f"cat << 'END'\n{self.dump()}\nEND")
        machine.command("swapon", f'printf "{self.swaps}"')
        blocks = self.file_system_bytes // 4096
        machine.command("dumpe2fs", f'echo "Block count:              {blocks}"; echo "Block size:   4096"')
        return machine


@pytest.fixture
def disk(machine):
    return Disk(machine)


def grown(name, part, number=3):
    return [
        f"bash -c 'sfdisk --dump /dev/{name} > /var/backups/{name}-partitions-WHEN.sfdisk'",
        f"growpart /dev/{name} {number}",
        f"resize2fs {part}",
    ]


def dated(lines):
    return [re.sub(r"partitions-[0-9-]+\.", "partitions-WHEN.", line) for line in lines]


@pytest.mark.parametrize("name", ["sda", "nvme0n1", "sdab"])
def test_the_root_gets_the_free_space_behind_it(machine, name):
    disk = Disk(machine, name)
    assert dated(disk.attach().would(STEP)) == grown(name, disk.part(3))


def test_in_earnest_it_does_what_the_dry_run_said(disk):
    machine = disk.attach()
    dry = dated(machine.would(STEP))
    run = machine.run(STEP)
    assert (run.returncode, run.stdout) == (0, "")
    assert dated(machine.did()) == [line.replace("'", "") for line in dry]
    assert "the root /dev/sda3 has 64GB, and 414GB behind it are free" in run.stderr
    assert run.stderr.endswith("next: sudo bash setup/2-driver.sh (no need to reboot before)\n")


def test_a_root_that_fills_its_disk_is_left_as_it_is(disk):
    disk.partitions[3] = (2048 + 2 * SECTORS, 478 * SECTORS - 2048 - 33, LINUX)
    disk.file_system_bytes = 478 * GB - (1 << 20) - 64 * 1024
    machine = disk.attach()
    run = machine.run(STEP)
    assert (run.returncode, machine.did()) == (0, [])
    assert "already so: the root /dev/sda3 has all of sda that it can have (478GB)" in run.stderr
    assert machine.would(STEP) == []


def test_a_file_system_smaller_than_its_partition_grows_even_if_the_partition_cannot(disk):
    disk.partitions[3] = (2048 + 2 * SECTORS, 478 * SECTORS - 2048 - 33, LINUX)
    assert disk.attach().would(STEP) == ["resize2fs /dev/sda3"]


def test_growpart_is_installed_where_it_is_missing(disk):
    machine = disk.attach()
    machine.without("growpart")
    apt = "env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600"
    assert machine.would(STEP)[:2] == [
        f"{apt} update",
        f"{apt} install -y --no-install-recommends cloud-guest-utils",
    ]


def test_an_old_table_ends_at_two_terabytes(disk):
    disk.label, disk.size = "dos", 4000 * GB
    disk.partitions = {3: (2048, (1 << 32) - 2049, "83")}
    disk.file_system_bytes = ((1 << 32) - 2049) * 512
    run = disk.attach().run(STEP)
    assert (run.returncode, disk.machine.did()) == (0, [])
    assert "already so" in run.stderr


def test_free_space_before_unused_swap_is_taken(disk):
    disk.behind(4, SWAP, gap=100 * SECTORS)
    assert dated(disk.attach().would(STEP)) == grown("sda", "/dev/sda3")
    assert "and 100GB behind it are free" in disk.machine.run(STEP, "--dry-run").stderr


def test_unused_swap_right_behind_the_root_is_not_deleted_but_the_user_is_told_how(disk):
    disk.behind(4, SWAP)
    assert disk.attach().refuses(STEP) == (
        "the root /dev/sda3 ends where the swap /dev/sda4 begins, and no step deletes partitions. "
        "If you can do without that swap, which is not in use: remove its line from /etc/fstab, "
        "sudo sfdisk --delete /dev/sda 4, and run this step again"
    )


def test_swap_in_use_is_not_touched(disk):
    disk.label = "dos"
    disk.partitions[3] = (*disk.partitions[3][:2], "83")
    disk.behind(4, "82", gap=SECTORS)
    disk.swaps = "/dev/sda4\\n"
    assert disk.attach().refuses(STEP) == (
        "behind the root /dev/sda3 there is swap in use, /dev/sda4. "
        "If you can do without: sudo swapoff /dev/sda4, remove its line from /etc/fstab, "
        "and run this step again"
    )


@pytest.mark.parametrize("gap", [0, 10 * SECTORS])
def test_other_data_behind_the_root_is_not_touched(disk, gap):
    disk.behind(4, SWAP, gap)
    disk.behind(5, LINUX)
    assert disk.attach().refuses(STEP) == (
        "behind the root /dev/sda3 there is another partition, /dev/sda5, that is not swap; "
        "this step does not touch the disk"
    )


def test_another_disk_than_the_one_named_is_not_touched(disk):
    machine = disk.attach()
    assert machine.refuses(STEP, "--disk", "nvme0n1") == (
        "the root is on sda, not on nvme0n1 as you said; look with lsblk, nothing has been changed"
    )
    for named in ("sda", "/dev/sda"):
        assert dated(machine.would(STEP, "--disk", named)) == grown("sda", "/dev/sda3")


def test_a_root_on_lvm_is_not_touched(disk):
    disk.root_type = "lvm"
    assert disk.attach("/dev/mapper/ubuntu--vg-root").refuses(STEP) == (
        "the root /dev/mapper/ubuntu--vg-root is on LVM, not directly on a partition; "
        "grow it by hand with lvextend --resizefs"
    )


@pytest.mark.parametrize("kind", ["crypt", "raid1", "disk"])
def test_a_root_on_anything_else_is_not_touched(disk, kind):
    disk.root_type = kind
    assert disk.attach("/dev/md0").refuses(STEP) == (
        f"the root /dev/md0 is not on a partition (it is: {kind}); this step does not touch it"
    )


def test_a_root_that_is_no_block_device_is_not_touched(disk):
    machine = disk.attach()
    machine.command("lsblk", "exit 32")
    assert machine.refuses(STEP) == (
        "the root /dev/sda3 is not on a partition (it is: unknown); this step does not touch it"
    )


def test_a_partition_of_something_that_is_no_disk_is_not_touched(disk):
    disk.type = "raid0"
    assert disk.attach().refuses(STEP) == (
        "the root is on sda, which is no disk (it is: raid0); this step does not touch it"
    )


@pytest.mark.parametrize("kind", ["xfs", "btrfs", "overlay", "nfs4"])
def test_another_file_system_is_not_touched(disk, kind):
    disk.file_system = kind
    assert (
        disk.attach().refuses(STEP)
        == f"the root file system is {kind}, not ext4; this step does not touch it"
    )


def test_a_partition_of_another_type_is_not_touched(disk):
    disk.partitions[3] = (*disk.partitions[3][:2], EFI)
    assert disk.attach().refuses(STEP) == (
        f"/dev/sda3 has partition type {EFI}, not that of a Linux file system; this step does not touch it"
    )


def test_a_root_that_is_not_in_the_table_is_not_touched(disk):
    del disk.partitions[3]
    assert "/dev/sda3 has partition type unknown" in disk.attach().refuses(STEP)


def test_a_table_or_a_file_system_that_cannot_be_read_is_not_touched(disk):
    machine = disk.attach()
    machine.command("dumpe2fs", "exit 1")
    assert machine.refuses(STEP) == "dumpe2fs cannot read /dev/sda3; this step does not touch it"
    machine.command("sfdisk", "exit 1")
    assert machine.refuses(STEP) == "the partition table of sda cannot be read (above)"


def test_if_growpart_fails_the_file_system_is_not_resized_and_the_backup_is_named(disk):
    machine = disk.attach()
    machine.command("growpart", "echo FAILED: busy; exit 2")
    run = machine.run(STEP)
    assert run.returncode == 1
    assert "FAILED: busy" in run.stderr
    assert "The table as it was is in /var/backups/sda-partitions-" in run.stderr
    assert not [call for call in machine.did() if call.startswith("resize2fs")]


def test_growpart_that_finds_nothing_to_change_is_no_failure(disk):
    machine = disk.attach()
    machine.command("growpart", "echo NOCHANGE: partition 3 is size 1; exit 1")
    assert machine.run(STEP).returncode == 0


@pytest.mark.parametrize(("flags", "again"), [([], ""), (["--dry-run"], " --dry-run")])
def test_who_is_not_root_is_told_how_to_be(disk, flags, again):
    machine = disk.attach()
    machine.is_user("ada", 1000)
    run = machine.run(STEP, *flags)
    assert (run.returncode, machine.did()) == (1, [])
    assert run.stderr == (
        f"{STEP}: reading a partition table takes root, also for a dry run: sudo bash setup/{STEP}{again}\n"
    )
