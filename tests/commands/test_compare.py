"""`rota compare`, as its user sees it: real runs against simulations of them."""

import json
import shutil
from pathlib import Path

import pytest

from rota.cli import main
from rota.config.bind import bind
from rota.config.load import override, read
from rota.library.real_run import ordered
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, write_curves
from rota.recordings.folder import Provenance
from rota.simulator.noise import ReportOverhead
from rota.simulator.population_config import PopulationsConfig
from rota.training.recorder.record import RecordConfig

pytestmark = pytest.mark.timeout(300)  # whoever comes first has to compile everything

CONFIGS = Path(__file__).parents[2] / "config" / "fidelity"
RUN = """
allocation = "fifo"
trial = "rota.execution.idle:idle"

[population]
trials = 4
steps = 30
interval = 10

[population.start]
lr = { low = 0.1, high = 1.0 }

[training]
step_s = 0.002

[local]
slots = [{ count = 2, cores = 0 }]
"""
SIMULATED = ("--population", 4, "--steps", 30, "--interval", 10, "--step-cost-s", 0.002, "--slots", "1,1")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A real run of four trials that sleep, 12 parts of 20 ms on two slots, and its simulation."""
    folder = tmp_path_factory.mktemp("runs")
    config = folder / "run.toml"
    config.write_text(RUN)
    real, simulated = folder / "real", folder / "sim"
    assert main(["run", str(config), "--out", str(real)]) == 0
    words = ["simulate", *SIMULATED, "--seeds", 2, "--allocations", "fifo", "--out", simulated]
    assert main([str(word) for word in words]) == 0
    return real, simulated


@pytest.fixture
def said(capsys):
    """Gives a function that runs `rota compare …`."""

    def run(*words):
        code = main(["compare", *map(str, words)])
        return code, *capsys.readouterr()

    return run


def test_a_real_run_against_its_simulation(folders, said):
    code, out, err = said(*folders, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert (found["real"], found["simulated"]) == tuple(map(str, folders))
    (pair,) = found["pairs"]  # the real run has no seed but 0
    assert (pair["name"], pair["seed"], pair["what"], pair["count"]) == ("fifo", 0, "trials", 4)
    assert pair["makespan"]["simulated_s"] == pytest.approx(6 * 0.02)
    assert pair["makespan"]["real_s"] > 0.12  # nobody sleeps too little
    assert pair["makespan"]["error_percent"] < 0.0
    assert pair["interval"]["aligned"] == 12
    assert pair["interval"]["computing"]["simulated_s"] == pytest.approx(0.02)
    assert pair["interval"]["computing"]["real_s"] >= 0.02
    assert pair["jct"]["mean"]["real_s"] <= pair["makespan"]["real_s"]


def test_a_run_is_not_off_itself(folders, said):
    real, _ = folders
    code, out, err = said(real, real, "--within", "0,0")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "fifo, seed 0: 4 trials, 12 intervals aligned"
    assert lines[3].split()[-3:] == ["19.2348", "19.2348", "+0.0000"]
    errors = [line.split()[-2] for line in lines[4:10]]
    assert errors == ["+0.0"] * 6
    assert lines[-1].startswith("order of ends         the same")


def test_limits_that_are_exceeded_are_named(folders, said):
    code, out, err = said(*folders, "--within", "0,0", "--json")
    assert code == 1
    first, second = err.splitlines()
    assert first.startswith("rota: fifo, seed 0: makespan is off by -")
    assert second.startswith("rota: fifo, seed 0: mean JCT is off by -")
    found = json.loads(out)
    assert found["within"] == "0,0"
    assert [f"rota: {text}" for text in found["exceeded"]] == [first, second]
    assert said(*folders, "--within", "100,100")[0] == 0


def test_figures_and_numbers_go_where_they_are_asked_for(folders, said, tmp_path):
    out = tmp_path / "out"
    _, printed, err = said(*folders, "--out", out, "--json")
    files = [out / f"fidelity.{ending}" for ending in ("json", "txt", "png", "svg")]
    assert err.splitlines() == list(map(str, files))
    assert json.loads(files[0].read_text()) == json.loads(printed)
    assert files[1].read_text() == said(*folders)[1]
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert files[3].read_bytes().startswith(b"<?xml")
    figures = [tmp_path / "a.png", tmp_path / "b.svg"]
    words = [word for file in figures for word in ("--figure", file)]
    _, _, err = said(*folders, *words, "--out", tmp_path / "numbers")
    numbers = [tmp_path / "numbers" / name for name in ("fidelity.json", "fidelity.txt")]
    assert err.splitlines() == list(map(str, [*numbers, *figures]))


def test_several_pairs_have_a_sheet_each(folders, said, tmp_path):
    _, simulated = folders
    said(simulated, simulated, "--figure", tmp_path / "a.png")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a-fifo-seed0.png", "a-fifo-seed1.png"]


def test_jobs_of_a_trace_under_two_schedulers(rota, trace, said):
    for folder, schedulers in (("real", "fifo,srtf"), ("sim", "srtf,tiresias")):
        words = ("--nodes", 1, "--gpus-per-node", 2, "--schedulers", schedulers, "--out", folder)
        rota("--trace", trace, *words)
    code, out, err = said("real", "sim", "--json")
    assert code == 0
    assert err.splitlines() == [
        "note: fifo: only in real, left out",
        "note: tiresias: only in sim, left out",
    ]
    (pair,) = json.loads(out)["pairs"]
    assert (pair["name"], pair["what"], pair["count"]) == ("srtf", "jobs", 3)
    assert pair["makespan"]["error_percent"] == 0.0
    assert pair["interval"]["unit"] == "s per iteration"
    code, out, _ = said("real/fifo", "sim/srtf")
    assert (code, out.startswith("fifo / srtf: 3 jobs")) == (0, True)


def test_a_job_that_is_missing_is_named(rota, trace, write_trace, said, here):
    other = write_trace(here / "other.csv", "a,0,1,600,bert,0", "b,10,2,300,vgg16,1")
    for folder, jobs in (("real", trace), ("sim", other)):
        words = ("--nodes", 1, "--gpus-per-node", 2, "--schedulers", "srtf", "--out", folder)
        rota("--trace", jobs, *words)
    code, _, err = said("real", "sim")
    assert (code, err) == (
        2,
        "rota: error: job c is missing in the simulated run; compare two of the same jobs\n",
    )


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--within", "5"], "give two numbers"),
        (["--within", "5,-8"], "give two numbers"),
        (["--within", "five,8"], "give two numbers"),
        (["--figure", "mine.pdf"], "ends in .png or .svg"),
    ],
)
def test_flags_that_are_wrong_are_refused(folders, said, words, wrong):
    code, out, err = said(*folders, *words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert wrong in err


def test_what_is_no_run_incomplete_or_of_another_kind_is_refused(folders, said, rota, trace, tmp_path):
    real, _ = folders
    code, _, err = said(real, tmp_path / "nowhere")
    assert (code, "no run is there" in err) == (2, True)
    shutil.copytree(real, tmp_path / "torn")
    (tmp_path / "torn" / "summary.json").unlink()
    code, _, err = said(tmp_path / "torn", real)
    assert (code, "torn: not a complete run" in err) == (2, True)
    rota("--trace", trace, "--schedulers", "srtf", "--out", "jobs")
    code, _, err = said(real, "jobs")
    assert (code, "they cannot be compared" in err) == (2, True)


ORIGIN = Provenance("cpu", {}, "", 0, "", "2026-01-02T03:04:05+00:00", "0.1.0")
OVERHEAD = {"load_s": 0.1, "evaluate_s": 0.2, "save_s": 0.3}


def write_recording(folder, asked):
    """As `rota record` would write what is asked for, but not measured."""
    settings = {}
    for name, hyper in asked.settings().items():
        given = {key: getattr(hyper, key) for key in asked.grid}
        rows = [CurvePoint(0, asked.steps, 1.0, {"accuracy": 0.5})]
        settings[name] = CurveSetting.of(name, given, "cpu", 0, rows)
    about = {"details": {"overhead": OVERHEAD}, "provenance": ORIGIN, "intervals": asked.intervals}
    write_curves(folder, Curves("convnet2", "digits", tuple(asked.grid), settings=settings, **about))


def test_the_shipped_population_is_simulated_as_it_is_recorded_and_run(tmp_path):
    record, run, simulate = (
        read(CONFIGS / f"population-{name}.toml") for name in ("record", "run", "simulate")
    )
    (asked,) = bind(RecordConfig, record).curves
    write_recording(tmp_path / "curves", asked)
    table = override(simulate, [f"population.curves={tmp_path / 'curves'}"])
    assert table.pop("options") == run["options"]
    simulated, real = bind(PopulationsConfig, table), ordered(run, CONFIGS / "population-run.toml")
    order, scene = real.population_spec(0), simulated.scene(0)
    assert (order.hypers, order.terms, order.costs) == (scene.hypers, scene.terms, scene.costs)
    assert len(order.cluster.all_slots) == len(scene.cluster.all_slots) == asked.copies
    assert ((real.config.allocation,), real.config.evolution) == (simulated.allocations, simulated.evolution)
    assert real.training == record["curves"][0]["setup"]
    assert (asked.steps, asked.steps * asked.intervals) == (scene.terms.interval, scene.terms.steps)
    assert scene.overhead == ReportOverhead(**OVERHEAD)
