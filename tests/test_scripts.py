"""Setting up on a fresh machine, with a Python that only writes down what it is asked to do."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"

FAKE_PYTHON = """#!/bin/bash
case "$1 $2" in
    "-c "*) exit ${OLD_PYTHON:-0} ;;
    "--version "*) echo "Python 3.9.2" ;;
    "-m pip")
        [[ $3 == --version ]] && exit ${NO_PIP:-0}
        echo "pip ${*:3}" >> "$LOG"
        echo "noise of pip"
        exit ${PIP_FAILS:-0} ;;
    "-m venv")
        echo "venv ${*:3}" >> "$LOG"
        echo "noise of venv"
        mkdir -p "${@: -1}/bin"
        cp "$0" "${@: -1}/bin/python"
        exit ${VENV_FAILS:-0} ;;
    *) echo "python $*" >> "$LOG" ;;
esac
"""


class Machine:
    """A checkout, and a PATH with a fake `python3` first."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "my checkout"
        self.log = folder / "log"
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        shutil.copytree(SCRIPTS, self.root / "scripts")
        shutil.copy(SCRIPTS.parent / "pyproject.toml", self.root)
        for name in ["python3", "python3.11", "python3.12", "python3.13", "python3.14"]:
            self.write(folder / "bin" / name)
        self.variables = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LOG": str(self.log)}

    @staticmethod
    def write(python: Path) -> None:
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(FAKE_PYTHON)
        python.chmod(0o755)

    def run(
        self, script: str, *arguments: str, where: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", self.root / "scripts" / script, *arguments],
            cwd=where or self.elsewhere,
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def asked(self) -> list[str]:
        """What the fake Python was asked to do since the last time, with the checkout as `ROOT`."""
        if not self.log.exists():
            return []
        lines = self.log.read_text().replace(str(self.root), "ROOT").splitlines()
        self.log.unlink()
        return lines


INSTALL = "pip install --disable-pip-version-check --editable ROOT"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_fresh_machine_gets_an_environment_and_says_so(machine):
    run = machine.run("setup.sh")
    assert run.stdout == f"{machine.root}/.venv/bin/python\n"
    assert run.stderr == (
        f"setup: making a virtual environment in {machine.root}/.venv\n"
        f"setup: installing rota into {machine.root}/.venv (minutes the first time)\n"
    )
    assert machine.asked() == ["venv --clear ROOT/.venv", INSTALL]


def test_the_second_time_nothing_is_done_and_nothing_said(machine):
    machine.run("setup.sh", "dev")
    machine.asked()
    run = machine.run("setup.sh", "dev")
    assert (run.returncode, run.stderr, machine.asked()) == (0, "", [])


def test_extras_are_installed_once_each(machine):
    for extras in [[], ["dev"], ["dev", "train"]]:
        machine.run("setup.sh", *extras)
    assert machine.asked()[1:] == [INSTALL, f"{INSTALL}[dev]", f"{INSTALL}[dev,train]"]
    for extras in [[], ["dev"], ["dev", "train"]]:
        machine.run("setup.sh", *extras)
    assert machine.asked() == []


def test_an_extra_that_there_is_not_is_named_before_anything_is_installed(machine):
    run = machine.run("setup.sh", "train", "tensorflo")
    assert (run.returncode, run.stdout, machine.asked()) == (2, "", [])
    assert run.stderr.startswith("setup: tensorflo: there is no such extra; there are: train tensorflow")


def test_a_changed_pyproject_is_installed_again(machine):
    machine.run("setup.sh")
    machine.asked()
    (machine.root / "pyproject.toml").write_text("[project]\nname = 'rota'\n")
    machine.run("setup.sh")
    assert machine.asked() == [INSTALL]


def test_the_active_environment_is_used_and_shared_between_checkouts(machine):
    active = machine.root.parent / "active"
    machine.write(active / "bin" / "python")
    run = machine.run("setup.sh", VIRTUAL_ENV=str(active))
    assert (run.stdout, machine.asked()) == (f"{active}/bin/python\n", [INSTALL])
    (active / ".rota-setup").write_text("/another/checkout 123 45 []\n")
    machine.run("setup.sh", VIRTUAL_ENV=str(active))
    assert machine.asked() == [INSTALL]


def test_an_environment_whose_python_is_gone_is_made_anew(machine):
    machine.run("setup.sh")
    machine.asked()
    (machine.root / ".venv/bin/python").unlink()
    machine.run("setup.sh")
    assert machine.asked() == ["venv --clear ROOT/.venv", INSTALL]


def test_what_pip_says_is_shown_if_it_fails_and_it_is_tried_again(machine):
    run = machine.run("setup.sh", PIP_FAILS="1")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.endswith("noise of pip\nsetup: pip failed (above)\n")
    machine.asked()
    assert machine.run("setup.sh").returncode == 0
    assert machine.asked() == [INSTALL]


def test_a_debian_without_venv_is_told_what_to_install(machine):
    run = machine.run("setup.sh", VENV_FAILS="1")
    assert run.returncode == 1
    assert run.stderr.endswith(
        "noise of venv\nsetup: python3 -m venv failed (above). "
        "On Debian or Ubuntu: apt-get install python3-venv\n"
    )
    assert machine.asked() == ["venv --clear ROOT/.venv"]


def test_an_old_python_is_refused(machine):
    run = machine.run("setup.sh", OLD_PYTHON="1")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "setup: rota needs Python 3.11 or newer; python3 here is: Python 3.9.2\n"
    assert machine.asked() == []


def test_an_active_environment_without_pip_is_left_alone(machine):
    active = machine.root.parent / "active"
    machine.write(active / "bin" / "python")
    run = machine.run("setup.sh", VIRTUAL_ENV=str(active), NO_PIP="1")
    assert (run.returncode, machine.asked()) == (1, [])
    assert run.stderr == f"setup: the active environment {active} has no pip: deactivate it\n"


MKDOCS = "python -P -m mkdocs {} --strict --config-file ROOT/mkdocs.yml"
PYTEST = "python -P -m pytest --config-file ROOT/pyproject.toml --rootdir ROOT"


@pytest.mark.parametrize(
    ("script", "arguments", "asked"),
    [
        ("simulate.sh", ["--help"], ["python -P -m rota simulate --help"]),
        ("simulate.sh", ["--help-config"], ["python -P -m rota simulate --help-config"]),
        ("simulate.sh", ["--json"], ["python -P -m rota simulate --json"]),
        (
            "simulate.sh",
            ["a.toml", "--quick", "--json"],
            ["python -P -m rota simulate a.toml --quick --json"],
        ),
        ("plot.sh", ["--quick"], ["python -P ROOT/plotting.py --quick"]),
        ("bench.sh", ["--jobs", "9"], ["python ROOT/scripts/bench.py --jobs 9"]),
        ("bench.sh", ["--execution", "--quick"], ["python ROOT/scripts/bench_execution.py --quick"]),
        ("bench.sh", ["--engine", "--quick"], ["python ROOT/scripts/bench_engine.py --quick"]),
        ("bench.sh", ["--training", "--quick"], ["python ROOT/scripts/bench_training.py --quick"]),
        ("bench.sh", ["--steadiness"], ["python ROOT/scripts/bench_steadiness.py"]),
        ("bench.sh", ["--ray"], ["python ROOT/scripts/bench_ray.py"]),
        ("bench.sh", ["--sweeps"], ["python ROOT/scripts/bench_sweeps.py"]),
        ("compare-tune.sh", ["--repeat", "2"], ["python ROOT/scripts/compare_tune.py --repeat 2"]),
        ("docs.sh", ["--site-dir", "there"], [f"{MKDOCS.format('build')} --site-dir there"]),
        ("docs.sh", ["serve"], [MKDOCS.format("serve")]),
        ("record.sh", ["--help"], ["python -P -m rota record --help"]),
        ("test.sh", ["-k", "grid"], [f"{PYTEST} ROOT/tests -k grid"]),
        ("test.sh", ["../elsewhere::a"], [f"{PYTEST} ../elsewhere::a"]),
    ],
)
def test_a_script_works_from_any_folder_and_passes_its_arguments_on(machine, script, arguments, asked):
    all_extras = ["dev", "train", "tensorflow", "sweeps", "lightning", "ray", "docs"]
    for extras in [
        [],
        ["train"],
        ["sweeps"],
        ["docs"],
        ["ray", "tune"],
        ["train", "ray", "tune"],
        all_extras,
    ]:
        machine.run("setup.sh", *extras)
    machine.asked()
    run = machine.run(script, *arguments)
    assert (run.returncode, run.stderr, machine.asked()) == (0, "", asked)


@pytest.fixture
def ready(machine):
    """A machine on which everything is set up."""
    machine.run("setup.sh")
    machine.asked()
    return machine


POPULATIONS, GPUS = (f"config/simulate/{name}.toml" for name in ("populations", "gpus"))


@pytest.mark.parametrize(
    ("arguments", "runs", "figures"),
    [
        ([], "ROOT/results/simulate", ""),
        (["a.toml", "--set", "cluster.nodes=4"], "ROOT/results/simulate", ""),
        (["--quick"], "ROOT/results/quick", " --quick"),
        (["--out", "mine"], "mine", ""),
        (["--out=mine"], "mine", ""),
        (["--quick", "--out", "mine"], "mine", " --quick"),
        (["--out", "mine", "--quick"], "mine", " --quick"),
    ],
)
def test_simulate_draws_the_runs_it_has_made_into_the_plots_of_the_checkout(ready, arguments, runs, figures):
    run = ready.run("simulate.sh", *arguments)
    assert (run.returncode, run.stderr) == (0, "")
    words = "".join(f" {word}" for word in arguments)
    own = "" if runs == "mine" else " --replace"
    populations = [
        f"python -P -m rota simulate ROOT/{config} --out {runs}/{Path(config).stem}{own}{figures}"
        for config in (POPULATIONS, GPUS)
    ]
    assert ready.asked() == [
        f"python -P -m rota simulate --out {runs}{own}{words}",
        *([] if "a.toml" in arguments else populations),
        f"python -P -m rota plot {runs} --out ROOT/plots --count{figures}",
    ]


def test_from_the_checkout_itself_paths_do_not_say_where_it_is(ready):
    ready.run("simulate.sh", "--quick", where=ready.root)
    assert ready.asked() == [
        "python -P -m rota simulate --out results/quick --replace --quick",
        f"python -P -m rota simulate {POPULATIONS} --out results/quick/populations --replace --quick",
        f"python -P -m rota simulate {GPUS} --out results/quick/gpus --replace --quick",
        "python -P -m rota plot results/quick --out plots --count --quick",
    ]


def test_if_the_simulation_fails_nothing_is_drawn(ready):
    (ready.root / ".venv" / "bin" / "python").write_text(
        '#!/bin/bash\necho "python $*" >> "$LOG"\n[[ $* != *simulate* ]]\n'
    )
    run = ready.run("simulate.sh")
    assert run.returncode == 1
    assert ready.asked() == ["python -P -m rota simulate --out ROOT/results/simulate --replace"]


RECORD = "python -P -m rota record"
DESCRIBE = "python -P -m rota recordings describe"
SHIPPED = " ".join(
    f"ROOT/config/record/{name}.toml"
    for name in ["profiles", "profiles-resnet8", "curves", "trees-convnet2", "trees-convnet3", "growth-pairs"]
)


@pytest.mark.parametrize(
    ("arguments", "configs", "out", "rest"),
    [
        ([], SHIPPED, "ROOT/results/recordings", ""),
        (["--workers", "3"], SHIPPED, "ROOT/results/recordings", " --workers 3"),
        (["--quick"], "ROOT/config/record/quick.toml", "ROOT/results/quick-recordings", ""),
        (["--quick", "--out", "mine"], "ROOT/config/record/quick.toml", "mine", ""),
        (["a.toml", "b.toml", "--out=mine"], "a.toml b.toml", "mine", ""),
        (
            ["a.toml", "--set", "x=b.toml", "--quiet"],
            "a.toml",
            "ROOT/results/recordings",
            " --set x=b.toml --quiet",
        ),
    ],
)
def test_record_records_and_then_shows_what_there_is(machine, arguments, configs, out, rest):
    machine.run("setup.sh", "train")
    machine.asked()
    run = machine.run("record.sh", *arguments)
    figure = "ROOT/plots/recordings/overview.png" if out.endswith("/recordings") else f"{out}/overview.png"
    asked = [f"{RECORD} {configs} --out {out}{rest}", f"{DESCRIBE} {out} --figure {figure}"]
    assert (run.returncode, run.stderr, machine.asked()) == (0, "", asked)


def test_quick_recordings_have_a_configuration_of_their_own(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    run = machine.run("record.sh", "--quick", "a.toml")
    assert (run.returncode, machine.asked()) == (2, [])
    assert "leave it or a.toml out" in run.stderr


LEARN = "python -P -m rota learn"
FAMILIES = ("pooled", "scratch", "transfer", "curricula", "models")


def test_learn_learns_every_family(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    run = machine.run("learn.sh", "--seed", "4")
    assert run.returncode == 0
    assert machine.asked() == [
        f"{LEARN} ROOT/config/learn/{name}.toml --out ROOT/results/learn/{name} --seed 4" for name in FAMILIES
    ]


def test_several_recordings_are_not_taken_for_configurations(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    machine.run("learn.sh", "mine.toml", "--recordings", "a", "b", "--quick", "--seed", "4")
    words = "--out ROOT/results/quick-learn/mine --workers 1 --recordings a b --seed 4"
    assert machine.asked() == [f"{LEARN} mine.toml {words}"]


def test_quick_and_full_say_how_much_is_learned(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    machine.run("learn.sh", "--quick")
    quick = machine.asked()
    *families, place, joint = quick
    assert len(families) == len(FAMILIES)
    assert all("--out ROOT/results/quick-learn/" in line and "--set episodes=" in line for line in families)
    assert all(line.endswith(" --workers 1") for line in quick)
    assert place.startswith(
        f"{LEARN} ROOT/config/learn/place.toml --out ROOT/results/quick-learn/place --set "
    )
    assert joint.startswith(f"{LEARN} ROOT/config/learn/joint-growth.toml --out ROOT/results/quick-learn/")
    machine.run("learn.sh", "--full", "mine/scratch.toml", "--out", "mine")
    assert machine.asked() == [f"{LEARN} mine/scratch.toml --out mine/scratch --set episodes=75000"]


def test_evaluate_says_what_is_missing_and_else_evaluates_all(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    run = machine.run("evaluate.sh")
    assert run.returncode == 2
    assert "learn first: bash scripts/learn.sh" in run.stderr
    for name in ("joint-growth", "place", "pooled"):
        (machine.root / "results" / "learn" / name).mkdir(parents=True)
    run = machine.run("evaluate.sh", "--recordings", "a", "b")
    assert run.returncode == 0
    evaluate = "python -P -m rota evaluate"
    assert machine.asked() == [
        f"{evaluate} --agent ROOT/results/learn/joint-growth --recordings ROOT/results/recordings/growth "
        "--cases 200 --out ROOT/results/evaluate/joint-growth --figures ROOT/plots/evaluate/joint-growth",
        f"{evaluate} --agent ROOT/results/learn/place "
        "--out ROOT/results/evaluate/place --figures ROOT/plots/evaluate/place",
        f"{evaluate} --agent ROOT/results/learn/pooled --recordings a b "
        "--out ROOT/results/evaluate/pooled --figures ROOT/plots/evaluate/pooled",
        *(
            f"{evaluate} ROOT/config/learn/unseen.toml --leave-out {what} --recordings a b "
            f"--out ROOT/results/evaluate/without-{what} --figures ROOT/plots/evaluate/without-{what}"
            for what in ("scenario", "model")
        ),
    ]
    assert machine.run("evaluate.sh", "--fast").returncode == 2


@pytest.fixture
def tested(machine):
    """A machine on which the script of the tests finds what it needs."""
    machine.run("setup.sh", "dev", "train", "tensorflow", "sweeps", "lightning", "ray", "docs")
    machine.asked()
    return machine


def test_without_arguments_all_tests_are_run_once(tested):
    """In parts; the last of them has all that is in no other."""
    run = tested.run("test.sh")
    assert (run.returncode, run.stderr) == (0, "")
    parts = [asked.removeprefix(f"{PYTEST} ").split() for asked in tested.asked()]
    (rest,) = (part for part in parts if part[0] == "ROOT/tests")
    named = [name for part in parts if part is not rest for name in part]
    assert len(parts) > 2
    assert len(set(named)) == len(named)
    assert all((SCRIPTS.parent / name.removeprefix("ROOT/")).exists() for name in named)
    assert sorted(rest[1:]) == sorted(f"--ignore={name}" for name in named)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (" ROOT/tests/execution", "execution"),
        (" ROOT/tests/training", "training"),
        ("--ignore", "the others"),
    ],
)
def test_tests_fail_if_a_part_does_and_the_others_are_run(tested, broken, named):
    broken = broken.replace("ROOT", str(tested.root))
    (tested.root / ".venv" / "bin" / "python").write_text(
        f'#!/bin/bash\necho "python $*" >> "$LOG"\n[[ $* != *"{broken}"* ]]\n'
    )
    run = tested.run("test.sh")
    assert (run.returncode, len(tested.asked()) > 2) == (1, True)
    assert run.stderr.startswith(f"test.sh: failed, see above: {named}")
    assert run.stderr.count("\n") == 1
    assert tested.run("test.sh", "-k", "x").returncode == 0


def test_ctrl_c_ends_the_tests_in_the_background_too(tested):
    """A terminal sends it to what is in the foreground only."""
    (tested.root / ".venv" / "bin" / "python").write_text('#!/bin/bash\necho $$ >> "$LOG"\nexec sleep 600\n')
    script = subprocess.Popen(
        ["bash", tested.root / "scripts" / "test.sh"],
        env=tested.variables,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as in a terminal
    )
    until_s = time.monotonic() + 60
    while not tested.log.exists() or len(tested.log.read_text().split()) < 3:
        assert time.monotonic() < until_s
        time.sleep(0.02)
    os.killpg(script.pid, signal.SIGINT)
    assert script.wait(60) == 130
    left = [Path("/proc", pid) for pid in tested.asked()]
    assert len(left) == 3
    while any(process.exists() for process in left):
        assert time.monotonic() < until_s, "one of them is left"
        time.sleep(0.02)


FIDELITY = "results/fidelity/population"


def test_fidelity_records_simulates_runs_and_compares_in_this_order(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    machine.run("fidelity.sh", "population")
    machine.asked()
    stale = machine.root / FIDELITY / "real" / "stale"
    stale.mkdir(parents=True)
    run = machine.run("fidelity.sh", "population")
    assert (run.returncode, run.stderr) == (0, "")
    configs, out = "ROOT/config/fidelity/population", f"ROOT/{FIDELITY}"
    figure = "ROOT/plots/fidelity/population"
    assert machine.asked() == [
        f"python -P -m rota record {configs}-record.toml --out {out}/recordings",
        f"python -P -m rota simulate {configs}-simulate.toml --out {out}/simulated "
        f"--set population.curves={out}/recordings/curves/population",
        f"python -P -m rota run {configs}-run.toml --out {out}/real",
        f"python -P -m rota compare {out}/real {out}/simulated --out {out} "
        f"--figure {figure}.png --figure {figure}.svg --within 5,8",
    ]
    assert not stale.exists()


def test_fidelity_of_a_population_that_only_computes_tells_each_command_what_it_knows(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    run = machine.run("fidelity.sh", "computing", "--out", "mine")
    assert (run.returncode, run.stderr) == (0, "")
    recorded, simulated, ran, _ = machine.asked()
    assert recorded.endswith("--out mine/computing/recordings --set curves.setup.storage_mb_s=1e6")
    assert simulated.endswith("/curves/population --set population.trials=60")
    assert ran.endswith("mine/computing/real --set population.trials=60 --set training.storage_mb_s=1e6")


def test_fidelity_keeps_recordings_if_asked_to_and_asks_nothing_of_quick_runs(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    machine.run("fidelity.sh", "population", "--out", "mine")
    kept = machine.elsewhere / "mine" / "population" / "recordings" / "kept"
    kept.mkdir(parents=True)
    run = machine.run("fidelity.sh", "population", "--quick", "--reuse", "--out", "mine")
    assert (run.returncode, run.stderr) == (0, "")
    *_, compared = machine.asked()
    assert "--within" not in compared
    assert "plots/quick-fidelity/population.png" in compared
    assert kept.exists()


def test_fidelity_takes_no_recording_of_jobs_that_was_made_with_other_settings(machine):
    machine.run("setup.sh", "train")
    configs = machine.root / "config" / "fidelity"
    configs.mkdir(parents=True)
    for name in ("jobs-run.toml", "jobs-record.csv"):
        (configs / name).write_text("as it was\n")
    machine.run("fidelity.sh", "srtf", "--out", "mine")
    (machine.elsewhere / "mine" / "jobs" / "recording").mkdir()
    again = ("fidelity.sh", "srtf", "--reuse", "--out", "mine")
    machine.asked()
    assert machine.run(*again).returncode == 0
    assert not any("jobs-record.csv" in asked for asked in machine.asked())
    (configs / "jobs-record.csv").write_text("as it is now\n")
    run = machine.run(*again)
    assert (run.returncode, machine.asked()) == (2, [])
    assert run.stderr.endswith("mine/jobs/recording: was recorded with other settings; leave --reuse out\n")


def test_fidelity_takes_nothing_away_that_is_not_its_own(machine):
    machine.run("setup.sh", "train")
    machine.asked()
    theirs = machine.elsewhere / "mine" / "population" / "real"
    theirs.mkdir(parents=True)
    run = machine.run("fidelity.sh", "population", "--out", "mine")
    assert (run.returncode, machine.asked(), theirs.exists()) == (2, [], True)
    assert run.stderr == "fidelity.sh: --out mine: has something else in it; give a new folder\n"


def test_fidelity_says_what_it_does_not_know_and_fails_if_a_comparison_does(machine):
    machine.run("setup.sh", "train")
    run = machine.run("fidelity.sh", "populaton")
    assert run.returncode == 2
    assert run.stderr.startswith("fidelity.sh: populaton: not a workload; there are: population")
    assert machine.run("fidelity.sh", "--out").returncode == 2
    (machine.root / ".venv" / "bin" / "python").write_text("#!/bin/bash\n[[ $* != *compare* ]]\n")
    assert machine.run("fidelity.sh", "population").returncode == 1
