#!/usr/bin/env python3
# ruff: noqa: T201 (a command prints)
"""Shows what rota finds on this machine, and how to get what is missing.

    python3 setup/check.py                      # Python, rota, PyTorch; the rest is shown, but may be absent
    python3 setup/check.py --need gpu,ray,data  # these must be there, too
    python3 setup/check.py --json               # for programs

Exits with 0 if all that is needed is there, with 1 if something is missing, with 2 if an argument is wrong.
"""

# It must run before anything is installed, and with a Python that is too old for rota: 3.8, without packages.
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
ROOM_GB = 2
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NEEDS = ("torch", "gpu", "ray", "slurm", "data", "browser")
INSTALL = "bash scripts/setup.sh train ray sweeps"
OLDER = (
    "pip install --force-reinstall torch=={} torchvision --index-url https://download.pytorch.org/whl/cu126"
)
BUILDS = "https://pytorch.org/get-started/locally"


@dataclass(frozen=True)
class Line:
    """One thing that was looked for."""

    what: str
    found: str
    ok: bool
    needed: bool
    fix: str

    @property
    def state(self) -> str:
        """Whether it is there, and if not, whether that matters."""
        return "ok" if self.ok else "missing" if self.needed else "absent"


# ---- what an environment has, asked in a process of its own Python


def probe() -> dict[str, Any]:
    """What can be imported here, with what it says about itself, or why not."""
    sys.path = [place for place in sys.path if Path(place).resolve() != ROOT / "setup"]
    found: dict[str, Any] = {"python": {"version": ".".join(map(str, sys.version_info[:3]))}}
    looks: list[Callable[[], dict[str, Any]]] = [_rota, _torch, _ray, _data]
    for look in looks:
        try:
            found[look.__name__[1:]] = look()
        except Exception as error:  # a broken library can raise anything
            found[look.__name__[1:]] = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    return found


def _rota() -> dict[str, Any]:
    import rota

    return {"version": rota.__version__}


def _torch() -> dict[str, Any]:
    import torch

    usable = torch.version.cuda and torch.cuda.is_available()
    devices = range(torch.cuda.device_count() if usable else 0)
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "codes": torch.cuda.get_arch_list() if usable else [],
        "devices": [[torch.cuda.get_device_name(i), *torch.cuda.get_device_capability(i)] for i in devices],
    }


def _ray() -> dict[str, Any]:
    import ray

    return {"version": ray.__version__}


def _data() -> dict[str, Any]:
    from rota.training.data import NAMES, is_here
    from rota.training.data.catalogue import data_folder

    return {"folder": str(data_folder()), "here": {name: is_here(name) for name in NAMES}}


def ask(python: str) -> dict[str, Any]:
    """What the environment of a Python has; what cannot even be asked is an error of all of it."""
    try:
        run = subprocess.run([python, __file__, "--probe"], capture_output=True, text=True, check=False)
        found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    except (OSError, IndexError, ValueError) as error:
        broken = {"error": f"{python} cannot be asked: {error}"}
        found = dict.fromkeys(("python", "rota", "torch", "ray", "data"), broken)
    return found


def nvidia() -> dict[str, Any]:
    """The GPUs that the driver sees, and the newest CUDA that it can do."""
    fields = "name,memory.total,driver_version"
    try:
        gpus = _output("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader")
        newest = re.search(r"CUDA (?:\w+ )?Version *: *([\d.]+)", _output("nvidia-smi"))
    except FileNotFoundError:
        return {"error": "there is no nvidia-smi"}
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stdout", None) or str(error)).strip()
        return {"error": said.splitlines()[0]}
    rows = [[word.strip() for word in line.split(",")] for line in gpus.splitlines()]
    return {
        "gpus": [f"{name} ({memory})" for name, memory, _ in rows],
        "driver": rows[0][2] if rows else "",
        "cuda": newest.group(1) if newest else None,
    }


def _output(*command: str) -> str:
    run = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=60
    )
    return run.stdout


# ---- what that means


