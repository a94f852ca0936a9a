"""Schedulers that are not rota's, named as file.py:Class or module:Class."""

import json
import os
import subprocess
import sys

import pytest

from rota.commands.common import MESSAGE
from rota.results.run import read_run

AGING = """
from dataclasses import dataclass
import rota

@dataclass(frozen=True)
class Aging(rota.Scheduler):
    patience: float = 0.1
    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))
"""
CLUSTER = ("--nodes", 1, "--gpus-per-node", 2)


@pytest.fixture
def aging(here):
    file = here / "aging.py"
    file.write_text(AGING)
    return file


def rows(said):
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_the_command_of_the_page_works_as_written(here, aging, trace):
    """In a process of its own, as it is typed."""
    command = (
        f"rota simulate --trace {trace.name} --nodes 8 --gpus-per-node 8 --schedulers srtf,aging.py:Aging "
        "--set options.aging.patience=2 --json"
    )
    code = "import sys; from rota.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-P", "-c", code, *command.split()[1:]]
    done = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0
    assert done.stderr in ("", f"{MESSAGE}\n")  # whoever comes first compiles
    found = json.loads(done.stdout)
    assert [row["scheduler"] for row in found] == ["srtf", "aging"]
    table = {
        "avg_jct_s",
        "p50_jct_s",
        "p99_jct_s",
        "makespan_s",
        "queueing_s",
        "utilisation",
        "fairness_mean",
    }
    assert all(table | {"preemptions", "wall_s"} <= set(row) for row in found)


def test_options_reach_the_class(rota, here, aging, write_trace):
    """When w is done, x has 2000 s to do, and y 1500 s; but x has waited for longer."""
    trace = write_trace(here / "aged.csv", "w,0,1,1000,dqn,0", "x,0,1,2000,dqn,0", "y,900,1,1500,dqn,0")
    ask = ("--trace", trace, "--nodes", 1, "--gpus-per-node", 1, "--json")
    srtf, none = rows(rota(*ask, "--schedulers", "srtf,aging.py:Aging", "--set", "options.aging.patience=0"))
    assert {**srtf, "scheduler": "", "wall_s": 0} == {**none, "scheduler": "", "wall_s": 0}
    (much,) = rows(rota(*ask, "--schedulers", "aging.py:Aging", "--set", "options.aging.patience=1"))
    assert much["avg_jct_s"] - none["avg_jct_s"] == pytest.approx((2000 - 1500) / 3)
    said = rota(*ask, "--schedulers", "aging.py:Aging", "--set", "options.aging.patients=1")
    assert "options.aging: unknown key 'patients'. Did you mean 'patience'?" in said.err


def test_a_file_of_a_configuration_starts_at_its_folder(rota, here, trace):
    (here / "deep").mkdir()
    (here / "deep" / "aging.py").write_text(AGING)
    (here / "deep" / "mine.toml").write_text(
        'schedulers = ["aging.py:Aging"]\n[workload]\ntrace = "../three.csv"\n'
        "[options.aging]\npatience = 3.0\n"
    )
    (row,) = rows(rota("deep/mine.toml", "--json"))
    assert row["scheduler"] == "aging"


def test_a_run_can_be_made_again_from_its_own_configuration_wherever_one_is(
    rota, here, aging, trace, monkeypatch
):
    ask = ("--trace", trace, *CLUSTER, "--schedulers", "aging.py:Aging", "--set", "options.aging.patience=7")
    rota(*ask, "--out", "out")
    before = read_run(here / "out" / "aging")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    said = rota("../out/aging/config.toml", "--out", "again")
    assert said.code == 0, said.err
    after = read_run(here / "elsewhere" / "again" / "aging")
    assert (after.metrics, after.inputs) == (before.metrics, before.inputs)


def test_what_a_file_says_belongs_to_what_a_run_is_made_from(rota, here, aging, trace):
    ask = ("--trace", trace, *CLUSTER, "--schedulers", "aging.py:Aging", "--out", "out")
    assert rota(*ask).err == ""
    assert "reused" in rota(*ask).err
    aging.write_text(AGING + "\n# another thought\n")
    os.utime(aging, (0, 0))
    assert "made anew" in rota(*ask).err
    aging.write_text(AGING.replace("view.remaining_s -", "-view.remaining_s -"))
    (row,) = rows(rota(*ask[:-2], "--json"))
    (before,) = rows(rota(*ask[:-4], "--schedulers", "srtf", "--json"))
    assert row["avg_jct_s"] > before["avg_jct_s"]  # the longest first


