"""`rota run` at the points of a grid, as a preset, and as a try of seconds."""

import json
import tomllib
from pathlib import Path

import pytest

from rota.cli import main
from rota.commands.quick_run import quick
from rota.config.load import read
from rota.core.errors import ConfigError
from rota.library.real_run import RealRun, ordered
from rota.results.population.run import read_population

ROOT = Path(__file__).parents[2]
CONFIG = """
allocation = "fifo"
trial = "rota.execution.idle:idle"

[population]
trials = 2
steps = 20
interval = 10

[training]
step_s = 0.0001

[local]
slots = [{ cores = 0 }]

[grid]
allocation = ["fifo", "spa-era"]
"""
ONE = CONFIG.split("[grid]")[0]
NAMES = ["allocation=fifo", "allocation=spa-era"]


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    return file


def printed(capsys, *words):
    code = main([str(word) for word in words])
    return code, capsys.readouterr()


def test_each_point_of_a_grid_is_a_run_in_a_folder_of_its_own(config, tmp_path, capsys):
    out = tmp_path / "out"
    code, said = printed(capsys, "run", config, "--out", out, "--json")
    found = json.loads(said.out)["points"]
    assert (code, [each["point"] for each in found]) == (0, NAMES)
    assert [(each["allocation"], each["reports"], each["complete"]) for each in found] == [
        ("fifo", 4, True), ("spa-era", 4, True),
    ]  # fmt: skip
    assert "point 2 of 2: allocation=spa-era" in said.err
    runs = [read_population(out / name) for name in NAMES]
    assert [run.summary.allocation for run in runs] == ["fifo", "spa-era"]
    assert [run.parameters for run in runs] == [{"allocation": "fifo"}, {"allocation": "spa-era"}]
    code, said = printed(capsys, "status", out)
    assert "2 of 2 points complete" in said.out
    assert printed(capsys, "run", config, "--out", out)[0] == 2  # it has a run already


def test_a_grid_goes_on_where_it_was_and_says_how_far_it_is(config, tmp_path, capsys, monkeypatch):
    out, real = tmp_path / "out", RealRun.carry_out

    def broken(run, *rest):
        if run.folder.path.name == NAMES[1]:
            raise KeyboardInterrupt
        return real(run, *rest)

    monkeypatch.setattr(RealRun, "carry_out", broken)
    assert printed(capsys, "run", config, "--out", out)[0] != 0
    first = (out / NAMES[0] / "result.json").read_bytes()
    found = json.loads(printed(capsys, "status", out, "--json")[1].out)["points"]
    assert [each["phase"] for each in found] == ["complete", "not begun"]
    monkeypatch.setattr(RealRun, "carry_out", real)
    code, said = printed(capsys, "run", "--resume", out, "--json")
    assert (code, len(json.loads(said.out)["points"])) == (0, 2)
    assert NAMES[0] not in said.err  # it is not run again
    assert (out / NAMES[0] / "result.json").read_bytes() == first


def test_a_wrong_point_is_said_before_anything_runs(config, tmp_path, capsys):
    words = ("--set", 'grid.allocation=["fifo", "eraa"]', "--out", tmp_path / "out")
    code, said = printed(capsys, "run", config, *words)
    assert (code, (tmp_path / "out").exists()) == (2, False)
    assert "Did you mean 'era'?" in said.err


def test_a_damaged_list_of_points_is_named(config, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir(mode=0o700)
    points = [{"name": "../elsewhere", "parameters": {}, "config": ""}]
    facts = {"format": "rota grid of real runs", "command": "", "points": points}
    (out / "grid.json").write_text(json.dumps(facts))
    code, said = printed(capsys, "run", "--resume", out)
    assert code == 2
    assert "grid.json: does not list the points of a grid" in said.err


@pytest.mark.parametrize(
    ("mode", "allocation"), [((), "gpa-era"), (("--mode", "eta"), "gpa-eta")], ids=["era", "eta"]
)
def test_a_preset_allocates(config, tmp_path, capsys, mode, allocation):
    config.write_text(ONE)
    out = tmp_path / "out"
    assert printed(capsys, "run", config, "--preset", "GPA", *mode, "--out", out)[0] == 0
    assert read(out / "config.toml")["allocation"] == allocation


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--preset", "sap"], "--preset: unknown preset 'sap'. Did you mean 'spa'?"),
        (["--mode", "ERA"], "--mode ERA: says how a preset allocates"),
    ],
)
def test_a_preset_that_is_not_there(config, tmp_path, capsys, words, why):
    code, said = printed(capsys, "run", config, *words, "--out", tmp_path / "out")
    assert code == 2
    assert why in said.err


def order_of(*settings, text=ONE):
    from rota.config.load import override

    return ordered(override({**tomllib.loads(text)}, settings), ROOT / "config.toml", settings)


def test_options_of_a_preset_take_effect():
    order = order_of("allocation=gpa-era", "options.era.slope=0.5", "retirement.most=3")
    assert (order.variant.policy.allocation.slope, order.variant.policy.retirement.most) == (0.5, 3)
    again = order_of(text=order.text())  # as the run folder has it
    assert again.variant.policy == order.variant.policy
    assert order_of("allocation=spa-eta").variant.policy.retirement is None
    assert order_of("allocation=spa-eta", "retirement.late=0.5").variant.policy.retirement.late == 0.5
    original = order_of("allocation=gpa-era", "options.gpa-era.original=true", "retirement.most=3")
    assert original.variant.policy.retirement.original
    with pytest.raises(ConfigError, match=r"options\.era\.split is 'gpa', but spa-era divides trials as spa"):
        order_of("allocation=spa-era", "options.era.split=gpa")


@pytest.mark.parametrize("name", ["spa-gpa", "hrfs"])
def test_the_experiments_of_the_originals_can_be_tried_in_seconds(name, monkeypatch, tmp_path):
    monkeypatch.setenv("ROTA_DATA", str(tmp_path))  # where nothing is
    from rota.config.grid import expand

    file = ROOT / "config" / "run" / f"{name}.toml"
    for point in expand(read(file)):
        table, said = quick(point.table)
        order = ordered(table, file)
        assert (order.config.population.trials, order.config.population.steps) == (2, 2)
        assert said.startswith(f"{order.generated} is not on this machine")
        assert order.shortened == {"quick": True, "generated": point.table["training"]["data"]}
        assert f"images in the shape of {order.generated} are generated" in order.said
        whole = ordered(point.table, file)
        assert (whole.config.population.trials, whole.config.population.target) in ((50, 0.8), (20, 0.8))
        assert whole.shortened == {}


def test_generated_images_have_the_shape_of_the_data_set():
    from rota.training.data import load

    splits = load("cifar100", generated=True, validation=20)
    assert tuple(splits.train.images.shape) == (980, 3, 32, 32)
    assert sorted(set(splits.train.labels.tolist())) == list(range(100))