def lines(python: str, needs: set[str]) -> Iterator[Line]:
    """Everything that was looked for, in the order in which one gets it."""
    found, gpus = ask(python), nvidia()
    yield disk()
    yield interpreter(found["python"], python)
    yield library("rota", found["rota"], True)
    yield torch_line(found["torch"], "torch" in needs or "gpu" in needs)
    yield from gpu_lines(found["torch"], gpus, "gpu" in needs)
    yield data_line(found["data"], "data" in needs)
    yield library("Ray", found["ray"], "ray" in needs)
    yield slurm("slurm" in needs)
    yield browser("browser" in needs)


def disk() -> Line:
    """Whether there is room for runs and checkpoints."""
    usage = shutil.disk_usage(ROOT)
    free, total = usage.free / 1e9, usage.total / 1e9
    fix = "make room; on CloudLab: sudo bash setup/1-disk.sh"
    return Line("disk", f"{free:.0f} of {total:.0f} GB free at {ROOT}", free >= ROOM_GB, True, fix)


def interpreter(found: dict[str, Any], python: str) -> Line:
    """Whether Python is new enough."""
    version = found.get("version", "0")
    ok = tuple(map(int, version.split("."))) >= OLDEST
    said = found.get("error") or f"{version} ({python})" + ("" if ok else ", which is too old")
    fix = "install Python 3.11 or newer; on CloudLab: bash setup/4-python.sh"
    return Line("Python", said, ok, True, fix)


def library(what: str, found: dict[str, Any], needed: bool) -> Line:
    """Whether something can be imported."""
    return Line(what, found.get("version") or found["error"], "version" in found, needed, INSTALL)


def torch_line(found: dict[str, Any], needed: bool) -> Line:
    """Which PyTorch there is, and whether it can do CUDA at all."""
    if "version" not in found:
        return library("PyTorch", found, needed)
    build = f"with CUDA {found['cuda']}" if found["cuda"] else "for the CPU only"
    return Line("PyTorch", f"{found['version']}, {build}", True, needed, "")


def gpu_lines(torch: dict[str, Any], gpus: dict[str, Any], needed: bool) -> Iterator[Line]:
    """What the driver sees, what PyTorch sees, and whether they fit together."""
    names = gpus.get("gpus", [])
    fix = "sudo bash setup/2-driver.sh, then sudo bash setup/3-module.sh"
    yield Line("GPUs", ", ".join(names) or f"none: {gpus.get('error', 'not one')}", bool(names), needed, fix)
    if names:
        newest = f", for CUDA up to {gpus['cuda']}" if gpus["cuda"] else ""
        yield Line("driver", gpus["driver"] + newest, True, needed, "")
    seen = len(torch.get("devices", []))
    wrong, fix = misfit(torch, gpus)
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    note = "" if hidden is None else f" (CUDA_VISIBLE_DEVICES is {hidden!r})"
    yield Line("CUDA devices", f"{seen}, as PyTorch sees it{note}", seen > 0, needed, fix)
    if names and (wrong or seen):
        yield Line("fit", wrong or "driver, PyTorch and GPUs fit together", not wrong, needed, fix)


def misfit(torch: dict[str, Any], gpus: dict[str, Any]) -> tuple[str, str]:
    """Why PyTorch cannot use these GPUs, as far as that can be known, and what to do about it."""
    driver = "sudo bash setup/2-driver.sh, then sudo bash setup/3-module.sh"
    if "version" not in torch:
        return "", INSTALL
    if not torch["cuda"]:
        return "this PyTorch is for the CPU only", f"install a build of torch with CUDA ({BUILDS})"
    if gpus.get("cuda") and _major(gpus["cuda"]) < _major(torch["cuda"]):
        wrong = f"the driver is too old: CUDA up to {gpus['cuda']}, and PyTorch has {torch['cuda']}"
        return wrong, driver
    for name, major, minor in torch["devices"]:
        if not runs_on(torch["codes"], major, minor):
            codes = " ".join(torch["codes"])
            wrong = f"this PyTorch has no code for {name} (sm_{major}{minor}), only {codes}"
            release = torch["version"].split("+")[0]
            return wrong, f"install a build with an older CUDA: {OLDER.format(release)}"
    return "", f"{driver}; is CUDA_VISIBLE_DEVICES set?"