def test_what_a_file_imports_from_beside_it_belongs_to_it_too(rota, here, trace):
    (here / "beside_it.py").write_text("FACTOR = 1.0\n")
    text = AGING.replace("import rota\n", "import rota\nimport beside_it\n", 1)
    (here / "aging.py").write_text(text)
    ask = ("--trace", trace, *CLUSTER, "--schedulers", "aging.py:Aging", "--out", "out")
    assert rota(*ask).err == ""
    (here / "beside_it.py").write_text("FACTOR = 2.0\n")
    assert "made anew" in rota(*ask).err
    del sys.modules["beside_it"]


def test_a_class_of_a_module_is_found_from_where_one_is(rota, here, trace):
    (here / "my_module_here.py").write_text(AGING.replace("class Aging", "class OldestFIRSTOf2"))
    (row,) = rows(rota("--trace", trace, *CLUSTER, "--schedulers", "my_module_here:OldestFIRSTOf2", "--json"))
    assert row["scheduler"] == "oldest-first-of2"
    del sys.modules["my_module_here"]


def test_a_class_is_called_as_it_says(rota, here, trace):
    named = AGING.replace("    patience", '    name = "mine"\n    patience', 1)
    (here / "aging.py").write_text(named)
    ask = ("--trace", trace, *CLUSTER, "--json", "--schedulers", "aging.py:Aging")
    (row,) = rows(rota(*ask, "--set", "options.mine.patience=2"))
    assert row["scheduler"] == "mine"


