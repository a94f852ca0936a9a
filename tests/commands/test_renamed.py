"""Old names of keys and flags: still read, with a warning that says the new ones."""

import json

import pytest

from rota import cli
from rota.config.bind import bind
from rota.config.load import override
from rota.config.renamed import RENAMED, RenamedWarning, with_new_keys
from rota.core.errors import ConfigError
from rota.library.populations import simulate_population
from rota.simulator.population_config import PopulationsConfig

JOBS = """
scheduler = "srtf"
site = "rota.execution.jobs.idle:idle_jobs"
slice_s = 0.05
[workload]
trace = "jobs.csv"
[kinds.short]
compute_s = 0.01
[kinds.grows]
compute_s = 0.01
adaptive = { budget_s = 0.5 }
[resident]
kind = "grows"
[local]
slots = [{ count = 2, cores = 0 }]
"""
TRACE = "id,submit_s,gpus,model,iterations,duration_s\na,0,1,short,20,0.2\n"
POPULATION = """
allocations = ["hrfs"]
seeds = 1
slots = [2.0, 1.0]
[population]
trials = 3
steps = 100
"""
OLD = "[weather]\nnoise = 0.1\ndrift = 0.01\n[besides]\nsave_s = 2.0\n[options.hrfs]\nforesee = true\n"
NEW = "[noise]\nsigma = 0.1\ndrift = 0.01\n[overhead]\nsave_s = 2.0\n[options.hrfs]\npredict_stops = true\n"


@pytest.fixture
def run(here, capsys):
    """Gives a function that runs a command in the folder `here`; the code, stdout and stderr."""

    def run(*words):
        return (cli.main(list(map(str, words))), *capsys.readouterr())

    return run


def warning(old, new):
    return f"rota: warning: {old} is now called {new}; write that instead\n"


def table_with(key, value):
    return {key[0]: table_with(key[1:], value)} if key[1:] else {key[0]: value}


@pytest.mark.parametrize(("old", "new"), RENAMED.items(), ids=".".join)
@pytest.mark.filterwarnings(
    "ignore::rota.config.renamed.RenamedWarning"
)  # of `weather`, with `weather.noise`
def test_every_old_key_is_read_in_a_file_and_as_a_setting(old, new):
    with pytest.warns(RenamedWarning, match=f"^{'.'.join(old)} is now called {'.'.join(new)}; write"):
        assert override(table_with(old, 1), ()) == table_with(new, 1)
    with pytest.warns(RenamedWarning, match=".".join(new)):
        assert override({}, [f"{'.'.join(old)}=1"]) == table_with(new, 1)
    assert with_new_keys(table_with(old, 1), warn=False) == table_with(new, 1)


@pytest.mark.parametrize(("old", "new"), RENAMED.items(), ids=".".join)
@pytest.mark.filterwarnings("ignore::rota.config.renamed.RenamedWarning")
def test_both_names_of_a_key_are_an_error(old, new):
    both = [f"{'.'.join(old)}=1", f"{'.'.join(new)}=2"]
    with pytest.raises(ConfigError, match="another name"):
        override({}, both)
    together = table_with(old[:-1], {old[-1]: 1, new[-1]: 2}) if old[1:] else {old[0]: 1, new[0]: 2}
    with pytest.raises(ConfigError, match=f"{'.'.join(old)} is the old name of a key that is also given"):
        override(together, ())


@pytest.mark.filterwarnings("ignore::rota.config.renamed.RenamedWarning")
def test_a_flag_wins_over_a_file_whichever_name_either_uses():
    for old, new in RENAMED.items():
        for here in (old, new):
            for there in (old, new):
                assert override(table_with(here, 1), [f"{'.'.join(there)}=2"]) == table_with(new, 2)
    assert override({}, ["weather={noise=1}"]) == {"noise": {"sigma": 1}}


def test_a_list_of_tables_is_read_too():
    with pytest.warns(RenamedWarning, match=r"curves\.beside is now called curves\.copies"):
        assert override({"curves": [{"beside": 2}, {"steps": 1}]}, ()) == {
            "curves": [{"copies": 2}, {"steps": 1}]
        }


def test_a_population_is_simulated_as_before(run, here):
    (here / "old.toml").write_text(POPULATION + OLD)
    (here / "new.toml").write_text(POPULATION + NEW)
    code, out, err = run("simulate", "old.toml", "--json", "--out", "old")
    assert (code, err) == (
        0,
        warning("weather", "noise")
        + warning("weather.noise", "noise.sigma")
        + warning("besides", "overhead")
        + warning("options.hrfs.foresee", "options.hrfs.predict_stops"),
    )
    code, same, err = run("simulate", "new.toml", "--json")
    assert (code, err) == (0, "")
    (was,), (now,) = json.loads(out), json.loads(same)
    assert was["makespan_s"] == now["makespan_s"]
    written = (here / "old" / "hrfs" / "config.toml").read_text()
    assert "sigma" in written
    assert "weather" not in written
    code, out, err = run("simulate", "old.toml", "--set", "weather.noise=0.2", "--set", "noise.sigma=0.3")
    assert code == 2
    assert "weather.noise is another name of this key; give one of them" in err