def runs_on(codes: list[str], major: int, minor: int) -> bool:
    """Whether one of these codes runs on a GPU: of its generation, or one that the driver can compile."""
    parsed = [re.match(r"(sm|compute)_(\d+)(\d)$", code) for code in codes]
    found = [(match[1], int(match[2]), int(match[3])) for match in parsed if match]
    return any(
        (kind == "sm" and generation == major and each <= minor)
        or (kind == "compute" and (generation, each) <= (major, minor))
        for kind, generation, each in found
    )


def _major(version: str) -> int:
    return int(version.split(".")[0])


def data_line(found: dict[str, Any], needed: bool) -> Line:
    """Which data sets can be read without the network."""
    if "here" not in found:
        return Line("data", found["error"], False, needed, INSTALL)
    here = [name for name, there in found["here"].items() if there]
    gone = [name for name, there in found["here"].items() if not there]
    said = f"{', '.join(here) or 'none'}; not {', '.join(gone)}" if gone else ", ".join(here)
    fix = f"bash scripts/data.sh {' '.join(name for name in gone if name != 'digits')}"
    return Line("data", f"{said} (in {found['folder']})", not gone, needed, fix)


def slurm(needed: bool) -> Line:
    """Whether Slurm's commands are here, and a cluster answers."""
    fix = "use a node of a Slurm cluster, or try it on this machine: bash setup/slurm-local.sh start"
    gone = [name for name in ("sinfo", "srun", "sbatch", "salloc") if not shutil.which(name)]
    if gone:
        return Line("Slurm", f"there is no {', '.join(gone)}", False, needed, fix)
    try:
        nodes = _output("sinfo", "--noheader", "--format=%D").split()
    except (OSError, subprocess.SubprocessError):
        return Line("Slurm", "the commands are here, but no cluster answers", False, needed, fix)
    return Line("Slurm", f"{sum(map(int, nodes))} nodes", bool(nodes), needed, fix)


def browser(needed: bool) -> Line:
    """A browser, with which a report can be looked at or turned into a picture."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    fix = "apt-get install chromium; or look at reports on another machine"
    return Line("browser", found or "none", bool(found), needed, fix)


# ---- the command


def show(found: list[Line]) -> None:
    """A table, and below it what to do about what is missing."""
    width = max(len(line.what) for line in found)
    for line in found:
        print(f"{line.what:{width}}  {line.state:7}  {line.found}")
    missing = [line for line in found if line.state == "missing"]
    if missing:
        print("\nmissing, and how to get it:")
    for line in missing:
        print(f"{line.what:{width}}  {line.fix}")


def default_python() -> str:
    """That of the active environment, or else of the checkout's, or else this one."""
    active = os.environ.get("VIRTUAL_ENV")
    places = [Path(active)] if active else []
    found = [place / "bin" / "python" for place in [*places, ROOT / ".venv"]]
    return next((str(python) for python in found if python.exists()), sys.executable)


def arguments(words: list[str]) -> argparse.Namespace:
    """What was asked for; a mistake ends the program with 2."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--need", default="torch", help=f"what must be there: some of {','.join(NEEDS)}")
    parser.add_argument("--python", default=default_python(), help="whose environment (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args(words)
    asked.need = {word for word in asked.need.split(",") if word}
    unknown = sorted(asked.need - set(NEEDS))
    if unknown:
        parser.error(f"--need {','.join(unknown)}: is not known; give some of {','.join(NEEDS)}")
    if not shutil.which(asked.python):
        parser.error(f"--python {asked.python}: there is no such program")
    return asked


def main(words: list[str]) -> int:
    """Look, show, and say by the exit code whether all that is needed is there."""
    if words == ["--probe"]:
        print(json.dumps(probe()))
        return 0
    asked = arguments(words)
    found = list(lines(asked.python, asked.need))
    if asked.json:
        print(json.dumps([{**asdict(line), "state": line.state} for line in found], indent=2))
    else:
        show(found)
    return int(any(line.state == "missing" for line in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
