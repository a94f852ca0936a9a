"""Our own CSV: what may be left out, and that nothing is lost on the way to the file and back."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError, TraceError
from rota.workload import gavel, plain
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS, profile, startup_s

HEADER = "id,submit_s,gpus,duration_s"


def assert_equal(one: Workload, other: Workload) -> None:
    """Bit for bit, but for the name and the notes."""
    for field in fields(Workload):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            assert first.dtype == second.dtype
            assert first.tobytes() == second.tobytes(), field.name
        elif field.name not in ("name", "notes"):
            assert first == second, field.name


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8
)
awkward = st.sampled_from(["a,b", 'say "x"', "two\nlines", "'", "=1+1", "0", "naïve", "#1", "a|b"])
seconds = st.floats(0, 1e12)
above_zero = st.floats(1e-9, 1e12)
kind_sets = st.lists(st.sampled_from(["V100", "T4", "P100"]), max_size=3, unique=True).map(tuple)


@st.composite
def workloads(draw) -> Workload:
    ids = draw(st.lists(names | awkward, min_size=1, max_size=8, unique=True))
    jobs = len(ids)

    def column(values):
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    model = column(st.sampled_from(MODELS) | names)
    speeds = {kind: {m: draw(above_zero) for m in set(model)} for kind in draw(kind_sets)}
    return workload(
        "any",
        ids,
        column(seconds),
        column(st.sampled_from([0.25, 0.1, 1.0, 3.0, 32.0])),
        model,
        duration_s=column(seconds),
        iterations=column(above_zero),
        iteration_s=column(above_zero),
        stages_s=[column(seconds) for _ in range(3)],
        startup_s=column(seconds),
        priority=column(st.integers(0, 1)),
        kinds=column(kind_sets),
        speeds=speeds,
    )


@given(jobs=workloads())
def test_a_workload_written_and_read_back_is_the_same_bit_for_bit(tmp_path_factory, jobs):
    path = tmp_path_factory.mktemp("plain") / "jobs.csv"
    plain.write(path, jobs)
    assert_equal(plain.read(path), jobs)


def test_what_was_read_from_elsewhere_survives_with_its_speeds(sample, tmp_path):
    jobs = gavel.read(sample("gavel"))
    plain.write(tmp_path / "jobs.csv", jobs)
    again = plain.read(tmp_path / "jobs.csv")
    assert_equal(again, jobs)
    assert again.speeds["k80"] == {"ResNet-18 (batch size 16)": 0.25, "LM (batch size 5)": 0.25}


def test_the_file_is_as_short_as_it_can_be(tmp_path):
    jobs = workload("any", ["a"], [0.0], [8.0], ["bert"], duration_s=[192.0], iterations=[1000.0])
    assert plain.text(jobs) == (
        "id,submit_s,gpus,model,duration_s,iterations,iteration_s,load_s,compute_s,sync_s,startup_s,"
        "priority,kinds\n"
        f"a,0,8,bert,192,1000,{192 * 1.015 / 1000!r},0.0005,0.167,0.059,10,0,\n"
    )
    bare = workload("any", ["a"], [0.0], [8.0], ["unnamed"], duration_s=[192.0], startup_s=[0.0])
    assert plain.text(bare).splitlines()[1] == "a,0,8,,192,,,,,,,0,"


def test_four_columns_suffice(sample):
    """A job takes as long as its row says."""
    jobs = plain.read(sample("csv"), seed=9)
    assert jobs.ids == ("a", "b")
    assert jobs.submit_s.tolist() == [0.0, 5.5]
    assert jobs.gpus.tolist() == [1.0, 0.25]
    assert jobs.solo_s.tolist() == [60.0, 120.0]
    assert jobs.startup_s.tolist() == [0.0, 0.0]
    assert jobs.models == ("unnamed",)
    assert jobs.notes == (
        "no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 9",
        "no stages known for 2 jobs: schedulers that share GPUs run them alone; "
        "draw_models (--draw-models) gives every job a model that has stages",
        "1 of 2 jobs ask for a fraction of a GPU: "
        "each gets a whole one unless the cluster's slots_per_gpu is above 1",
    )


def test_models_are_drawn_if_asked_for(sample):
    jobs = plain.read(sample("csv"), seed=9, draw_models=True)
    first = profile(jobs.models[jobs.model[0]], 1)
    assert jobs.iteration_s[0] == first.iteration_ms * 1.015 / 1000
    assert jobs.stages_s[:, 0].tolist() == [ms / 1000 for ms in first.stages_ms]
    assert jobs.solo_s == pytest.approx([60.0, 120.0])
    assert jobs.startup_s[0] == startup_s(jobs.models[jobs.model[0]], 1)
    assert jobs.notes == (
        "no model in the trace for 2 jobs: drawn from the 8 measured ones with seed 9",
        "no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 9",
        "1 of 2 jobs ask for a fraction of a GPU: "
        "each gets a whole one unless the cluster's slots_per_gpu is above 1",
    )


def test_models_are_drawn_for_names_without_stages_too(sample):
    text = f"{HEADER},model,iteration_s,load_s,compute_s,sync_s\na,0,1,60,gpt9,,,,\nb,0,1,60,mine,1,1,0,0\n"
    jobs = plain.read(sample("csv", text), draw_models=True)
    assert jobs.models[jobs.model[0]] in MODELS
    assert jobs.models[jobs.model[1]] == "mine"
    assert jobs.notes[0].startswith("no model in the trace for 1 job")


def test_a_known_model_takes_as_long_as_its_row_says(sample):
    """Its iterations share the duration, its stages are those of the profile, stretched like them."""
    text = f"{HEADER},model,iterations,startup_s\na,0,1,60,bert,,\nb,0,1,60,bert,100,5\n"
    jobs = plain.read(sample("csv", text))
    assert jobs.solo_s == pytest.approx([60.0, 60.0], rel=1e-12)
    assert jobs.startup_s.tolist() == [0.0, 5.0]
    assert jobs.iteration_s.tolist() == [178 * 1.015 / 1000, 0.6]
    assert jobs.stages_s[:, 0].tolist() == [0.0005, 0.16, 0.0]
    assert jobs.stages_s[:, 1] == pytest.approx(np.array([0.0005, 0.16, 0.0]) * 0.6 / (0.178 * 1.015))


def test_single_fields_may_be_empty(sample):
    text = f"{HEADER},model,iterations,priority,kinds\na,0,1,60,bert,7,1,T4 | V100|\nb,1,1,60,,,,\n"
    jobs = plain.read(sample("csv", text), draw_models=True)
    assert jobs.models[jobs.model[0]] == "bert"
    assert jobs.iterations[0] == 7.0
    assert jobs.priority[0] == 1
    assert jobs.kinds == (("T4", "V100"), ())
    assert jobs.iterations[1] * jobs.iteration_s[1] == pytest.approx(60.0)
    assert [note.split(":")[0] for note in jobs.notes] == [
        "no model in the trace for 1 job",
        "no priority in the trace for 1 job",
    ]


def test_a_model_nobody_measured_brings_its_own_times(sample):
    text = f"{HEADER},model,iteration_s,load_s,compute_s,sync_s\na,0,1,60,mine,0.5,0.1,0.4,0\n"
    jobs = plain.read(sample("csv", text))
    assert jobs.models == ("mine",)
    assert jobs.iterations.tolist() == [120.0]
    assert jobs.stages_s[:, 0].tolist() == [0.1, 0.4, 0.0]


def test_a_job_of_no_time_is_left_out_unless_it_says_what_it_does(sample):
    text = f"{HEADER},iterations,model\na,0,1,0,,bert\nb,0,1,0,5,bert\nc,0,1,9,,\n"
    jobs = plain.read(sample("csv", text))
    assert jobs.ids == ("b", "c")
    assert jobs.solo_s[0] == pytest.approx(5 * 0.178 * 1.015)
    assert jobs.notes[0] == "1 of 3 jobs left out: they took 0 s"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\na,0,1,60\na,1,1,60\n", "line 3: id: 'a' is not unique: line 2 has it too"),
        (f"{HEADER}\n,0,1,60\n", "line 2: id: '' is not there: the field is empty"),
        (f"{HEADER}\na,-1,1,60\n", "line 2: submit_s: '-1' is not a number of 0 or more"),
        (f"{HEADER}\na,0,0,60\n", "line 2: gpus: '0' is not a number above 0"),
        (f"{HEADER}\na,0,1,-60\n", "line 2: duration_s: '-60' is not a number of 0 or more"),
        (f"{HEADER}\na,0,1,nan\n", "line 2: duration_s: 'nan' is not a number of 0 or more"),
        (f"{HEADER},priority\na,0,1,60,\nb,0,1,60,high\n", "line 3: priority: 'high' is not one of 0, 1"),
        (f"{HEADER},iterations\na,0,1,60,\nb,0,1,60,0\n", "line 3: iterations: '0' is not a number above 0"),
        (f"{HEADER},load_s\na,0,1,60,\nb,0,1,60,-1\n", "line 3: load_s: '-1' is not a number of 0 or more"),
        (
            f"{HEADER},model,load_s\na,0,1,60,gpt9,1\n",
            "line 2: model: 'gpt9' is not measured .*give its iteration_s",
        ),
        (f"{HEADER},speed_T4\na,0,1,60,0\n", "line 2: speed_T4: '0' is not a number above 0"),
        (
            f"{HEADER},model,speed_T4\na,0,1,60,bert,0.5\nb,0,1,60,bert,0.7\n",
            "line 3: speed_T4: '0.7' is not 0.5, as in another row of its model",
        ),
        ("id,submit_s,gpus\n", "line 1: no column 'duration_s'; found 'id,submit_s,gpus'"),
        (f"{HEADER},gpus\n", "line 1: column 'gpus' appears twice"),
    ],
)
def test_a_mistake_is_reported_with_its_line(sample, text, message):
    with pytest.raises(TraceError, match=message):
        plain.read(sample("csv", text))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    jobs = workload("any", ["a"], [0.0], [1.0], ["bert"], duration_s=[1.0])
    target = tmp_path / "jobs.csv"
    target.mkdir()
    with pytest.raises(InputError, match=r"jobs\.csv: exists and is not a file; choose another name"):
        plain.write(target, jobs)
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]


def test_a_write_makes_the_folder_and_leaves_no_partial_file(tmp_path):
    jobs = workload("any", ["a"], [0.0], [1.0], ["bert"], duration_s=[1.0])
    plain.write(tmp_path / "new" / "jobs.csv", jobs)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["jobs.csv"]


def test_extreme_numbers_survive(tmp_path):
    smallest, largest = math.ulp(0.0), 2.0**63 - 1024
    jobs = workload(
        "any",
        ["a", "b"],
        [smallest, 0.1 + 0.2],
        [1, 1],
        ["bert", "bert"],
        duration_s=[smallest, largest],
        iterations=[1, 1],
    )
    plain.write(tmp_path / "jobs.csv", jobs)
    assert_equal(plain.read(tmp_path / "jobs.csv"), jobs)
