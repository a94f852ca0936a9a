"""`examples/tour.ipynb`, executed in an empty folder: what it shows is what comes of it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "tour.ipynb"
AT_MOST_S = 400
RANDOM = "rota.tune("
"""From the cell with this on, workers race, and what comes of it is not the same each time."""
EXECUTE = """
import sys
import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

class ThisPython(AsyncKernelManager):  # whichever kernels are installed by name
    kernel_spec = KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])

tour = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(tour, km=ThisPython(), resources={"metadata": {"path": "."}}).execute()
nbformat.write(tour, "executed.ipynb")
"""


def test_the_tour(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, NOTEBOOK],
        cwd=tmp_path, capture_output=True, text=True, timeout=AT_MOST_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    shown, tour = (json.loads(file.read_text())["cells"] for file in (NOTEBOOK, tmp_path / "executed.ipynb"))
    (begin,) = [at for at, cell in enumerate(tour) if RANDOM in "".join(cell["source"])]
    for before, now in zip(shown[:begin], tour[:begin], strict=True):
        assert numbers(before) == pytest.approx(numbers(now), rel=1e-6), now["source"]
    assert numbers(tour[begin])[1] < 1.0  # a loss that began above 10
    assert any("image/png" in output.get("data", {}) for cell in tour for output in cell.get("outputs", ()))


def numbers(cell) -> list[float]:
    """What a cell shows, but for bars of progress."""
    outputs = [output for output in cell.get("outputs", ()) if output.get("name") != "stderr"]
    text = "".join(
        word for output in outputs for word in output.get("text") or output["data"].get("text/plain", "")
    )
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text)]
