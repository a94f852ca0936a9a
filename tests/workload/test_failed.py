"""What traces say about failures: attempts and states of jobs; numbers worked out by hand."""

import json

import pytest

from rota.core.errors import TraceError
from rota.workload.formats import read
from rota.workload.plain import write
from rota.workload.public import read_helios, read_log

ACME = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
a,u,1,8,96,Other,FAILED,2023-03-01 08:00:00+08:00,,,60,0,480
b,u,1,1,12,Eval,COMPLETED,2023-03-01 00:00:30+00:00,,,30,0,30
c,u,1,1,12,Eval,CANCELLED,2023-03-01 08:01:00+08:00,,,90,0,90
d,u,2,16,12,Eval,NODE_FAIL,2023-03-01 08:02:00+08:00,,,90,0,90
"""


def attempt(start, end, *gpus):
    detail = [{"ip": f"m{node}", "gpus": [f"gpu{i}" for i in range(n)]} for node, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


PHILLY_LOG = [
    {
        "status": "Failed", "vc": "v", "jobid": "tried", "user": "u", "submitted_time": "2017-10-07 01:00:00",
        "attempts": [
            attempt("2017-10-07 01:10:00", "2017-10-07 01:20:00", 8, 8),
            attempt("2017-10-07 01:20:30", "2017-10-07 01:20:45", 8, 4),
            attempt("2017-10-07 02:00:00", "2017-10-07 03:00:00", 8, 8),
        ],
    },
    {
        "status": "Pass", "vc": None, "jobid": "passed", "user": "u", "submitted_time": "2017-10-07 00:59:00",
        "attempts": [attempt("2017-10-07 00:59:10", "2017-10-07 00:59:50", 1)],
    },
    {"status": "Killed", "jobid": "never", "submitted_time": "2017-10-07 00:00:00", "attempts": []},
    {
        "status": "Killed", "vc": "v", "jobid": "open", "user": "u", "submitted_time": "2017-10-07 00:00:00",
        "attempts": [attempt("2017-10-07 00:59:10", None, 1)],
    },
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    def make(text, name="trace.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


def test_helios_and_acme_say_which_jobs_had_failed(sample, file):
    assert read_helios(sample("helios")).failed == (True,)
    jobs = read(file(ACME))
    assert jobs.ids == ("a", "b", "c", "d")
    assert jobs.submit_s.tolist() == [0.0, 30.0, 60.0, 120.0]  # whatever the time zone
    assert jobs.failed == (True, False, False, True)
    assert jobs.failed_after_s == ()


def test_a_log_of_philly_says_how_long_each_attempt_took(file):
    jobs = read(file(json.dumps(PHILLY_LOG), "cluster_job_log"), seed=3)
    assert jobs.ids == ("passed", "tried")
    assert jobs.submit_s.tolist() == [0.0, 60.0]
    assert jobs.gpus.tolist() == [1.0, 16.0]
    assert jobs.duration_s.tolist() == [40.0, 600.0 + 15.0 + 3600.0]
    assert jobs.failed_after_s == ((), (600.0, 15.0))
    assert jobs.failed == (False, True)
    assert jobs.notes[:2] == (
        "1 of 4 jobs left out: they have no attempt on GPUs",
        "1 of 3 jobs left out: they took 0 s",
    )


def test_parts_of_a_trace_keep_what_failed(file):
    jobs = read_log(file(json.dumps(PHILLY_LOG)))
    tried = jobs.between(30.0, 100.0)
    assert (tried.ids, tried.failed, tried.failed_after_s) == (("tried",), (True,), ((600.0, 15.0),))
    assert jobs.scaled(0.5).failed_after_s == ((), (300.0, 7.5))
    assert jobs.recorded_failures.begin.tolist() == [0, 0, 2]
    assert jobs.recorded_failures.after_s.tolist() == [600.0, 15.0]
    assert jobs.recorded_failures.for_good.tolist() == [0, 1]


def test_rota_s_own_format_says_the_same(file, tmp_path):
    jobs = read_log(file(json.dumps(PHILLY_LOG)))
    write(tmp_path / "copy.csv", jobs)
    copy = read(tmp_path / "copy.csv")
    assert copy.failed_after_s == jobs.failed_after_s
    assert copy.failed == jobs.failed
    none = read(file("id,submit_s,gpus,duration_s,failed_after_s,failed\na,0,1,60,,\nb,0,1,60,,0\n"))
    assert (none.failed_after_s, none.failed) == ((), ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2", "is not JSON"),
        ("[1, 2]", "job 1: TypeError: 'int' object is not subscriptable; expected jobid"),
        ('[{"status": "Pass", "jobid": "a", "attempts": []}]', "job 1: KeyError: 'submitted_time'; expected"),
        ("id,submit_s,gpus,duration_s,failed_after_s\na,0,1,60,5|-1\n", "numbers above 0, joined by a bar"),
        ("id,submit_s,gpus,duration_s,failed_after_s\na,0,1,60,soon\n", "numbers above 0, joined by a bar"),
        ("id,submit_s,gpus,duration_s,failed\na,0,1,60,maybe\n", "one of 0, 1"),
    ],
)
def test_what_cannot_be_is_said(file, text, says):
    with pytest.raises(TraceError, match=says):
        read(file(text))
