"""`rota trace`, as its user sees it."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rota
from rota.commands import trace
from rota.core.errors import ConfigError, InputError, TraceError
from rota.workload import plain
from rota.workload.profiles import MODELS


@pytest.fixture
def command(capsys):
    """Gives a function that runs `rota trace …` and returns what it printed."""
    parser = argparse.ArgumentParser("rota")
    trace.add_parser(parser.add_subparsers(dest="command"))

    def run(*words):
        assert trace.run(parser.parse_args(["trace", *map(str, words)])) == 0
        return capsys.readouterr()

    return run


@pytest.fixture
def many(sample):
    rows = "".join(f"j{number},{number},60,1\n" for number in range(250))
    return sample("azure", "job_id,submission_time,duration,num_gpu\n" + rows)


def test_convert_writes_our_csv_and_notes_what_it_drew(command, sample, tmp_path):
    out, err = command(
        "convert", sample("philly"), "--format", "philly", "--out", tmp_path / "o.csv", "--seed", 6
    )
    assert out == f"{tmp_path / 'o.csv'}: 2 jobs\n"
    assert err.splitlines() == [
        "note: no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 6",
        "note: no stages known for 2 jobs: schedulers that share GPUs run them alone; "
        "draw_models (--draw-models) gives every job a model that has stages",
    ]
    assert plain.read(tmp_path / "o.csv").ids == ("1", "0")


@pytest.mark.parametrize("flags", [[], ["--draw-models"], ["--startup-s", 30]])
def test_a_conversion_says_what_its_trace_says(command, sample, tmp_path, flags):
    """Whether models are drawn or starts cost something before the conversion or after it."""
    trace = sample("azure")
    command("convert", trace, *flags, "--seed", 6, "--out", tmp_path / "before.csv")
    command("convert", trace, "--seed", 6, "--out", tmp_path / "bare.csv")
    command("convert", tmp_path / "bare.csv", *flags, "--seed", 6, "--out", tmp_path / "after.csv")
    assert (tmp_path / "before.csv").read_bytes() == (tmp_path / "after.csv").read_bytes()
    startup_s = plain.read(tmp_path / "after.csv").startup_s
    drawn = plain.read(tmp_path / "after.csv").models
    if not flags:
        assert (startup_s.tolist(), drawn) == ([0.0, 0.0], ("unnamed",))
    elif flags == ["--startup-s", 30]:
        assert startup_s.tolist() == [30.0, 30.0]
    else:
        assert set(drawn) <= set(MODELS)
        assert (startup_s >= 4.0).all()


def test_convert_keeps_the_first_jobs(command, many, tmp_path):
    _, err = command("convert", many, "--jobs", 7, "--out", tmp_path / "o.csv")
    assert "note: only the first 7 of 250 jobs" in err
    assert plain.read(tmp_path / "o.csv").ids == tuple(f"j{n}" for n in range(7))


@pytest.mark.parametrize(("flags", "jobs"), [(["--quick"], 100), (["--quick", "--jobs", 5], 5)])
def test_quick_is_a_hundred_jobs_at_most(command, many, tmp_path, flags, jobs):
    command("convert", many, *flags, "--out", tmp_path / "o.csv")
    assert len(plain.read(tmp_path / "o.csv")) == jobs


def test_a_conversion_of_a_conversion_is_the_same_file(command, sample, tmp_path):
    command("convert", sample("gavel"), "--out", tmp_path / "1.csv")
    command("convert", tmp_path / "1.csv", "--out", tmp_path / "2.csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_describe_says_what_is_in_a_trace(command, many):
    out, _ = command("describe", many, "--gpus", 8)
    assert out.startswith("cluster02: 250 jobs, 4.2 GPU-hours\n")
    assert "load       7.530 on 8 GPUs" in out  # 250 × 60 s over 249 s × 8 GPUs


@pytest.mark.parametrize("verb", ["convert", "generate"])
def test_nothing_is_written_over_unless_that_is_asked_for(command, many, tmp_path, verb):
    """Not even the trace itself."""
    target = many if verb == "convert" else tmp_path / "there.csv"
    (tmp_path / "there.csv").write_text("mine")
    before = target.read_bytes()
    words = [verb, *([many] if verb == "convert" else ["--jobs", 5]), "--out", target]
    with pytest.raises(InputError, match="is there already; choose another name, or add --replace"):
        command(*words)
    assert target.read_bytes() == before
    command(*words, "--replace")
    assert target.read_bytes() != before


def test_describe_gives_json_on_stdout_and_notes_elsewhere(command, many):
    out, err = command("describe", many, "--json", "--gpus", 8, "--quick")
    described = json.loads(out)
    assert described["jobs"] == 100
    assert described["load"] == pytest.approx(100 * 60 / (99 * 8))
    assert described["gang_sizes"] == [{"name": "1", "jobs": 100, "gpu_hours": pytest.approx(100 / 60)}]
    assert all(line.startswith("note: ") for line in err.splitlines())


def test_describe_draws_a_figure(command, many, tmp_path):
    command("describe", many, "--figure", tmp_path / "figures" / "trace.png")
    assert (tmp_path / "figures" / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["trace.png"]


def test_generate_makes_the_load_asked_for(command, tmp_path):
    flags = ("--jobs", 40, "--gpus", 16, "--load", 0.5, "--arrivals", "poisson", "--seed", 3)
    out, _ = command("generate", *flags, "--out", tmp_path / "o.csv")
    assert out == f"{tmp_path / 'o.csv'}: 40 jobs\n"
    assert "load       0.500 on 16 GPUs" in command("describe", tmp_path / "o.csv", "--gpus", 16).out


@pytest.mark.parametrize(("flags", "jobs"), [([], 100), (["--jobs", 5], 5), (["--jobs", 500], 100)])
def test_generate_quick_is_a_hundred_jobs_at_most(command, tmp_path, flags, jobs):
    out = command("generate", "--quick", *flags, "--out", tmp_path / "o.csv").out
    assert out.endswith(f": {jobs} jobs\n")


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (("describe", "nowhere.csv"), TraceError, "nowhere.csv: cannot be read"),
        (("describe", "{trace}", "--format", "azur"), ConfigError, "Did you mean 'azure'"),
        (("describe", "{trace}", "--gpus", "0"), ConfigError, "gpus is 0; it must be at least 1"),
        (("describe", "{trace}", "--seed", "-1"), ConfigError, "seed is -1"),
        (("convert", "{trace}", "--jobs", "0", "--out", "{out}"), InputError, "ask for at least 1"),
        (("convert", "{trace}", "--jobs", "-3", "--out", "{out}"), InputError, "ask for at least 1"),
        (("generate", "--jobs", "1", "--out", "{out}"), ConfigError, "jobs is 1; it must be at least 2"),
        (("generate", "--load", "nan", "--out", "{out}"), ConfigError, "load is nan"),
        (("generate", "--arrivals", "often", "--out", "{out}"), ConfigError, "unknown arrivals 'often'"),
    ],
)
def test_a_mistake_is_an_error_and_nothing_is_written(command, many, tmp_path, words, error, message):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=message):
        command(*(word.format(trace=many, out=tmp_path / "o.csv") for word in words))
    assert sorted(tmp_path.iterdir()) == before


def test_the_parser_is_built_without_anything_heavy():
    code = (
        "import argparse, sys; from rota.commands import trace; "
        "trace.add_parser(argparse.ArgumentParser().add_subparsers(dest='command')); print(*sys.modules)"
    )
    source = str(Path(rota.__file__).parents[1])
    loaded = subprocess.check_output(
        [sys.executable, "-c", code], env={"PYTHONPATH": source}, text=True
    ).split()
    assert not {"numpy", "numba", "matplotlib"} & set(loaded)
