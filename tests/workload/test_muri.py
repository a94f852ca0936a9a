import pytest

from rota.core.errors import TraceError
from rota.workload.public import read_muri


def test_milliseconds_become_seconds_bit_for_bit(sample):
    jobs = read_muri(sample("muri"))
    assert jobs.ids == ("0", "1")
    assert jobs.submit_s.tolist() == [0.0, 2.0]
    assert jobs.iterations.tolist() == [100.0, 50.0]
    assert jobs.iteration_s.tolist() == [490 * 1.015 / 1000, 214 * 1.015 / 1000]
    assert jobs.duration_s.tolist() == [49.0, 10.7]
    assert jobs.stages_s.T.tolist() == [[0.446, 0.008, 0.0], [0.082, 0.075, 0.066]]
    assert jobs.priority.tolist() == [1, 0]
    assert jobs.models == ("dqn", "vgg16")
    assert jobs.startup_s.tolist() == [5.0, 9.0]
    assert jobs.notes == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,100,dqn", "0,0,dqn", "line 2: iterations: '0' is not a number above 0"),
        ("446,8,0,1", "446,8,0,2", "line 2: priority: '2' is not one of 0, 1"),
        ("1,8,2000", "0,8,2000", "line 3: job_id: '0' is not unique: line 2 has it too"),
        (",dqn,", ",,", "line 2: model_name: '' is not there: the field is empty"),
    ],
)
def test_a_mistake_is_reported_with_its_line(sample, rows, old, new, message):
    with pytest.raises(TraceError, match=message):
        read_muri(sample("muri", rows["muri"].replace(old, new, 1)))
