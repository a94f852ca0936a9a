"""Step 2: NVIDIA's driver from Ubuntu's archive, unless one that is new enough is there."""

import pytest

STEP = "2-driver.sh"
APT = "env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600"
INSTALL = f"{APT} install -y --no-install-recommends"
V100S = "21:00.0 0302: 10de:1df6 (rev a1)"
BRIDGE = "21:00.1 0680: 10de:1af1 (rev a1)"
VERSION = "580.95.05-0ubuntu0.22.04.2"
BROKEN = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
NEXT = "next: sudo bash setup/3-module.sh (no need to reboot before)\n"


@pytest.fixture
def node(machine):
    """A fresh r7525: two GPUs, no driver, and an archive that has all branches."""
    machine.command("lspci", f"printf '%s\\n' '{V100S}' '{V100S}' '{BRIDGE}'")
    machine.knows(
        "nvidia-utils-535 535.1-1", f"nvidia-utils-580-server {VERSION}", f"nvidia-utils-580 {VERSION}"
    )
    return machine


def installs(branch):
    return [f"{APT} update", f"{INSTALL} nvidia-headless-no-dkms-{branch} nvidia-utils-{branch}"]


def test_a_fresh_node_gets_the_branch_for_servers(node):
    assert node.would(STEP) == installs("580-server")


def test_in_earnest_it_does_what_the_dry_run_said(node):
    run = node.run(STEP)
    assert run.returncode == 0, run.stderr
    options = "apt-get -o DPkg::Lock::Timeout=600"
    assert node.did() == [
        f"{options} update",
        f"{options} install -y --no-install-recommends nvidia-headless-no-dkms-580-server "
        "nvidia-utils-580-server",
    ]
    assert "NVIDIA GPUs in this machine: 2\n" in run.stderr
    assert run.stderr.endswith(NEXT)


def test_the_ordinary_branch_is_taken_where_there_is_none_for_servers(node):
    node.knows(f"nvidia-utils-580 {VERSION}")
    assert node.would(STEP) == installs("580")


def test_another_branch_can_be_named(node):
    node.knows("nvidia-utils-590 590.1-1", f"nvidia-utils-580 {VERSION}")
    assert node.would(STEP, "--driver", "590") == installs("590")


def test_a_driver_that_runs_and_is_new_enough_stays(node):
    node.command("nvidia-smi", "echo 580.95.05; echo 580.95.05")
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (0, [])
    assert "already so: driver 580.95.05 is running" in run.stderr
    assert run.stderr.endswith(NEXT)


def test_a_driver_that_is_installed_but_does_not_run_is_left_to_step_3(node):
    node.command("nvidia-smi", f'echo "{BROKEN}"; exit 9')
    node.has_installed("nvidia-utils-580-server 580.95.05-0ubuntu0.22.04.2")
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (0, [])
    assert "already so: driver 580.95.05-0ubuntu0.22.04.2 is installed; it is not running yet" in run.stderr


def test_an_older_driver_of_apt_is_replaced_and_that_is_said(node):
    node.command("nvidia-smi", "echo 535.183.01")
    node.has_installed("nvidia-utils-535 535.183.01-0ubuntu1")
    assert node.would(STEP) == installs("580-server")
    said = node.run(STEP, "--dry-run").stderr
    assert "driver 535.183.01 is here, older than 580, which CUDA 13 needs" in said


@pytest.mark.parametrize(
    ("answer", "named"), [("echo 535.183.01", "535.183.01"), ("exit 9", "of unknown version")]
)
def test_a_driver_from_elsewhere_that_will_not_do_is_refused(node, answer, named):
    node.command("nvidia-smi", answer)
    assert node.refuses(STEP) == (
        f"a driver ({named}) is here that did not come from apt, and is too old or does not work. "
        "Remove it the way it came (for NVIDIA's .run file: sudo nvidia-uninstall), and run this step again"
    )


def test_a_machine_without_a_gpu_needs_no_driver(node):
    node.command("lspci", f"echo '{BRIDGE}'")
    assert node.refuses(STEP) == (
        "there is no NVIDIA GPU in this machine, so it needs no driver; go on with: bash setup/4-python.sh"
    )


def test_what_it_needs_to_look_is_named_if_it_is_missing(node):
    node.without("lspci")
    assert node.refuses(STEP) == "there is no lspci here; install it: apt-get install pciutils"
    node.without("apt-get")
    assert node.refuses(STEP).startswith("there is no apt-get here; this step is for Ubuntu")


def test_an_archive_without_the_driver_is_said_and_a_dry_run_goes_on(node):
    node.knows()
    run = node.run(STEP)
    assert (run.returncode, len(node.did())) == (1, 1)
    assert "apt knows no package nvidia-utils-… of the branch 580. Is there a network" in run.stderr
    assert node.would(STEP) == installs("580-server")  # the lists may be as empty as on a fresh machine


def test_only_root_installs_but_anybody_may_look(node):
    node.is_user("ada", 1000)
    run = node.run(STEP)
    assert (run.returncode, node.did()) == (1, [])
    assert run.stderr.endswith(f"{STEP}: must be run as root: sudo bash setup/{STEP}\n")
    assert node.would(STEP) == installs("580-server")


def test_it_waits_while_unattended_upgrades_has_the_lock(node, tmp_path):
    turns = tmp_path / "turns"
    turns.write_text("")
    locked = f"""if [[ $* == *update ]]; then
        echo x >> {turns}
        (($(grep -c x {turns}) > 2)) || {{ echo "E: Could not get lock /var/lib/apt/lists/lock"; exit 100; }}
    fi"""
    node.command("apt-get", locked)
    run = node.run(STEP)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("another program, likely unattended-upgrades, uses apt; waits for it") == 2
    assert node.log.read_text().count("sleep 10\n") == 2


def test_it_does_not_wait_for_ever(node):
    node.command("apt-get", 'echo "E: Could not get lock /var/lib/apt/lists/lock"; exit 100')
    run = node.run(STEP)
    assert run.returncode == 1
    assert node.log.read_text().count("sleep 10\n") == 60
    assert "If something holds a lock, wait until it ends" in run.stderr


def test_without_a_network_apt_says_why_and_the_step_what_to_do(node):
    node.command("apt-get", '[[ $* == *update ]] || { echo "E: Unable to fetch archives" >&2; exit 100; }')
    run = node.run(STEP)
    assert run.returncode == 1
    assert "E: Unable to fetch archives" in run.stderr
    assert run.stderr.endswith("If it could not fetch, is there a network? Then run this step again\n")


@pytest.mark.parametrize("step", ["1-disk.sh", "2-driver.sh", "3-module.sh", "4-python.sh"])
def test_every_step_explains_itself_and_knows_its_options(machine, step):
    run = machine.run(step, "--help")
    assert run.returncode == 0
    assert run.stdout.startswith(f"Step {step[0]} of 4 on a CloudLab node: ")
    assert all(word in run.stdout for word in ("Why:", "--dry-run", f"bash setup/{step}"))
    assert machine.did() == []
    for wrong in (["--dryrun"], ["again"], ["--disk"], ["--driver", ""]):
        run = machine.run(step, *wrong)
        assert (run.returncode, machine.did()) == (2, []), run.stderr
        assert run.stderr.endswith(f"see bash setup/{step} --help\n")