def test_a_grid_of_an_old_key_has_the_points_it_had(run, here):
    (here / "grid.toml").write_text(
        POPULATION + '[noise]\nsigma = 0.5\n[grid]\n"weather.noise" = [0.0, 0.1]\n'
    )
    code, out, err = run("simulate", "grid.toml", "--json")
    assert (code, err) == (0, warning("weather.noise", "noise.sigma"))
    assert [row["point"] for row in json.loads(out)] == ["noise=0.0", "noise=0.1"]
    code, out, _ = run(
        "simulate", "grid.toml", "--json", "--set", "noise.sigma=0.0"
    )  # which wins over the grid
    assert len(json.loads(out)) == 1
    twice = '"noise.sigma" = [0.0]\n'
    (here / "grid.toml").write_text(POPULATION + '[grid]\n"weather.noise" = [0.0, 0.1]\n' + twice)
    code, _, err = run("simulate", "grid.toml")
    assert code == 2
    assert "already varies" in err


@pytest.mark.filterwarnings("ignore::rota.config.renamed.RenamedWarning")
def test_python_settings_are_read_too():
    with pytest.warns(RenamedWarning, match=r"weather\.noise is now called"):
        old = simulate_population(None, [1.0], trials=2, steps=100, settings={"weather": {"noise": 0.1}})
    new = simulate_population(None, [1.0], trials=2, steps=100, settings={"noise": {"sigma": 0.1}})
    assert old.metrics.makespan_s == new.metrics.makespan_s


def test_a_run_of_jobs_that_began_with_old_keys_goes_on(run, here):
    (here / "jobs.csv").write_text(TRACE)
    (here / "old.toml").write_text(JOBS)
    code, _, err = run("run", "old.toml", "--out", "run", "--json")
    assert code == 0
    for old, new in (("site", "job"), ("slice_s", "assignment_s"), ("resident", "opportunistic")):
        assert warning(old, new) in err
    (here / "older").mkdir(mode=0o700)
    config = (here / "run" / "config.toml").read_text()
    assert "[opportunistic]" in config
    for old, new in (("site =", "job ="), ("slice_s =", "assignment_s ="), ("[resident]", "[opportunistic]")):
        config = config.replace(new, old)
    (here / "older" / "config.toml").write_text(config)
    (here / "older" / "runs").mkdir()
    for how in ("begins", "goes on"):  # the digest of its first entry is that of the file, old keys and all
        code, out, err = run("run", "--resume", "older", "--json")
        assert code == 0, how
        assert "is now called" not in err
        assert json.loads(out)["complete"]


def test_a_training_with_an_old_configuration_is_recognised(run, here):
    text = 'epochs = 1\n[epoch]\nsteps = 2\n[setup]\nmodel = "feedforward1"\nthreads = 1\n'
    (here / "small.toml").write_text(text)
    assert run("train", "small.toml")[0] == 0
    file = here / "results" / "train" / "small" / "train.toml"
    assert "\nexternal_allocation = false\n" in file.read_text()
    file.write_text(file.read_text().replace("external_allocation", "told"))
    (here / "small.toml").write_text("told = false\n" + text)
    code, _, err = run("train", "small.toml")
    assert code == 0
    assert warning("told", "external_allocation") in err
    assert "is trained already" in err


def test_a_recording_with_old_settings_is_recognised(run, here):
    text = (
        '[[curves]]\nname = "x"\nKEY = 1\nintervals = 1\nsteps = 1\n[curves.setup]\nmodel = "feedforward1"\n'
    )
    (here / "old.toml").write_text(text.replace("KEY", "beside") + "threads = 1\n")
    (here / "new.toml").write_text(text.replace("KEY", "copies") + "threads = 1\n")
    code, out, err = run("record", "old.toml", "--out", "out", "--quiet")
    assert code == 0
    assert warning("curves.beside", "curves.copies") in err
    file = here / out.strip() / "recording.json"
    whole = json.loads(file.read_text())
    about = whole["what"]
    about["details"]["asked"]["beside"] = about["details"]["asked"].pop("copies")
    about["details"]["besides"] = about["details"].pop("overhead")
    file.write_text(json.dumps(whole))
    assert run("record", "new.toml", "--out", "out", "--quiet") == (0, "", "")  # nothing is recorded again
    config = bind(PopulationsConfig, {"population": {"curves": out.strip(), "steps": 1, "interval": 1}})
    assert config.population.recorded_overhead().evaluate_s == about["details"]["besides"]["evaluate_s"]


def test_the_old_flag_retrains_the_best_trial(run, here):
    code, _, err = run("run", "--replay", "nowhere")
    assert code == 2
    assert err.startswith(warning("--replay", "--retrain-best"))
    assert "nowhere: no run is there" in err
    code, _, err = run("run", "--replay", "nowhere", "--retrain-best", "nowhere")
    assert (code, err) == (2, "rota: error: --replay: is the old name of --retrain-best; give only that\n")


@pytest.mark.parametrize("command", ["simulate", "run", "train", "record"])
def test_only_new_names_are_listed(run, command):
    _, out, _ = run(command, "--help-config")
    keys = {line.split()[0] for line in out.splitlines() if line}
    assert not keys & {
        "besides",
        "weather",
        "weather.noise",
        "resident",
        "told",
        "site",
        "slice_s",
        "foresee",
    }
    assert "curves[].beside" not in keys


def test_the_old_flag_is_not_listed(capsys):
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    assert "--replay" not in capsys.readouterr().out
