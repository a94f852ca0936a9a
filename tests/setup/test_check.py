"""What a machine has is shown as it is, and what is missing comes with the way to get it."""

import ast
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "setup" / "check.py"
CUDA13 = {"version": "2.13.0", "cuda": "13.0", "codes": ["sm_75", "sm_80", "sm_90", "compute_90"]}
A30 = ["NVIDIA A30", 8, 0]
V100S = ["Tesla V100S-PCIE-32GB", 7, 0]
DRIVER = "sudo bash setup/2-driver.sh, then sudo bash setup/3-module.sh"


def run(*arguments, python=sys.executable, **variables):
    return subprocess.run(
        [python, str(CHECK), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


class Here:
    """A machine whose Python says what it has, and a PATH that has nothing else."""

    def __init__(self, folder):
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.has = {
            "python": {"version": "3.11.9"},
            "rota": {"version": "0.1.0"},
            "torch": {"version": "2.13.0+cpu", "cuda": None, "codes": [], "devices": []},
            "ray": {"version": "2.60.0"},
            "data": {"folder": "/data", "here": {"digits": True, "cifar10": True}},
        }

    def command(self, name, body):
        (self.bin / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    def gpus(self, *names, driver="580.95.05", cuda="13.0"):
        rows = "\n".join(f"{name}, 24576 MiB, {driver}" for name in names)
        header = f"| NVIDIA-SMI {driver}     Driver Version: {driver}     CUDA Version: {cuda}     |"
        self.command("nvidia-smi", f"if (($#)); then echo '{rows}'; else echo '{header}'; fi")

    def lines(self, *arguments, **variables):
        """The lines by name, with the exit code as `exit`."""
        self.command("python", f"echo 'a library chats'\necho '{json.dumps(self.has)}'")
        python = str(self.bin / "python")
        done = run("--json", "--python", python, *arguments, PATH=str(self.bin), **variables)
        assert done.returncode in (0, 1), done.stderr
        lines = {line["what"]: line for line in json.loads(done.stdout)}
        assert done.returncode == int(any(line["state"] == "missing" for line in lines.values()))
        return lines


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path)


def states(lines):
    return {what: line["state"] for what, line in lines.items()}


def test_on_this_machine_it_finds_what_the_tests_run_with():
    done = run("--json", "--need", "torch,ray", "--python", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line["what"]: line for line in json.loads(done.stdout)}
    assert found["Python"]["found"].startswith(".".join(map(str, sys.version_info[:3])))
    assert found["rota"]["found"] == version("rota")
    assert found["PyTorch"]["found"].startswith(version("torch").split("+")[0])
    assert found["Ray"]["found"] == version("ray")
    assert "digits" in found["data"]["found"].split(";")[0]


def test_a_bare_python_is_told_what_to_do(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    bare = tmp_path / "bin" / "python"
    done = run("--need", "torch,ray", "--python", str(bare), python=str(bare), PYTHONPATH="")
    assert done.returncode == 1
    table, fixes = done.stdout.split("\nmissing, and how to get it:\n")
    states = {line.split()[0]: line.split()[1] for line in table.splitlines()}
    assert [states[name] for name in ("Python", "rota", "PyTorch", "Ray")] == ["ok", *["missing"] * 3]
    assert "No module named 'torch'" in table
    assert [line.split(None, 1) for line in fixes.splitlines()] == [
        [name, "bash scripts/setup.sh train ray sweeps"] for name in ("rota", "PyTorch", "Ray")
    ]


def test_it_runs_with_an_older_python_and_without_packages():
    tree = ast.parse(CHECK.read_text("utf-8"), feature_version=(3, 8))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert "__future__" in names  # without which its annotations would not do
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_a_laptop_passes_by_default(here):
    assert states(here.lines()) == {
        "disk": "ok",
        "Python": "ok",
        "rota": "ok",
        "PyTorch": "ok",
        "GPUs": "absent",
        "CUDA devices": "absent",
        "data": "ok",
        "Ray": "ok",
        "Slurm": "absent",
        "browser": "absent",
    }
    here.has["torch"] = {"error": "ModuleNotFoundError: No module named 'torch'"}
    assert here.lines()["PyTorch"]["state"] == "missing"
    assert here.lines("--need", "")["PyTorch"]["state"] == "absent"


def test_a_python_that_is_too_old_is_named(here):
    here.has["python"] = {"version": "3.10.12"}
    line = here.lines()["Python"]
    assert line["state"] == "missing"
    assert line["found"].endswith("bin/python), which is too old")
    assert line["fix"] == "install Python 3.11 or newer; on CloudLab: bash setup/4-python.sh"


def test_a_python_that_cannot_be_asked_has_nothing(here):
    here.command("broken", "exit 1")
    done = run("--python", str(here.bin / "broken"), PATH=str(here.bin))
    assert done.returncode == 1
    assert done.stdout.count("broken cannot be asked") == 5  # Python, rota, PyTorch, data, Ray


def test_a_node_that_is_set_up_passes(here):
    here.gpus("NVIDIA A30", "NVIDIA A30")
    here.has["torch"] = {**CUDA13, "devices": [A30, A30]}
    lines = here.lines("--need", "gpu,ray,data")
    assert {lines[what]["state"] for what in ("PyTorch", "GPUs", "driver", "CUDA devices", "fit")} == {"ok"}
    assert lines["PyTorch"]["found"] == "2.13.0, with CUDA 13.0"
    assert lines["GPUs"]["found"] == "NVIDIA A30 (24576 MiB), NVIDIA A30 (24576 MiB)"
    assert lines["driver"]["found"] == "580.95.05, for CUDA up to 13.0"
    assert lines["CUDA devices"]["found"] == "2, as PyTorch sees it"


def test_without_a_driver_there_are_no_gpus(here):
    lines = here.lines("--need", "gpu")
    assert (lines["GPUs"]["state"], lines["GPUs"]["fix"]) == ("missing", DRIVER)
    assert lines["GPUs"]["found"] == "none: there is no nvidia-smi"


def test_what_nvidia_smi_says_if_it_fails_is_shown(here):
    here.command("nvidia-smi", "echo 'NVIDIA-SMI has failed. Make sure that it runs'; exit 9")
    assert here.lines("--need", "gpu")["GPUs"]["found"] == (
        "none: NVIDIA-SMI has failed. Make sure that it runs"
    )


def test_a_build_for_the_cpu_does_not_use_a_gpu(here):
    here.gpus("NVIDIA A30")
    lines = here.lines("--need", "gpu")
    assert lines["PyTorch"]["found"] == "2.13.0+cpu, for the CPU only"
    assert states(lines)["CUDA devices"] == "missing"
    assert lines["fit"]["found"] == "this PyTorch is for the CPU only"
    assert lines["fit"]["fix"].startswith("install a build of torch with CUDA (")
    assert states(here.lines())["fit"] == "absent"


def test_a_driver_that_is_older_than_pytorchs_cuda_does_not_fit(here):
    here.gpus("NVIDIA A30", driver="535.183.01", cuda="12.2")
    here.has["torch"] = {**CUDA13, "devices": []}
    line = here.lines("--need", "gpu")["fit"]
    assert (line["state"], line["fix"]) == ("missing", DRIVER)
    assert line["found"] == "the driver is too old: CUDA up to 12.2, and PyTorch has 13.0"


@pytest.mark.parametrize("built", ["12.1", "12.8"])
def test_a_driver_does_every_minor_version_of_its_cuda(here, built):
    here.gpus("NVIDIA A30", driver="550.54.14", cuda="12.4")
    here.has["torch"] = {**CUDA13, "cuda": built, "devices": [A30]}
    assert here.lines("--need", "gpu")["fit"]["state"] == "ok"


def test_a_build_without_code_for_a_gpu_does_not_fit(here):
    here.gpus("Tesla V100S-PCIE-32GB")
    here.has["torch"] = {**CUDA13, "devices": [V100S]}
    line = here.lines("--need", "gpu")["fit"]
    assert line["state"] == "missing"
    assert line["found"] == (
        "this PyTorch has no code for Tesla V100S-PCIE-32GB (sm_70), only sm_75 sm_80 sm_90 compute_90"
    )
    assert "an older CUDA: pip install --force-reinstall torch==2.13.0 torchvision --index-url" in line["fix"]


def test_gpus_that_are_hidden_are_said_to_be(here):
    here.gpus("NVIDIA A30")
    here.has["torch"] = {**CUDA13, "devices": []}
    line = here.lines("--need", "gpu", CUDA_VISIBLE_DEVICES="")["CUDA devices"]
    assert line["found"] == "0, as PyTorch sees it (CUDA_VISIBLE_DEVICES is '')"
    assert line["state"] == "missing"
    assert line["fix"] == f"{DRIVER}; is CUDA_VISIBLE_DEVICES set?"


def test_data_sets_that_are_not_here_can_be_got(here):
    here.has["data"]["here"] = {"digits": True, "cifar10": False, "cifar100": False}
    line = here.lines("--need", "data")["data"]
    assert (line["state"], line["fix"]) == ("missing", "bash scripts/data.sh cifar10 cifar100")
    assert line["found"] == "digits; not cifar10, cifar100 (in /data)"


def test_slurm_is_there_if_a_cluster_answers(here):
    names = ("sinfo", "srun", "sbatch", "salloc")
    assert here.lines("--need", "slurm")["Slurm"]["found"] == f"there is no {', '.join(names)}"
    for name in names:
        here.command(name, "exit 1")
    line = here.lines("--need", "slurm")["Slurm"]
    assert (line["state"], line["found"]) == ("missing", "the commands are here, but no cluster answers")
    here.command("sinfo", "echo 2; echo 3")
    line = here.lines("--need", "slurm")["Slurm"]
    assert (line["state"], line["found"]) == ("ok", "5 nodes")


def test_a_browser_is_looked_for_by_all_its_names(here):
    assert here.lines("--need", "browser")["browser"]["state"] == "missing"
    here.command("google-chrome", "")
    assert here.lines("--need", "browser")["browser"]["found"] == str(here.bin / "google-chrome")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--need", "gpus"], "--need gpus: is not known; give some of torch,gpu,ray,slurm,data,browser"),
        (["--python", "/no/python"], "--python /no/python: there is no such program"),
        (["--jsn"], "unrecognized arguments: --jsn"),
    ],
)
def test_a_wrong_argument_is_a_mistake(arguments, said):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_environment_that_is_active_is_the_one_that_is_checked(here):
    here.command("python", f"echo '{json.dumps(here.has)}'")
    done = run(PATH=str(here.bin), VIRTUAL_ENV=str(here.bin.parent))
    assert f"3.11.9 ({here.bin / 'python'})" in done.stdout
