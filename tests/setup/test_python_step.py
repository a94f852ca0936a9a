"""Step 4: a Python that is new enough, from where it is the least trouble, and then rota."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

STEP = "4-python.sh"
APT = "env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600"
INSTALL = f"{APT} install -y --no-install-recommends"
SETUP = "bash ROOT/scripts/setup.sh train ray sweeps"
QUOTED = "bash 'ROOT/scripts/setup.sh' train ray sweeps"
RC = "3.11.0~rc1-1~22.04"


def python(machine, name, version, venv=True):
    """A stand-in for a Python of some version, with or without what makes environments."""
    minor = int(version.split(".")[1])
    body = f"""case "$2" in
        *version_info\\ \\<*) exit {int(minor < 11)} ;;
        *ensurepip*) exit {int(not venv)} ;;
        *print*) echo 3.{minor} ;;
        *) echo "Python {version}" ;;
    esac"""
    machine.command(name, body)


@pytest.fixture
def node(machine):
    """Ubuntu 22.04: Python 3.10, and a test version of 3.11 in the archive."""
    machine.command("df", "echo Avail; echo 400000000000")
    python(machine, "python3", "3.10.12")
    machine.knows(f"python3.11 {RC}", "python3.10 3.10.12-1")
    return machine


def test_ubuntu_2204_gets_a_python_from_deadsnakes_and_is_told(node):
    assert node.would(STEP) == [
        f"{APT} update",
        "add-apt-repository --yes ppa:deadsnakes/ppa",
        f"{APT} update",
        f"{INSTALL} python3.12 python3.12-venv",
        QUOTED,
    ]
    said = node.run(STEP, "--dry-run").stderr
    assert (
        "apt has no released Python of 3.12 or 3.11: adds ppa:deadsnakes/ppa, which is not Ubuntu's" in said
    )


def test_in_earnest_it_does_what_the_dry_run_said(node):
    run = node.run(STEP)
    assert run.returncode == 0, run.stderr
    options = "apt-get -o DPkg::Lock::Timeout=600"
    assert node.did() == [
        f"{options} update",
        "add-apt-repository --yes ppa:deadsnakes/ppa",
        f"{options} update",
        f"{options} install -y --no-install-recommends python3.12 python3.12-venv",
        SETUP,
    ]
    check = f"'{node.root}/.venv/bin/python' '{node.root}/setup/check.py' --need gpu,ray\n"
    assert run.stderr.endswith(f"next: look whether all is there (no need to reboot): {check}")


def test_what_adds_archives_is_installed_where_it_is_missing(node):
    node.without("add-apt-repository")
    assert node.would(STEP)[1] == f"{INSTALL} software-properties-common"


@pytest.mark.parametrize("version", ["3.12", "3.11"])
def test_a_released_python_of_the_archive_is_preferred(node, version):
    node.knows(f"python{version} {version}.3-1")
    assert node.would(STEP) == [f"{APT} update", f"{INSTALL} python{version} python{version}-venv", QUOTED]


def test_a_python_that_will_do_is_taken(node):
    python(node, "python3.12", "3.12.3")
    assert node.would(STEP) == [QUOTED]
    assert "already so: python3.12 is Python 3.12.3" in node.run(STEP, "--dry-run").stderr


@pytest.mark.parametrize(
    ("answer", "older"),
    [
        ("echo 7.0; echo 7.0", True),
        ("echo 8.0; echo 6.1", True),
        ("echo 8.0", False),
        ("echo failed; exit 9", False),
    ],
)
def test_a_gpu_that_cuda_13_cannot_use_gets_an_older_build(node, answer, older):
    python(node, "python3.12", "3.12.3")
    node.command("nvidia-smi", answer)
    index = "env PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cu126 "
    assert node.would(STEP) == [f"{index if older else ''}{QUOTED}"]


def test_archives_that_the_user_has_named_stay(node):
    python(node, "python3.12", "3.12.3")
    node.command("nvidia-smi", "echo 7.0")
    node.variables["PIP_EXTRA_INDEX_URL"] = "https://mine"
    assert node.would(STEP) == [
        f"env 'PIP_EXTRA_INDEX_URL=https://mine https://download.pytorch.org/whl/cu126' {QUOTED}"
    ]


def test_a_python_without_venv_gets_it(node):
    python(node, "python3", "3.13.1", venv=False)
    assert node.would(STEP) == [f"{APT} update", f"{INSTALL} python3.13-venv", QUOTED]


def test_an_environment_that_is_there_is_used(node):
    place = node.root / ".venv" / "bin"
    place.mkdir(parents=True)
    python(node, "python3.11", "3.11.9")
    shutil.move(node.bin / "python3.11", place / "python")
    assert node.would(STEP) == [QUOTED]
    assert "already so: there is an environment in" in node.run(STEP, "--dry-run").stderr


def test_a_user_gets_root_by_sudo_only_where_needed(node):
    node.is_user("ada", 1000)
    assert node.would(STEP) == [
        f"sudo {APT} update",
        "sudo add-apt-repository --yes ppa:deadsnakes/ppa",
        f"sudo {APT} update",
        f"sudo {INSTALL} python3.12 python3.12-venv",
        QUOTED,
    ]
    node.without("sudo")
    assert node.refuses(STEP).startswith("there is no sudo here, and this is not root")


def test_sudo_in_front_is_refused(node):
    node.variables["SUDO_USER"] = "ada"
    assert node.refuses(STEP) == (
        "run it without sudo (bash setup/4-python.sh): it asks for it where needed, "
        "and .venv should belong to ada"
    )


def test_a_disk_that_is_too_small_is_refused(node):
    node.command("df", "echo Avail; echo 14999999999")
    said = node.refuses(STEP)
    assert said.startswith("14 GB are free where ")
    assert said.endswith(" is, and it takes 15; make room, with: sudo bash setup/1-disk.sh")


def test_if_rota_cannot_be_installed_that_is_said(node):
    python(node, "python3.12", "3.12.3")
    node.command("bash", "echo 'setup: pip failed (above)' >&2; exit 1")
    run = node.run(STEP)
    assert run.returncode == 1
    assert run.stderr.endswith("If pip could not fetch, is there a network? Then run this step again\n")


def test_without_a_network_the_archive_is_not_added(node):
    node.command("add-apt-repository", "echo 'cannot reach launchpad' >&2; exit 1")
    run = node.run(STEP)
    assert run.returncode == 1
    assert run.stderr.endswith("ppa:deadsnakes/ppa cannot be added (above); is there a network?\n")


def test_a_checkout_of_somebody_else_is_refused(node):
    """Run by a user who may not write there: nobody, if this is root, to whom no folder is closed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(node.root / "setup", folder / "setup")
        folder.chmod(0o555)
        run = subprocess.run(
            ["/bin/bash", "setup/4-python.sh", "--dry-run"],
            cwd=folder,
            user=65534 if os.geteuid() == 0 else None,
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        folder.chmod(0o755)
    assert run.returncode == 1
    assert f"{folder} is not yours to write to. Make it yours: sudo chown -R " in run.stderr
