"""`rota simulate` of populations, as its user sees it."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from rota.results.population.run import read_population
from rota.simulator.bounds import lower_bound_s

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "config" / "simulate" / "populations.toml"
CURVES = ROOT / "results" / "recordings" / "curves" / "convnet2-fashion-mnist"
RULES = ("fifo", "era", "eta", "hrfs", "finish")
NINE = "1.3,1,0.33,0.33,0.33,1.6,1,1,8"
SMALL = ("--population", 4, "--steps", 100, "--slots", "1,2", "--seeds", 2)
EVOLVED = ("--set", f"population.curves={CURVES}", "--set", "evolution=pbt")


def rows_of(said):
    return json.loads(said.out)


# what is asked for


def test_the_nine_slots_of_the_originals(rota):
    said = rota(
        "--population", 20, "--steps", 1000, "--interval", 50, "--slots", NINE, "--step-cost-s", 0.02,
        "--dispatch-cost-s", 0.0, "--noise", 0.05, "--allocations", ",".join(RULES), "--seeds", 5, "--json",
    )  # fmt: skip
    assert (said.code, said.err, said.out.count("\n")) == (0, "", 1)
    rows = rows_of(said)
    keys = ["allocation", "makespan_s", "lower_bound_s", "ratio", "idle", "clones", "decisions_per_s"]
    assert [list(row) for row in rows] == [keys] * len(RULES)
    assert [row["allocation"] for row in rows] == list(RULES)
    bound_s = lower_bound_s(20, 1000 * 0.02, [float(speed) for speed in NINE.split(",")])
    for row in rows:
        assert row["lower_bound_s"] == bound_s
        assert row["ratio"] == row["makespan_s"] / bound_s
        assert 1.0 < row["ratio"] < 3.0
        assert row["decisions_per_s"] > 100


def test_makespans_are_means_over_the_seeds(rota):
    words = ("--population", 4, "--steps", 100, "--slots", "1,2", "--noise", 0.2, "--allocations", "fifo")
    rota(*words, "--seeds", 3, "--out", "runs")
    each = [done.makespan_s for done in read_population(Path("runs/fifo")).summary.repetitions]
    assert len(set(each)) == 3
    (row,) = rows_of(rota(*words, "--seeds", 3, "--json"))
    assert row["makespan_s"] == pytest.approx(sum(each) / 3)
    (first,) = rows_of(rota(*words, "--seeds", 1, "--json"))
    assert first["makespan_s"] == each[0]


def test_the_dispatch_cost_is_paid_for_every_list(rota):
    words = (
        "--population",
        1,
        "--steps",
        100,
        "--slots",
        "1",
        "--seeds",
        1,
        "--allocations",
        "fifo",
        "--json",
    )
    (free,), (dear,) = (rows_of(rota(*words, "--dispatch-cost-s", cost)) for cost in (0, 7))
    assert (free["makespan_s"], dear["makespan_s"]) == (100.0, 114.0)  # two intervals, a list for each


def test_without_json_there_is_a_table(rota):
    code, out, err = rota(*SMALL, "--allocations", "fifo,era")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["allocation", "fifo", "era"]


def test_points_of_a_grid_have_bounds_of_their_own(rota, here):
    """A step takes 1 s at one point and 10 s at the other: ten times as much to do, and as good."""
    (here / "p.toml").write_text(
        '[population]\ntrials = 2\nsteps = 50\n[grid]\n"population.step_s" = [1, 10]\n'
    )
    _, out, _ = rota("p.toml", "--slots", "1", "--allocations", "fifo", "--seeds", 1)
    rows = [line.split()[1:5] for line in out.splitlines()[1:]]
    assert rows == [["fifo", "100.00", "100.00", "1.000"], ["fifo", "1,000.00", "1,000.00", "1.000"]]


def test_intervals_may_be_shorter_than_those_of_the_curves_if_trials_are_looked_at_later(rota):
    words = ("--population", 4, *EVOLVED, "--set", "evolution=asha", "--steps", 100, "--interval", 20)
    said = rota(*words, "--set", "options.asha.min_t=3", "--seeds", 1, "--allocations", "fifo", "--json")
    assert (said.code, said.err) == (0, "")


def test_evolution_on_recorded_curves_says_how_good_trials_became(rota):
    (row,) = rows_of(rota("--population", 8, *EVOLVED, "--allocations", "era", "--seeds", 1, "--json"))
    assert 0.5 < row["best_accuracy"] < 0.9
    assert row["ratio"] > 1.0


def test_json_has_the_bounds_of_the_table(rota):
    """Under evolution allocations have other work to do: the least bound of any counts for all."""
    words = ("--population", 6, *EVOLVED, "--allocations", "fifo,era", "--seeds", 1)
    rows, lines = rows_of(rota(*words, "--json")), rota(*words).out.splitlines()[1:3]
    assert len({row["lower_bound_s"] for row in rows}) == 1
    assert [line.split()[1:4] for line in lines] == [
        [f"{row['makespan_s']:,.2f}", f"{row['lower_bound_s']:,.2f}", f"{row['ratio']:.3f}"] for row in rows
    ]


def test_a_target_ends_trials_early(rota):
    words = ("--population", 8, *EVOLVED, "--allocations", "era", "--seeds", 1, "--json")
    (whole,), (short,) = rows_of(rota(*words)), rows_of(rota(*words, "--target", 0.5))
    assert short["makespan_s"] < 0.8 * whole["makespan_s"]


@pytest.mark.parametrize(("mode", "name"), [((), "spa-era"), (("--mode", "eta"), "spa-eta")])
def test_the_originals_go_by_their_names(rota, mode, name):
    assert [row["allocation"] for row in rows_of(rota(*SMALL, "--preset", "SPA", *mode, "--json"))] == [name]


def test_a_preset_is_compared_with_the_allocations_that_are_named(rota):
    rows = rows_of(rota(*SMALL, "--allocations", "fifo", "--preset", "gpa", "--mode", "ETA", "--json"))
    assert [row["allocation"] for row in rows] == ["fifo", "gpa-eta"]


def test_the_rules_of_the_originals_can_be_asked_for(rota):
    words = ("--population", 20, "--slots", NINE, "--seeds", 1, "--preset", "gpa", "--json")
    (ours,), (theirs,) = (
        rows_of(rota(*words)),
        rows_of(rota(*words, "--set", "options.gpa-era.original=true")),
    )
    assert theirs["makespan_s"] > ours["makespan_s"]


def test_slots_can_be_given_up_under_any_allocation(rota):
    words = ("--population", 6, "--slots", "4,4,0.1", "--seeds", 1, "--allocations", "fifo", "--out")
    rota(*words, "without")
    rota(*words, "with", "--set", "retirement.late=0.5")
    without, given_up = (read_population(Path(name, "fifo")).summary for name in ("without", "with"))
    assert without.repetitions[0].retired == 0 < given_up.repetitions[0].retired
    assert given_up.makespan_s < without.makespan_s


# configuration files


def test_a_file_with_a_population_needs_no_flag(rota, here):
    (here / "p.toml").write_text(
        'allocations = ["fifo"]\nseeds = 1\ncluster = "a"\n[population]\ntrials = 2\nsteps = 50\n'
        "[clusters.a]\nslots = [{ speed = 2.0 }, { speed = 1.0 }]\n[grid]\n"
        '"population.trials" = [1, 2]\n'
    )
    rows = rows_of(rota("p.toml", "--json"))
    assert [(row["point"], row["makespan_s"]) for row in rows] == [("trials=1", 25.0), ("trials=2", 50.0)]
    (row,) = rows_of(rota("p.toml", "--slots", "5", "--population", 1, "--json"))
    assert ("point" in row, row["makespan_s"]) == (False, 10.0)  # flags win over the file and its grid


def test_curves_are_found_from_the_folder_of_the_file(rota, here):
    (here / "deep").mkdir()
    (here / "recorded").symlink_to(CURVES)
    (here / "deep" / "p.toml").write_text('[population]\ntrials = 2\nsteps = 50\ncurves = "../recorded"\n')
    assert rota("deep/p.toml", "--allocations", "fifo", "--seeds", 1).code == 0


def test_the_shipped_comparison_has_every_allocation_on_four_clusters(rota):
    table = tomllib.loads(SHIPPED.read_text())
    assert (table["population"]["steps"], table["population"]["interval"]) == (1000, 50)
    assert (table["population"]["target"], table["seeds"]) == (0.8, 5)
    assert table["grid"]["population.trials"] == [20, 50]
    assert table["grid"]["cluster"] == list(table["clusters"])
    nine = [slot["speed"] for slot in table["clusters"]["nine"]["slots"]]
    assert nine == [float(speed) for speed in NINE.split(",")]
    rows = rows_of(rota(SHIPPED, "--quick", "--allocations", ",".join(RULES), "--json"))
    assert len(rows) == 2 * 4 * len(RULES)
    assert all(0.0 < row["best_accuracy"] < 1.0 and row["ratio"] > 1.0 for row in rows)


def test_help_config_lists_the_keys_of_populations_and_their_options(rota):
    code, out, _ = rota("--help-config")
    assert code == 0
    for line in (
        "workload.trace", "population.trials", "noise.sigma", "clusters.NAME.slots[].speed",
        "population.start.NAME.low", "[options.era]", "[options.gpa-eta]", "[options.pbt]", "retirement.most",
    ):  # fmt: skip
        assert re.search(rf"^{re.escape(line)}", out, re.MULTILINE), line


# run folders


def test_out_keeps_what_happened_with_every_seed(rota, here):
    rota("--population", 3, *EVOLVED, "--steps", 100, "--allocations", "fifo", "--seeds", 2, "--out", "runs")
    found = {
        path.relative_to(here / "runs").as_posix() for path in (here / "runs").rglob("*") if path.is_file()
    }
    logs = {f"fifo/seed{seed}/{trial}-accuracy.json" for seed in (0, 1) for trial in range(3)}
    rest = {"fifo/config.toml", "fifo/summary.md", "fifo/summary.json"}
    assert found == rest | logs | {"fifo/seed0/timeline.jsonl", "fifo/seed1/timeline.jsonl"}


def test_an_agent_in_a_flag_is_where_the_user_is_and_in_the_folder_it_is_named_from_there(rota):
    shutil.copytree(ROOT / "src" / "rota" / "agents" / "place", "mine")
    given = ("--set", "options.learned.agent=mine", "--allocations", "learned", "--json")
    first = rows_of(rota(*SMALL, *given, "--out", "runs"))
    kept = Path("runs/learned/config.toml")
    assert tomllib.loads(kept.read_text())["options"]["learned"]["agent"] == "../../mine"
    again = rows_of(rota(kept, "--json"))
    assert [row["makespan_s"] for row in again] == [row["makespan_s"] for row in first]


def test_the_configuration_in_a_folder_makes_the_same_run(rota):
    words = ("--population", 3, *EVOLVED, "--steps", 100, "--noise", 0.1, "--seeds", 2, "--preset", "gpa")
    (first,) = rows_of(rota(*words, "--set", "options.pbt.quantile=0.5", "--out", "runs", "--json"))
    (again,) = rows_of(rota("runs/gpa-era/config.toml", "--json"))
    for key in ("allocation", "makespan_s", "lower_bound_s", "best_accuracy"):
        assert again[key] == first[key]


def test_a_second_call_reuses_runs_and_says_so(rota, here):
    words = (*SMALL, "--allocations", "fifo,era", "--out", "runs", "--json")
    first = rota(*words)
    stamps = {path: path.stat().st_mtime_ns for path in (here / "runs").rglob("*")}
    second = rota(*words)
    assert second.out == first.out
    assert second.err.splitlines() == [
        "runs/fifo: reused, its inputs are the same",
        "runs/era: reused, its inputs are the same",
    ]
    assert {path: path.stat().st_mtime_ns for path in (here / "runs").rglob("*")} == stamps


@pytest.mark.parametrize(
    "words",
    [
        ["--noise", 0.1],
        ["--seeds", 3],
        ["--slots", "1,3"],
        ["--set", "options.era.slope=0.5"],
        ["--interval", 25],
    ],
)
def test_a_run_of_other_inputs_is_made_anew(rota, words):
    rota(*SMALL, "--allocations", "era", "--out", "runs")
    said = rota(*SMALL, "--allocations", "era", *words, "--out", "runs")
    assert (said.code, said.out) == (2, "")
    assert "runs/era: holds another run, made by: rota simulate" in said.err
    said = rota(*SMALL, "--allocations", "era", *words, "--out", "runs", "--replace")
    assert said.err == "runs/era: made anew, it was incomplete or made from other inputs\n"


def test_a_run_that_was_cut_short_is_made_anew(rota):
    rota(*SMALL, "--allocations", "era", "--out", "runs")
    Path("runs/era/summary.json").unlink()
    said = rota(*SMALL, "--allocations", "era", "--out", "runs")
    assert said.err == "runs/era: made anew, it was incomplete or made from other inputs\n"
    assert Path("runs/era/summary.json").exists()


def test_the_points_of_a_grid_have_folders_of_their_own(rota, here):
    (here / "p.toml").write_text(
        '[population]\nsteps = 50\n[grid]\n"population.trials" = [1, 2]\n"noise.sigma" = [0.0]\n'
    )
    rota("p.toml", "--seeds", 1, "--allocations", "fifo", "--out", "runs")
    assert sorted(path.name for path in (here / "runs").iterdir()) == [
        "trials=1,sigma=0.0",
        "trials=2,sigma=0.0",
    ]


def test_without_out_nothing_is_written(rota, here):
    rota(*SMALL, "--allocations", "fifo", "--json")
    assert list(here.iterdir()) == []


def test_an_out_that_is_a_file_is_refused(rota, here):
    (here / "runs").write_text("")
    said = rota(*SMALL, "--allocations", "fifo", "--out", "runs")
    assert said.code == 2
    assert "runs/fifo" in said.err


# mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--population", 0], "population: trials is 0; it must be 1 to 100,000"),
        (["--population", -3], "population: trials is -3"),
        (["--population", "many"], "population.trials: 'many' is not an integer"),
        (["--population", 3, "--steps", 0], "population: steps is 0; it must be at least 1"),
        (["--population", 3, "--steps", 20], "interval is 50, but a trial has 20 steps"),
        (["--population", 3, "--slots", "1,-1"], "slots: slot 1: speed -1"),
        (["--population", 3, "--slots", "1,fast"], "--slots 1,fast: not a list of speeds"),
        (["--population", 3, "--slots", ""], "--slots : not a list of speeds"),
        (["--population", 3, "--step-cost-s", 0], "step_s is 0; it must be above 0"),
        (["--population", 3, "--dispatch-cost-s", -1], "dispatch_s is -1; it must be 0 to 1e+09"),
        (["--population", 3, "--noise", "nan"], "noise.sigma: nan is not a number"),
        (["--population", 3, "--noise", -1], "noise: sigma is -1.0"),
        (["--population", 3, "--seeds", 0], "seeds is 0"),
        (
            ["--population", 3, "--allocations", "finnish"],
            "unknown allocation 'finnish'. Did you mean 'finish'?",
        ),
        (["--population", 3, "--allocations", ","], "allocations is empty; name at least one"),
        (["--population", 3, "--preset", "sap"], "--preset: unknown preset 'sap'. Did you mean 'spa'?"),
        (["--population", 3, "--preset", "spa", "--mode", "x"], "--mode: unknown mode 'x'"),
        (["--population", 3, "--mode", "ERA"], "--mode ERA: says how a preset allocates"),
        (["--population", 3, "--trace", "a.csv"], "--trace: is for traces, and this is a population"),
        (["--population", 3, "--schedulers", "fifo"], "--schedulers: is for traces"),
        (["--steps", 3], "--steps: is for populations; give --population N, too"),
        (
            ["--population", 3, "--set", "options.ear.x=1"],
            "options: unknown allocation, evolution or growth 'ear'",
        ),
        (["--population", 3, "--set", "options.era.slop=1"], "options.era: unknown key 'slop'"),
        (["--population", 3, "--set", "options=1"], "options is not a table"),
        (["--population", 3, "--set", "population.curves=nowhere"], "nowhere: not a complete recording"),
        ([ROOT / "config" / "simulate" / "shipped.toml", "--population", 3], "is about a workload"),
        (
            ["--population", 3, *EVOLVED, "--interval", 20],
            "options.pbt: trials are reviewed after 20 steps, but the curves begin at step 50",
        ),
        (
            ["--population", 3, *EVOLVED, "--set", "evolution=asha", "--interval", 20],
            "options.asha: trials are reviewed after 20 steps, but the curves begin at step 50",
        ),
        (
            ["--population", 3, *EVOLVED, "--set", "options.pbt.space.lrr={low = 0.1, high = 1.0}"],
            "options.pbt: unknown hyper-parameter in space: 'lrr'. Did you mean 'lr'?",
        ),
        (
            ["--population", 3, *EVOLVED, "--set", 'options.pbt.keep=["batch"]'],
            "options.pbt: unknown hyper-parameter in keep: 'batch'. Did you mean 'batch_size'?",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(rota, words, message):
    code, out, err = rota(*words)
    assert (code, out) == (2, "")
    assert err.startswith("rota: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_pbt_explores_what_was_recorded_unless_a_space_is_given(rota):
    words = ("--population", 6, "--steps", 200, "--slots", "1,2", "--seeds", 1, "--allocations", "fifo")
    (row,) = rows_of(rota(*words, *EVOLVED, "--json", "--out", "runs"))
    events = read_population(Path("runs/fifo")).events(0)
    resolved = tomllib.loads(Path("runs/fifo/config.toml").read_text())["options"]["pbt"]["space"]
    assert set(resolved) == {"lr", "momentum", "batch_size"}
    explored = [event.hyper for event in events if type(event).__name__ == "Cloned"]
    assert explored
    for hyper in explored:
        assert all(hyper[name] in resolved[name]["values"] for name in resolved)
    usual = ("lr={low=0.0001,high=1.0}", "momentum={low=0.0001,below=1.0}")
    given = [word for text in usual for word in ("--set", f"options.pbt.space.{text}")]
    (before,) = rows_of(rota(*words, *EVOLVED, *given, "--json"))
    assert before["makespan_s"] == 1.6704453247257334  # as it was when these were the default
    assert before["best_accuracy"] == 0.6696667628511453
    assert row["makespan_s"] != before["makespan_s"]
