"""Files that say what cannot be: each is a sentence, never a traceback, a hang or a steered terminal."""

import json
import re
from pathlib import Path

import pytest

from rota import cli
from rota.core.files import printable, printable_lines

ROOT = Path(__file__).parents[2]
RED = "\x1b[31mred\x1b[0m"
ODD = ("$\\frac$", f"{RED} é\u0301名前 $", "")
"""Names that a file may have, and that something might take for its own language."""
TRACE = "id,submit_s,gpus,duration_s,model,priority\na,0,1,60,bert,0\nb,1,1,9,dqn,1\n"
JOBS = "id,submit_s,gpus,model,iterations,duration_s,priority\n{},0,1,fast,5,1,0\n"
SHIPPED = ROOT / "config/simulate/populations.toml"
SMALL = ("--population", 2, "--steps", 100, "--slots", "1,2", "--allocations", "fifo", "--out", "runs")
HOSTILE = (None, True, "x", "", -1, 10**400, 1e308, [], {}, [[]], {"a": 1}, [None])

RUN = """
scheduler = "srtf"
job = "rota.execution.jobs.idle:idle_jobs"
[workload]
trace = "trace.csv"
[local]
slots = [{ count = 2, cores = 0 }]
[kinds.fast]
compute_s = 0.001
"""
OPPORTUNISTIC = '[opportunistic]\nkind = "fast"\n[kinds.fast.adaptive]\n'


@pytest.fixture
def command(here, capsys):
    """Gives a function that runs `rota …` in this process, in the folder `here`; code, output, errors."""

    def run(*words: object) -> tuple[int, str, str]:
        code = cli.main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return run


def assert_refused(done, *parts):
    """One sentence, with these in it."""
    code, _, err = done
    said = [line for line in err.splitlines() if not line.startswith("note:")]
    assert (code, len(said)) == (2, 1), err
    assert said[0].startswith("rota: error: ")
    for part in parts:
        assert part in said[0]


