"""Step 3: a kernel module of exactly the driver's version, for exactly the kernel that runs."""

import pytest

STEP = "3-module.sh"
APT = "env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600"
INSTALL = f"{APT} install -y --no-install-recommends"
KERNEL = "5.15.0-131-generic"
READY = f"linux-modules-nvidia-580-server-{KERNEL}"
BLACKLIST = "bash -c 'echo blacklist nouveau > /etc/modprobe.d/rota-nouveau.conf'"
LOAD = ["modprobe nvidia", "modprobe nvidia-uvm"]
NEXT = "next: bash setup/4-python.sh (without sudo; no need to reboot before)\n"
REBOOT = "next: sudo reboot, and when it is up again once more: sudo bash setup/3-module.sh\n"


def knows(machine, *packages):
    machine.knows(*(f"{name} 1" for name in packages))


@pytest.fixture
def node(machine):
    """A node after step 2, with an archive that has the module ready made; nouveau is on the blacklist."""
    machine.command("uname", f"echo {KERNEL}")
    machine.command("nvidia-smi", 'echo "NVIDIA-SMI has failed"; exit 9')
    machine.has_installed("nvidia-utils-580-server 580.95.05-0ubuntu0.22.04.2")
    machine.command("modprobe", 'if [[ $1 == --showconfig ]]; then echo "blacklist nouveau"; fi')
    knows(machine, READY, f"linux-headers-{KERNEL}")
    return machine


def comes_up(machine):
    """The driver answers once its module has been loaded, and modinfo once something has been installed."""
    seen = f"grep -q 'modprobe nvidia$' {machine.log}"
    machine.command("nvidia-smi", f'{seen} || {{ echo "NVIDIA-SMI has failed"; exit 9; }}; echo 580.95.05')
    machine.command("modinfo", f"grep -q 'apt-get .* install -y' {machine.log} && echo 580.95.05")


def test_a_ready_made_module_is_installed_and_loaded(node):
    assert node.would(STEP) == [f"{APT} update", f"{INSTALL} {READY}", *LOAD]


def test_in_earnest_it_does_what_the_dry_run_said(node):
    comes_up(node)
    run = node.run(STEP)
    assert run.returncode == 0, run.stderr
    options = "apt-get -o DPkg::Lock::Timeout=600"
    assert node.did() == [f"{options} update", f"{options} install -y --no-install-recommends {READY}", *LOAD]
    assert run.stderr.endswith(NEXT)


def test_a_module_that_runs_is_left_as_it_is(node):
    node.command("nvidia-smi", 'if [[ $1 == -L ]]; then echo "GPU 0: Tesla V100S"; else echo 580.95.05; fi')
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (0, [])
    assert "already so: driver 580.95.05 runs on these GPUs:\nGPU 0: Tesla V100S\n" in run.stderr
    assert run.stderr.endswith(NEXT)


def test_a_driver_that_runs_is_fine_wherever_it_came_from(node):
    node.has_installed()
    node.command("nvidia-smi", "echo 580.65.06")
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (0, [])
    assert "already so: driver 580.65.06 runs" in run.stderr


def test_a_module_that_is_installed_is_only_loaded(node):
    node.command("modinfo", f'[[ $* == *"{KERNEL}"* ]] && echo 580.95.05')
    assert node.would(STEP) == LOAD


def test_step_2_comes_first(node):
    node.has_installed()
    assert node.refuses(STEP) == "no driver is installed by apt; run first: sudo bash setup/2-driver.sh"


@pytest.mark.parametrize("fits", [True, False])
def test_the_module_is_built_where_none_is_ready_or_none_fits(node, fits):
    if fits:
        knows(node, f"linux-headers-{KERNEL}")
    else:
        node.command("apt-get", "[[ $* != *--simulate* ]]")
    build = f"{INSTALL} linux-headers-{KERNEL} nvidia-dkms-580-server"
    assert node.would(STEP) == [f"{APT} update", build, *LOAD]


def test_without_headers_it_cannot_be_built(node):
    node.knows()
    assert node.refuses(STEP) == (
        f"apt has no headers for the kernel {KERNEL}, without which the module cannot be built. "
        "Go to a kernel that has them (sudo apt-get install linux-generic, then reboot), "
        "and run this step again"
    )


def test_headers_that_are_installed_need_not_be_in_the_archive(node):
    node.knows()
    node.has_installed("nvidia-utils-580-server 580.95.05-0", f"linux-headers-{KERNEL} 1")
    assert node.would(STEP)[1] == f"{INSTALL} linux-headers-{KERNEL} nvidia-dkms-580-server"


def test_secure_boot_takes_a_signed_module_and_no_other(node):
    node.command("mokutil", "echo SecureBoot enabled")
    assert node.would(STEP)[1] == f"{INSTALL} {READY}"
    knows(node, f"linux-headers-{KERNEL}")
    assert node.refuses(STEP).startswith(
        f"Secure Boot is on, and Ubuntu has no signed module of 580-server for the kernel {KERNEL}. Either "
    )
    node.command("mokutil", "echo SecureBoot disabled")
    assert "nvidia-dkms-580-server" in node.would(STEP)[1]


def test_nouveau_is_put_on_the_blacklist_if_it_is_not(node):
    node.command("modprobe")
    assert node.would(STEP)[2:] == [BLACKLIST, "update-initramfs -u", *LOAD]


def test_nouveau_that_is_loaded_takes_a_reboot(node):
    comes_up(node)
    node.command("modprobe")
    node.command("lsmod", 'printf "Module  Size  Used by\\nnouveau 2306048 4\\n"')
    run = node.run(STEP)
    assert run.returncode == 0
    assert not [call for call in node.did() if call in LOAD]
    assert "update-initramfs -u" in node.did()
    assert "nouveau is loaded, and keeps the GPUs until a reboot" in run.stderr
    assert run.stderr.endswith(REBOOT)


def test_an_older_module_that_is_loaded_takes_a_reboot(node):
    node.command("modinfo", "echo 580.95.05")
    node.command("lsmod", 'printf "nvidia_uvm 1 0\\nnvidia 56 1 nvidia_uvm\\n"')
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (0, [])
    assert "a module of another version is loaded, and stays until a reboot" in run.stderr
    assert run.stderr.endswith(REBOOT)


def test_a_module_that_was_not_built_is_no_success(node):
    run = node.run(STEP)
    assert run.returncode == 1
    assert f"there is still no module 580.95.05 for {KERNEL} (it is: )" in run.stderr
    assert not [call for call in node.did() if call in LOAD]


def test_a_module_that_does_not_load_is_said(node):
    node.command("modinfo", "echo 580.95.05")
    node.command("modprobe", '[[ $1 == --showconfig ]] && echo "blacklist nouveau"')
    run = node.run(STEP)
    assert run.returncode == 1
    assert "the module cannot be loaded (above); the kernel's reason: sudo dmesg" in run.stderr


def test_a_driver_that_does_not_answer_after_all_is_no_success(node):
    node.command("modinfo", "echo 580.95.05")
    run = node.run(STEP)
    assert run.returncode == 1
    assert "but nvidia-smi does not answer; what it says: NVIDIA-SMI has failed" in run.stderr


def test_only_root_installs_but_anybody_may_look(node):
    node.is_user("ada", 1000)
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (1, [])
    assert run.stderr.endswith(f"{STEP}: must be run as root: sudo bash setup/{STEP}\n")
    assert node.would(STEP)[-2:] == LOAD
