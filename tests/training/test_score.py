"""How fast this machine trains: measured in earnest, but for a moment only."""

import multiprocessing
import sys
import time
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest
import torch

from rota.core.cluster import own_cores
from rota.core.errors import ConfigError, InputError
from rota.core.processes import WorkerLost
from rota.training import score
from rota.training.clock import ProfiledClock, StoppedClock
from rota.training.hyper import Hyperparameters
from rota.training.score import RUNS, Benchmark, Bundle, MeasuredBundle, check_fits, measure, measure_apart
from rota.training.setup import Setup

ONE = Bundle("CPU", 1)
QUICK = Benchmark(model="feedforward1", batch_size=16, seconds=0.25)
SMALL = Setup(model="feedforward1", hyper=Hyperparameters(batch_size=16), device="cpu")


def test_the_score_is_the_median_and_the_spread_lies_between_the_quartiles():
    measured = MeasuredBundle((10.0, 50.0, 20.0, 40.0, 30.0), 0.0, "a machine")
    assert (measured.score, measured.spread) == (30.0, 20.0)  # quartiles 20 and 40


def test_the_runs_are_as_long_as_asked_and_their_rates_are_what_was_trained():
    trainers, at_s, steps = [], [], []

    def note():
        at_s.append(time.perf_counter())
        steps.append(trainers[0].progress.steps)

    class Watched(Benchmark):
        def trainer(self, bundle):
            trainers.append(super().trainer(bundle))
            return trainers[0]

    measured = measure(Watched(model="feedforward1", batch_size=16, seconds=0.5), ONE, note)
    assert len(at_s) == 1 + RUNS  # the first is to get warm
    assert steps[0] >= score.WARM_STEPS
    took_s = [after - before for before, after in pairwise(at_s)]
    trained = [16 * (after - before) for before, after in pairwise(steps)]
    for rate, seconds, images in zip(measured.rates, took_s, trained, strict=True):
        assert images / seconds < rate <= images / 0.1  # a run takes a fifth of the time, or a little longer
    assert min(measured.rates) <= measured.score <= max(measured.rates)
    assert 0.0 <= measured.waited <= 1.0
    assert trainers[0].network.training


def test_a_rate_is_images_by_the_clock():
    fingerprint = SMALL.trainer(StoppedClock(), seed=0).structure.fingerprint
    trainer = SMALL.trainer(ProfiledClock({(fingerprint, 16): 0.125}), seed=0, length=score.ENDLESS)
    assert score._run(trainer, 1.0) == 128.0  # 8 steps of 0.125 s, 16 images each
    assert trainer.progress.steps == 8
    assert score._run(trainer, 0.1, at_least=3) == 128.0
    assert trainer.progress.steps == 11


def test_a_loss_that_is_not_a_number_is_an_error_and_not_a_score():
    trainer = SMALL.trainer(StoppedClock(), seed=0, length=score.ENDLESS)
    torch.nn.init.constant_(next(trainer.network.parameters()), float("nan"))
    with pytest.raises(InputError, match="the benchmark cannot be trained: the loss is nan at step 1"):
        score._run(trainer, 1.0)


def test_a_run_is_at_least_one_step_however_short_it_is_to_be():
    measured = measure(Benchmark(model="feedforward1", seconds=1e-9), ONE)
    assert len(measured.rates) == RUNS
    assert min(measured.rates) > 0.0


def test_it_is_measured_in_a_process_of_its_own_with_the_threads_of_the_bundle():
    before = torch.get_num_threads()
    runs = []
    measured = measure_apart(QUICK, ONE, lambda: runs.append(multiprocessing.active_children()))
    assert len(measured.rates) == RUNS
    assert measured.device.endswith(", 1 thread")
    assert len(runs) == 1 + RUNS
    assert all(runs)
    assert torch.get_num_threads() == before
    assert not multiprocessing.active_children()


@pytest.fixture
def endless(monkeypatch, tmp_path):
    """A bundle whose process reports one run and goes on; it starts fast, for it imports nothing."""
    code = (
        "import time\n\ndef serve(benchmark, bundle, rank, line):\n    line.send(None)\n    time.sleep(60)\n"
    )
    (tmp_path / "endless_bundle.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(score, "_serve", import_module("endless_bundle").serve)
    yield SimpleNamespace(device="CPU", core=1)
    del sys.modules["endless_bundle"]


def test_a_process_that_is_interrupted_is_not_left_behind(endless):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_apart(None, endless, stop)
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_an_error(endless):
    def end():
        for process in multiprocessing.active_children():
            process.kill()
            process.join()

    with pytest.raises(WorkerLost, match="a bundle of 1 CPU: the process that measured it died"):
        measure_apart(None, endless, end)


def test_what_is_wrong_in_the_process_is_told_here(monkeypatch, tmp_path):
    monkeypatch.setenv("ROTA_DATA", str(tmp_path))
    with pytest.raises(InputError, match="cifar100: not here"):
        measure_apart(Benchmark(data="cifar100"), ONE)


def test_a_machine_that_is_shared_shows_in_the_time_waited():
    """Of threads that are more than the processors, each has to wait; Python's own lock is not counted."""
    before = score._waits_s()
    over = Event()
    sums = torch.ones(200_000)

    def work():
        while not over.is_set():
            sums.sum()  # outside Python's lock

    threads = [Thread(target=work) for _ in range(4 * len(own_cores()))]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    after = score._waits_s()
    over.set()
    for thread in threads:
        thread.join()
    waited_s = max((wait_s - before.get(name, 0.0) for name, wait_s in after.items()), default=0.0)
    counted = Path("/proc/self/schedstat").exists()  # or else the kernel does not count
    assert (waited_s > 0.05) == counted


def test_a_batch_may_be_larger_than_the_data():
    assert measure(Benchmark(model="feedforward1", batch_size=3000, seconds=1e-9), ONE).score > 0.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "resnet81"}, "unknown model 'resnet81'. Did you mean 'resnet8'?"),
        ({"model": "a2c"}, "model 'a2c': takes no images; give one of convnet, convnet2"),
        ({"data": "digit"}, "unknown data set 'digit'. Did you mean 'digits'?"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"seconds": 0.0}, "seconds is 0; it must be above 0"),
        ({"seconds": float("nan")}, "seconds is nan; it must be above 0"),
        ({"seconds": float("inf")}, "seconds is inf; it must be above 0"),
    ],
)
def test_what_cannot_be_measured_is_told_before_anything_is_begun(values, message):
    with pytest.raises(ConfigError) as caught:
        Benchmark(**values)
    assert message in str(caught.value)


def test_a_bundle_must_fit_into_this_machine():
    there = len(own_cores())
    check_fits(Bundle("CPU", there))
    says = f"a bundle of 9999 CPU: this machine has {there} cores; give {there} or"
    with pytest.raises(InputError, match=says):
        check_fits(Bundle("CPU", 9999))
    gpus = torch.cuda.device_count()
    fix = f"give {gpus} or fewer" if gpus else "leave it out"
    with pytest.raises(InputError, match=f"this machine has {gpus} GPUs that PyTorch sees; {fix}"):
        check_fits(Bundle("GPU", gpus + 1))