# what is printed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, é, 名前, ×", "plain, é, 名前, ×"),
        (RED, "\\x1b[31mred\\x1b[0m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b\x07\u202e", "\\x9b\\x07\\u202e"),
        ("half \ud800", "half \\ud800"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_what_is_no_text_is_shown_as_an_escape(text, shown):
    assert printable(text) == shown


def test_lines_stay_lines():
    assert printable_lines(f"a\n{RED}") == "a\n\\x1b[31mred\\x1b[0m"


def test_a_name_from_a_file_does_not_steer_the_terminal_through_an_error(command, here):
    (here / "t.csv").write_text(f"id,submit_s,gpus,duration_s\n{RED},0,many,1\n\x1b]0;t\x07,0,1,1\n")
    assert_refused(command("trace", "describe", "t.csv"), "line 2")
    (here / "t.toml").write_text(f'schedulers = ["\\u001b[31m{0}"]\n[workload]\ntrace = "t.csv"\n')
    done = command("simulate", "t.toml")
    assert_refused(done)
    assert "\x1b" not in done[2]


def test_nor_through_the_status_of_a_run(command, here):
    (here / "trace.csv").write_text(
        f"id,submit_s,gpus,model,iterations,duration_s,priority\n{RED},0,1,fast,5,1,0\n"
    )
    (here / "run.toml").write_text(RUN)
    done = command("run", "run.toml", "--out", "run")
    assert done[0] == 0
    assert "\x1b" not in done[1] + done[2]
    code, out, err = command("status", "run")
    assert (code, err) == (0, "")
    assert "\\x1b[31mred" in out
    assert "\x1b" not in out


# what is drawn


@pytest.mark.parametrize("name", ODD)
def test_names_are_drawn_as_they_are(command, here, name):
    """The scheduler, the workload and a job have the name in question, in every figure of runs."""
    (here / "t.csv").write_text(
        "id,submit_s,gpus,duration_s,model,priority\na,0,1,60,bert,0\nb,1,1,9,dqn,1\n"
    )
    assert command("simulate", "--trace", "t.csv", "--schedulers", "fifo,srtf", "--out", "runs")[0] == 0
    for metrics in here.glob("runs/*/metrics.json"):
        found = json.loads(metrics.read_text())
        found |= {"workload": name, "scheduler": found["scheduler"] + name, "command": name}
        metrics.write_text(json.dumps(found))
    for file in here.glob("runs/*/jobs.csv"):
        quoted = f'"{name}"' if name else "c"
        file.write_text(file.read_text().replace("\na,bert", f"\n{quoted},{quoted}"))
    code, out, err = command("plot", "runs", "--quick", "--svg")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 2 * 4  # jct, comparison, load, gantt
    assert "\x1b" not in out


# tables of what there is


@pytest.mark.parametrize(
    "row", ["1e308,8,8", "1,1e308,8", "1,8,1e308", "1e15,8,8", "1000000,2,1", "1,1000001,1"]
)
def test_a_cluster_file_has_the_limit_of_the_configuration(command, here, row):
    (here / "t.csv").write_text(TRACE)
    (here / "c.csv").write_text(f"num_switch,num_node_p_switch,num_gpu_p_node\n{row}\n")
    by_file = command("simulate", "--trace", "t.csv", "--set", "cluster.file=c.csv")
    assert_refused(by_file)
    assert re.search(r"1,000,000 slots|a number below", by_file[2])


def test_groups_of_nodes_have_it_too(command, here):
    (here / "t.csv").write_text(TRACE)
    done = command("simulate", "--trace", "t.csv", "--set", "cluster.groups=[{count=1000000000000, gpus=8}]")
    assert_refused(done, "more than 1,000,000 slots")


def test_a_pollux_application_with_a_name_that_no_folder_has(command, here):
    (here / "w.csv").write_text(f"name,time,application,num_replicas,batch_size\na,1,{'x' * 5000},1,128\n")
    done = command("trace", "describe", "w.csv")
    assert_refused(done, "line 2: application", "is not measured")
    assert len(done[2]) < 500


# configurations


@pytest.mark.parametrize("value", ["x", "[]", "-1", "0", "1e308", "{}"])
def test_the_budget_of_an_opportunistic_job_is_a_time(command, here, value):
    (here / "trace.csv").write_text(
        "id,submit_s,gpus,model,iterations,duration_s,priority\na,0,1,fast,5,1,0\n"
    )
    (here / "run.toml").write_text(RUN + OPPORTUNISTIC)
    done = command("run", "run.toml", "--out", "run", "--set", f"kinds.fast.adaptive.budget_s={value}")
    assert_refused(done, "kinds.fast.adaptive", "budget_s")


@pytest.mark.parametrize("name", ["latency_s", "dispatch_s"])
def test_costs_are_not_longer_than_the_clock_can_count(command, name):
    words = (
        "simulate",
        ROOT / "config/simulate/populations.toml",
        "--set",
        "cluster=nine",
        "--set",
        "seeds=1",
    )
    done = command(*words, "--set", "population.trials=4", "--set", f"costs.{name}=4611686018427387904")
    assert_refused(done, f"costs: {name} is 4.61169e+18; it must be 0 to 1e+09")


def test_no_more_jobs_are_made_than_memory_holds(command):
    done = command("trace", "generate", "--jobs", 100_000_000_000, "--out", "t.csv")
    assert_refused(done, "jobs is 100000000000; at most 100,000,000")


def test_no_more_reports_are_made_than_memory_holds(command):
    done = command("simulate", "--population", 2, "--steps", 10**14, "--slots", "1,1", "--interval", 50)
    assert_refused(done, "are 4,000,000,000,000 reports", "at most 100,000,000 are possible: give a larger")


def test_no_more_processes_are_started_here_than_a_machine_can_bear(command, here):
    (here / "trace.csv").write_text(JOBS.format("a"))
    (here / "run.toml").write_text(RUN)
    slots = "local.slots=[{count=1000,cores=0},{count=25,cores=0}]"
    done = command("run", "run.toml", "--out", "run", "--set", slots)
    assert_refused(done, "local: slots: they are 1,025, each with a process on this machine; at most 1,024")


def test_a_seed_is_a_number_that_generators_take(command):
    done = command("learn", ROOT / "config/learn/scratch.toml", "--set", f"seeds=[{2**63}]", "--out", "x")
    assert_refused(done, "seeds", "is not an integer of 64 bits")


# run folders


def test_jobs_that_take_longer_than_can_be_reckoned_with(command, here):
    (here / "t.csv").write_text("id,submit_s,gpus,duration_s\na,0,1,5\n")
    command("simulate", "--trace", "t.csv", "--schedulers", "fifo", "--out", "runs")
    (file,) = here.glob("runs/**/jobs.csv")
    header, row = file.read_text().splitlines()
    cells = row.split(",")
    cells[header.split(",").index("iterations")] = "1e308"
    cells[header.split(",").index("iteration_s")] = "1e308"
    file.write_text(f"{header}\n{','.join(cells)}\n")
    done = command("plot", "runs", "--figure", "gantt", "--out", "plots")
    assert_refused(done, "jobs.csv: not the jobs of a run (a job takes longer")


def places(found, path=()):
    """Every key of a JSON file, as the way to it."""
    if isinstance(found, dict | list):
        for key in found if isinstance(found, dict) else range(len(found)):
            yield (*path, key)
            yield from places(found[key], (*path, key))


def changed(found, path, value):
    copy = json.loads(json.dumps(found))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return json.dumps(copy)


def each_change(text):
    """The file with each of its values replaced by a hostile one in turn."""
    found = json.loads(text)
    for number, path in enumerate(places(found)):
        yield changed(found, path, HOSTILE[number % len(HOSTILE)])


@pytest.mark.parametrize("kind", ["jobs", "population"])
def test_a_run_of_which_anything_is_of_another_type_is_a_sentence_or_is_shown(command, here, kind):
    if kind == "jobs":
        (here / "t.csv").write_text(
            "id,submit_s,gpus,duration_s,model,priority\na,0,1,60,bert,0\nb,1,1,9,dqn,1\n"
        )
        made = ("simulate", "--trace", "t.csv", "--schedulers", "fifo", "--out", "runs")
    else:
        made = (
            "simulate",
            "--population",
            2,
            "--steps",
            100,
            "--slots",
            "1,2",
            "--allocations",
            "fifo",
            "--seeds",
            2,
        )
        made += ("--out", "runs")
    assert command(*made)[0] == 0
    file = next(here.glob("runs/**/metrics.json" if kind == "jobs" else "runs/**/summary.json"))
    sound = file.read_text()
    shown = 0
    for text in each_change(sound):
        file.write_text(text)
        code, _, err = command("report", "runs", "--out", "r.html")
        assert code in (0, 2), (text, err)
        assert code == 0 or err.startswith("rota: error: "), (text, err)
        shown += code == 0
    assert shown > 0  # what nobody looks at, or what is as good as before


@pytest.mark.parametrize(
    ("field", "value"),
    [("at_s", "x"), ("at_s", None), ("slot", -1), ("slot", 99), ("slot", 1.5), ("trial", []),
     ("metric", "good"), ("steps", True), ("began_s", 10**400), ("moved_s", [0])],
)  # fmt: skip
def test_an_event_of_another_type_is_named_with_its_line(command, here, field, value):
    assert command("simulate", *SMALL)[0] == 0
    file = next(here.glob("runs/**/timeline.jsonl"))
    lines = file.read_text().splitlines()
    number = next(at for at, line in enumerate(lines) if '"Reported"' in line)
    lines[number] = json.dumps(json.loads(lines[number]) | {field: value})
    file.write_text("\n".join(lines))
    assert_refused(command("report", "runs", "--out", "r.html"), f"timeline.jsonl: line {number + 1}: ")


# recordings


def test_a_profile_whose_facts_are_of_another_type(command, here):
    source = ROOT / "results/recordings/profiles/profiles"
    (here / "p").mkdir()
    for file in source.iterdir():
        (here / "p" / file.name).write_bytes(file.read_bytes())
    sound = (source / "recording.json").read_text()
    for text in each_change(sound):
        (here / "p" / "recording.json").write_text(text)
        code, _, err = command("recordings", "describe", "p")
        assert code in (0, 2), (text, err)