@pytest.mark.parametrize(
    ("text", "spec", "said"),
    [
        (AGING, "aging.py:Agin", "aging.py:Agin: no class 'Agin' in aging.py; it has Aging"),
        (AGING, "old.py:Aging", "old.py: cannot be read: No such file or directory"),
        (AGING, "no_such_module:Aging", "no module 'no_such_module'; install it, or name its file"),
        (AGING, "aging.py:", "no class '' in aging.py; it has Aging"),
        (AGING, "9aging:Aging", "not the name of a class; write module:Class or path/to/file.py:Class"),
        ("def Aging(view): ...", "aging.py:Aging", "is not a class, but function; name a class"),
        ("class Aging: ...", "aging.py:Aging", "it has no plan; write def plan(self, view)"),
        (
            "class Aging:\n    def plan(self, view): ...",
            "aging.py:Aging",
            "it has no 'needs'; derive it from rota.Scheduler",
        ),
        (
            AGING.replace("(self, view)", "(self)"),
            "aging.py:Aging",
            "plan has the wrong arguments; write",
        ),
        ("import rota\nclass Aging(rota\n", "aging.py:Aging", "line 2: SyntaxError: '(' was never closed"),
        ("import rota\nx = 1 / 0\n", "aging.py:Aging", "line 2: ZeroDivisionError: division by zero"),
        (AGING.replace("Aging", "Srtf"), "aging.py:Srtf", "is named 'srtf', like a scheduler of rota"),
        (AGING.replace("= 0.1", ""), "aging.py:Aging", "options.aging: missing key 'patience'"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(rota, here, trace, text, spec, said):
    (here / "aging.py").write_text(text)
    found = rota("--trace", trace, *CLUSTER, "--schedulers", spec)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert said in found.err


def test_two_of_one_name_are_refused(rota, here, aging, trace):
    (here / "other.py").write_text(AGING)
    found = rota("--trace", trace, *CLUSTER, "--schedulers", "aging.py:Aging,other.py:Aging")
    assert found.code == 2
    assert "schedulers names aging twice; give one of the classes another name, or a `name`" in found.err


def test_a_kernel_of_a_file_is_compiled_anew_when_the_file_changes(rota, here, trace):
    """Even if the time of the file says that it is the same, which is all that Numba looks at."""
    text = """
from rota.core.compiled import kernel
import rota

@kernel
def sign():
    return 1.0

class Mine(rota.Scheduler):
    def plan(self, view):
        return view.first_fit(view.rank(sign() * view.remaining_s))
"""
    ask = ("--trace", trace, *CLUSTER, "--schedulers", "mine.py:Mine", "--json")
    means = []
    for source in (text, text.replace("return 1.0", "return-1.0")):
        (here / "mine.py").write_text(source)
        os.utime(here / "mine.py", (1e9, 1e9))
        code = "import sys; from rota.cli import main; sys.exit(main(['simulate', *sys.argv[1:]]))"
        words = [sys.executable, "-P", "-c", code, *map(str, ask)]
        done = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        means.append(json.loads(done.stdout)[0]["avg_jct_s"])
    shortest_first, longest_first = means
    assert shortest_first < longest_first


READER = """
def read_mine(file, factor=1):
    for number, line in enumerate(file):
        yield {"id": f"job{number}", "submit_s": 0, "gpus": 1, "duration_s": factor * float(line)}
"""


def test_a_trace_is_read_by_a_function_from_flags_and_from_a_configuration(rota, here):
    """On one GPU, fifo: 100 s and then 50 s more, times the factor."""
    (here / "deep").mkdir()
    (here / "deep" / "mine.py").write_text(READER)
    (here / "deep" / "mine.txt").write_text("100\n50\n")
    ask = ("--nodes", 1, "--gpus-per-node", 1, "--schedulers", "fifo", "--json")
    flags = ("--trace", "deep/mine.txt", "--format", "deep/mine.py:read_mine")
    (row,) = rows(rota(*flags, *ask, "--set", "workload.options.factor=2"))
    assert row["avg_jct_s"] == pytest.approx((200 + 300) / 2)
    (here / "deep" / "mine.toml").write_text(
        'schedulers = ["fifo"]\n[workload]\ntrace = "mine.txt"\nformat = "mine.py:read_mine"\n'
        "options = { factor = 3 }\n[cluster]\nnodes = 1\ngpus_per_node = 1\n"
    )
    (row,) = rows(rota("deep/mine.toml", "--json"))
    assert row["avg_jct_s"] == pytest.approx((300 + 450) / 2)


def test_a_run_of_such_a_trace_can_be_made_again_and_follows_from_its_reader(rota, here, monkeypatch):
    (here / "mine.py").write_text(READER)
    (here / "mine.txt").write_text("100\n50\n")
    ask = ("--trace", "mine.txt", "--format", "mine.py:read_mine", *CLUSTER, "--schedulers", "fifo")
    rota(*ask, "--out", "out")
    assert "reused" in rota(*ask, "--out", "out").err
    before = read_run(here / "out" / "fifo")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    said = rota("../out/fifo/config.toml", "--out", "again")
    assert said.code == 0, said.err
    assert read_run(here / "elsewhere" / "again" / "fifo").inputs == before.inputs
    monkeypatch.chdir(here)
    (here / "mine.py").write_text(READER.replace("factor=1", "factor=2"))
    assert "made anew" in rota(*ask, "--out", "out").err


POLICIES = """
import rota

class Last(rota.Allocation):
    def assign(self, view):
        while view.idle and view.waiting:
            yield view.idle[0], [view.part(view.waiting[-1])]

class StopAll(rota.Evolution):
    def review(self, view, trial):
        return self.stop(trial)
"""


def test_allocations_and_evolutions_are_kept_by_their_files(rota, here, tmp_path, monkeypatch):
    (here / "mine.py").write_text(POLICIES)
    words = ("--population", 3, "--slots", "2,1", "--seeds", 1, "--allocations", "fifo,mine.py:Last")
    curves = "population.curves=results/recordings/curves/convnet2-fashion-mnist"
    more = ("--set", "evolution=mine.py:StopAll", "--set", curves, "--json", "--out", "out")
    found = rows(rota(*words, *more))
    assert [row["allocation"] for row in found] == ["fifo", "last"]
    again = rota(*words, *more)
    assert "out/last: reused" in again.err
    assert rows(again) == found
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    resolved = rows(rota(here / "out" / "last" / "config.toml", "--json"))
    assert resolved[0]["makespan_s"] == found[1]["makespan_s"]
    (here / "mine.py").write_text(POLICIES.replace("[-1]", "[0]"))
    monkeypatch.chdir(here)
    assert "out/last: made anew" in rota(*words, *more, "--replace").err
