"""The readers of traces that say only when, how large and how long; numbers worked out by hand."""

import pytest

from rota.core.errors import TraceError
from rota.workload.profiles import MODELS
from rota.workload.public import read_alibaba, read_azure, read_helios, read_philly


def test_philly_is_sorted_and_begins_with_its_earliest_job(sample):
    jobs = read_philly(sample("philly"), seed=5)
    assert jobs.name == "philly"
    assert jobs.ids == ("1", "0")  # their places in the file
    assert jobs.submit_s.tolist() == [0.0, 2932.0]  # 06:13:03 to 07:01:55 is 48 min 52 s
    assert jobs.gpus.tolist() == [4.0, 1.0]
    assert jobs.duration_s.tolist() == [2951.0, 66.0]
    assert jobs.solo_s.tolist() == [2951.0, 66.0]
    assert jobs.startup_s.tolist() == [0.0, 0.0]
    assert jobs.notes == (
        "no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 5",
        "no stages known for 2 jobs: schedulers that share GPUs run them alone; "
        "draw_models (--draw-models) gives every job a model that has stages",
    )


def test_models_are_drawn_if_asked_for(sample):
    jobs = read_philly(sample("philly"), 5, draw_models=True)
    assert jobs.solo_s == pytest.approx([2951.0, 66.0])
    assert set(jobs.models) <= set(MODELS)
    assert (jobs.startup_s >= 4.0).all()
    assert jobs.notes == (
        "no model in the trace for 2 jobs: drawn from the 8 measured ones with seed 5",
        "no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 5",
    )


def test_azure_begins_at_zero(sample):
    jobs = read_azure(sample("azure"))
    assert jobs.ids == ("f60b", "fd9f")
    assert jobs.submit_s.tolist() == [0.0, 6.0]
    assert jobs.gpus.tolist() == [1.0, 8.0]
    assert jobs.duration_s.tolist() == [1265.0, 2066.0]


def test_helios_leaves_out_cpu_jobs_and_jobs_of_no_time(sample):
    jobs = read_helios(sample("helios"))
    assert jobs.ids == ("12",)
    assert jobs.submit_s.tolist() == [0.0]
    assert jobs.gpus.tolist() == [8.0]
    assert jobs.duration_s.tolist() == [3600.0]
    assert jobs.notes[:2] == (
        "1 of 3 jobs left out: they use no GPU",
        "1 of 2 jobs left out: they took 0 s",
    )


def test_alibaba_fractions_kinds_priorities_and_durations(sample):
    jobs = read_alibaba(sample("alibaba"))
    assert jobs.ids == ("pod-0", "pod-1", "pod-2")
    assert jobs.submit_s.tolist() == [0.0, 50.0, 60.0]
    assert jobs.gpus.tolist() == [1.0, 0.25, 8.0]
    assert jobs.duration_s.tolist() == [900.0, 1000.0, 100.0]  # the last never scheduled: from its creation
    assert jobs.priority.tolist() == [0, 1, 1]
    assert jobs.kinds == ((), ("V100M16", "V100M32"), ())
    assert jobs.notes == (
        "1 of 5 jobs left out: they use no GPU",
        "1 of 5 jobs left out: they have no deletion time, so no duration",
        "1 job never scheduled: the duration counts from the creation",
        "no stages known for 3 jobs: schedulers that share GPUs run them alone; "
        "draw_models (--draw-models) gives every job a model that has stages",
        "1 of 3 jobs ask for a fraction of a GPU: "
        "each gets a whole one unless the cluster's slots_per_gpu is above 1",
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("philly", "66.0,1,", "x,1,", r"philly.csv: line 2: duration: 'x' is not a number"),
        ("philly", "66.0,1,", "-1,1,", "line 2: duration: '-1' is not a number of 0 or more"),
        ("philly", "66.0,1,", "nan,1,", "line 2: duration: 'nan' is not a number of 0 or more"),
        ("philly", "2951.0,4", "inf,4", "line 3: duration: 'inf' is not a number of 0 or more"),
        ("philly", "2951.0,4", "1e999,4", "line 3: duration: '1e999' is not a number of 0 or more"),
        ("philly", "2951.0,4", "2951.0,0", "line 3: num_gpus: '0' is not a number of 1 or more"),
        ("philly", "2951.0,4", "2951.0,1.5", "line 3: num_gpus: '1.5' is not a whole number"),
        (
            "philly",
            "2017-10-09 06:13:03",
            "soon",
            "line 3: timestamp: 'soon' is not a time like 2017-10-09 07:01:55",
        ),
        ("philly", "2017-10-09 06:13:03", "", "line 3: timestamp: '' is not a time like"),
        ("philly", "06:13:03", "06:13:03+01:00", r"line 3: timestamp: .*\+01:00' is not a time like"),
        ("azure", "5016", "-5", "line 3: submission_time: '-5' is not a number of 0 or more"),
        ("azure", "fd9f", "f60b", "line 3: job_id: 'f60b' is not unique: line 2 has it too"),
        ("azure", "fd9f", " ", "line 3: job_id: ' ' is not there: the field is empty"),
        ("helios", "12,uB", "12,u,B", "line 3: 13 fields; expected 12"),
        ("helios", "vcA,8,", "vcA,-8,", "line 3: gpu_num: '-8' is not a number of 0 or more"),
        ("helios", "2020-04-01 00:00:10", "2020-13-01 00:00:10", "line 3: submit_time: .* is not a time"),
        ("alibaba", "1,250", "1,2500", "line 3: gpu_milli: '2500' is not between 1 and 1000"),
        ("alibaba", ",LS,", ",GOLD,", "line 2: qos: 'GOLD' is not one of LS, Guaranteed, BE, Burstable"),
        ("alibaba", "100,1100,200", "100,110,200", "line 2: deletion_time: '110' is not at or after 200"),
        ("alibaba", "pod-1,", "pod-0,", "line 3: name: 'pod-0' is not unique: line 2 has it too"),
    ],
)
def test_a_mistake_is_reported_with_file_line_field_and_what_was_expected(
    sample, rows, name, old, new, message
):
    assert old in rows[name]
    path = sample(name, rows[name].replace(old, new, 1))
    reader = {"philly": read_philly, "azure": read_azure, "helios": read_helios, "alibaba": read_alibaba}[
        name
    ]
    with pytest.raises(TraceError, match=message):
        reader(path)


def test_lines_after_the_ones_left_out_keep_their_number(sample, rows):
    path = sample("helios", rows["helios"].replace(",0,0\n", ",x,0\n"))
    with pytest.raises(TraceError, match="line 4: duration: 'x' is not a number"):
        read_helios(path)


def test_a_trace_of_which_nothing_is_left_says_why(sample, rows):
    only_cpu = "\n".join(rows["helios"].splitlines()[:2]) + "\n"
    with pytest.raises(TraceError, match=r"no jobs in it .*\(1 of 1 jobs left out: they use no GPU\)"):
        read_helios(sample("helios", only_cpu))


def test_another_seed_draws_other_models(sample, rows):
    lines = rows["azure"].splitlines()[:1] + [f"j{n},{n},60,1" for n in range(50)]
    path = sample("azure", "\n".join(lines))
    first, second = read_azure(path, 1, draw_models=True), read_azure(path, 2, draw_models=True)
    assert read_azure(path, 1, draw_models=True).model.tolist() == first.model.tolist()
    assert [first.models[m] for m in first.model] != [second.models[m] for m in second.model]
    assert first.priority.tolist() != second.priority.tolist()
