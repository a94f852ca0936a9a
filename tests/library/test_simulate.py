"""`rota.simulate`, and what a run gives."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import rota
from rota.core.policy import Needs
from rota.library.run import Run
from rota.policies.cluster.learned import CorrectionWeights, write_agent
from rota.policies.cluster.srtf import Srtf
from rota.results.metrics import measure
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload


def same(a: Run, b: Run) -> bool:
    return a.timeline.equals(b.timeline)


def test_it_is_the_simulation_of_the_inner_parts(jobs, cluster, run):
    done = simulate(jobs, cluster, Srtf())
    assert np.array_equal(run.record.timeline().events, done.timeline.events)
    assert run.metrics == measure(done.timeline, jobs, cluster).metrics
    assert (run.scheduler, run.cluster) == ("srtf", cluster)


def test_a_scheduler_is_a_name_a_class_an_object_or_in_a_file(jobs, cluster, aging, aging_file):
    by_object = rota.simulate(jobs, cluster, aging(2.0))
    assert by_object.scheduler == "aging"
    assert same(by_object, rota.simulate(jobs, cluster, aging, options={"patience": 2.0}))
    assert same(by_object, rota.simulate(jobs, cluster, f"{aging_file}:Aging", options={"patience": 2}))
    assert not same(by_object, rota.simulate(jobs, cluster, aging(0.0)))
    assert same(rota.simulate(jobs, cluster, aging(0.0)), rota.simulate(jobs, cluster, Srtf()))


def test_names_of_rotas_own_classes_are_those_of_the_registry(jobs, cluster):
    from rota.policies.cluster.antman import AntMan

    assert rota.simulate(jobs, cluster, AntMan()).scheduler == "antman"


def test_the_cost_model_can_be_chosen(jobs, cluster):
    restart, interval = (rota.simulate(jobs, cluster, "srtf", cost=cost) for cost in ("restart", "interval"))
    assert interval.metrics.avg_jct_s > restart.metrics.avg_jct_s  # start-ups are paid at every event
    losing = rota.simulate(jobs, cluster, "srtf", checkpoint_every_s=3600.0)
    assert losing.metrics.avg_jct_s > restart.metrics.avg_jct_s


@dataclass(frozen=True)
class NoNeeds:
    def plan(self, view):
        raise AssertionError


class NoPlan(rota.Scheduler):
    pass


class OtherPlan(rota.Scheduler):
    def plan(self):
        raise AssertionError


class Srtf2(rota.Scheduler):
    name = "srtf"

    def plan(self, view):
        raise AssertionError


class Mine(rota.Scheduler):
    def plan(self, view):
        return view.first_fit(view.order)


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        ("srft", "unknown scheduler 'srft'. Did you mean 'srtf'"),
        (NoNeeds(), "NoNeeds: is not a scheduler: it has no 'needs'; derive it from rota.Scheduler"),
        (NoPlan, r"NoPlan: is not a scheduler: it has no plan; write def plan\(self, view\)"),
        (
            OtherPlan(),
            r"OtherPlan: is not a scheduler: plan has the wrong arguments; write def plan\(self, view\)",
        ),
        (Srtf2(), "Srtf2: is named 'srtf', like a scheduler of rota"),
        (3, "int: is not a scheduler: it has no plan"),
    ],
)
def test_what_is_not_a_scheduler_is_told_what_it_lacks(jobs, cluster, scheduler, said):
    with pytest.raises(rota.RotaError, match=said):
        rota.simulate(jobs, cluster, scheduler)


def test_a_class_that_is_no_dataclass_has_no_options(jobs, cluster):
    assert rota.simulate(jobs, cluster, Mine).scheduler == "mine"
    with pytest.raises(rota.RotaError, match="Mine has no options, since it is not a dataclass"):
        rota.simulate(jobs, cluster, Mine, options={"patience": 1})


def test_what_is_given_in_the_wrong_place_is_said(jobs, cluster):
    with pytest.raises(rota.RotaError, match=r"jobs are a str; give a rota\.Workload"):
        rota.simulate("philly.csv", cluster, "srtf")
    with pytest.raises(rota.RotaError, match="the cluster is a int"):
        rota.simulate(jobs, 8, "srtf")
    with pytest.raises(rota.RotaError, match="unknown cost 'free'"):
        rota.simulate(jobs, cluster, "srtf", cost="free")
    with pytest.raises(rota.RotaError, match="srtf is an object, which has its options"):
        rota.simulate(jobs, cluster, Srtf(), options={"placement": "spread"})


# Frames


def test_a_frame_of_jobs_has_a_row_for_each(run, jobs):
    assert run.jobs.index.tolist() == list(jobs.ids)
    assert run.jobs["jct_s"].equals(run.jobs["end_s"] - run.jobs["submit_s"])
    assert run.jobs["jct_s"].mean() == run.metrics.avg_jct_s
    assert run.jobs["preemptions"].sum() == run.metrics.preemptions > 0
    assert run.jobs["model"].tolist() == [jobs.models[number] for number in jobs.model]


def test_a_frame_of_events_tells_the_whole_story(cluster):
    jobs = rota.synthetic_trace(jobs=2, gpus=1, seed=0)
    run = rota.simulate(jobs, cluster, "fifo")
    first = run.timeline.iloc[:2]
    assert first["event"].tolist() == ["arrived", "started"]
    assert first["job"].tolist() == ["0", "0"]
    assert first["slots"].tolist() == [(), (0,)]
    assert first["node"].isna().all()
    assert np.isnan(first["iteration_s"].iloc[0])
    assert first["iteration_s"].iloc[1] == jobs.iteration_s[0]


def test_events_of_the_frame_are_those_of_the_run(run):
    events = run.timeline
    assert (events["event"] == "preempted").sum() >= run.metrics.preemptions
    assert (events["event"] == "finished").sum() == len(run.jobs)
    left = events.loc[events["event"] == "preempted", "remaining"]
    assert (left > 0).all()
    assert events.loc[events["event"] != "preempted", "remaining"].isna().all()
    ends = events[events["event"] == "finished"].set_index("job")["at_s"]
    assert ends[run.jobs.index.tolist()].tolist() == run.jobs["end_s"].tolist()


def test_nodes_that_leave_are_in_the_events(tmp_path, jobs):
    file = tmp_path / "cluster.toml"
    file.write_text('nodes = 2\nchanges = [{at_s = 5000, node = 1, what = "leave"}]\n')
    run = rota.simulate(jobs.head(20), rota.Cluster.from_toml(file), "srtf")
    lost = run.timeline[run.timeline["event"] == "node_lost"]
    assert lost["node"].tolist() == [1]
    assert lost["job"].isna().all()
    assert run.series("available").iloc[-1] == 8


def test_series_add_up_to_the_metrics(run):
    busy, available = run.series("busy"), run.series("available")
    held_s = np.diff(busy.index)
    assert np.sum(busy.iloc[:-1] * held_s) / np.sum(available.iloc[:-1] * held_s) == pytest.approx(
        run.metrics.utilisation
    )
    assert run.series("utilisation").equals((busy / available).rename("utilisation"))
    assert run.series("waiting").iloc[-1] == run.series("running").iloc[-1] == 0
    with pytest.raises(rota.RotaError, match="unknown series 'load'"):
        run.series("load")


# Folders, figures and pages


def test_a_run_that_was_saved_is_loaded_without_any_difference(tmp_path, run):
    again = rota.load(run.save(tmp_path / "run"))
    assert_frame_equal(again.jobs, run.jobs, check_exact=True)
    assert_frame_equal(again.timeline, run.timeline, check_exact=True)
    for name in ("utilisation", "waiting", "running", "busy", "available"):
        assert again.series(name).equals(run.series(name))
    for name in ("metrics", "cluster", "scheduler", "wall_s", "config"):
        assert getattr(again, name) == getattr(run, name)
    assert np.array_equal(again.record.timeline().slots, run.record.timeline().slots)
    files = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    again.save(str(tmp_path / "again"))
    assert files == {file.name: file.read_bytes() for file in (tmp_path / "again").iterdir()}


def test_a_folder_with_another_run_is_not_overwritten(tmp_path, run, jobs, cluster):
    other = rota.simulate(jobs, cluster, "fifo")
    other.save(tmp_path)
    before = rota.load(tmp_path).metrics
    with pytest.raises(rota.RotaError, match="holds another run; choose another folder"):
        run.save(tmp_path)
    assert rota.load(tmp_path).metrics == before
    other.save(tmp_path)  # the same once more


def test_a_run_shows_itself(run):
    assert repr(run) == "Run('srtf', 120 jobs on 16 GPUs)"
    assert str(run).splitlines()[1].startswith("srtf ")
    text = run._repr_html_()
    assert text.count("<tr>") == 2
    assert "<td>srtf</td>" in text
    assert text.count("<th>") == text.count("<td>") == 10


@pytest.mark.parametrize("name", ["gantt", "jct", "load", "comparison"])
def test_figures_are_matplotlibs(run, name):
    from matplotlib.figure import Figure

    figure = run.plot(name)
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_figures_are_written_in_the_format_of_their_name(tmp_path, run, suffix, magic):
    file = tmp_path / f"chart.{suffix}"
    run.plot("gantt", file, window_s=(0.0, 3600.0))
    assert file.read_bytes().startswith(magic)


def test_a_figure_of_another_format_is_refused(tmp_path, run):
    with pytest.raises(rota.RotaError, match=r"a figure is written as \.png, \.svg, \.pdf"):
        run.plot("jct", tmp_path / "chart.docx")
    assert not list(tmp_path.iterdir())
    with pytest.raises(rota.RotaError, match=r"unknown figure 'gant'\. Did you mean 'gantt'"):
        run.plot("gant")


def test_a_report_is_a_page(tmp_path, run):
    file = run.report(tmp_path / "run.html", title="Mine & yours")
    text = file.read_text()
    assert "<title>Mine &amp; yours" in text
    data = text[text.index('{"title":') :]
    assert json.JSONDecoder().raw_decode(data)[0]["sections"][0]["kind"] == "schedulers"


# Workloads and clusters


def test_parts_and_variants_of_a_workload(jobs):
    since_s = jobs.submit_s - jobs.submit_s[0]
    part = jobs.between(1000.0, 20000.0)
    assert len(part) == np.count_nonzero((since_s >= 1000.0) & (since_s < 20000.0)) > 0
    fast = jobs.scale_load(4.0)
    assert np.allclose(fast.submit_s - fast.submit_s[0], since_s / 4.0)
    assert np.array_equal(fast.solo_s, jobs.solo_s)
    with pytest.raises(rota.RotaError, match=r"no job is submitted from 1e\+09 to 2e\+09 s"):
        jobs.between(1e9, 2e9)
    with pytest.raises(rota.RotaError, match="cannot be scaled by 0"):
        jobs.scale_load(0)


def test_a_workload_as_a_frame(jobs):
    frame = jobs.to_frame()
    assert frame.index.tolist() == list(jobs.ids)
    assert frame["submit_s"].tolist() == jobs.submit_s.tolist()
    assert (frame["iterations"] * frame["iteration_s"]).tolist() == jobs.solo_s.tolist()
    assert "synthetic-1: 120 jobs" in jobs._repr_html_()


def test_a_cluster_of_several_kinds():
    cluster = rota.Cluster.of(v100=8, p100=20, per_node=8, speeds={"v100": {"default": 2.0}})
    assert [(node.kind, node.slots) for node in cluster.nodes] == [
        ("v100", 8), ("p100", 8), ("p100", 8), ("p100", 4)
    ]  # fmt: skip
    assert cluster.speed("bert", "v100") == 2.0
    assert rota.Cluster.of({"A100-80GB": 2}).kinds == ("A100-80GB",)
    with pytest.raises(rota.RotaError, match="0 GPUs of kind v100"):
        rota.Cluster.of(v100=0)


def test_a_cluster_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[cluster]\nnodes = 3\ngpus_per_node = 4\n[workload]\ntrace = 'x.csv'\n")
    assert rota.Cluster.from_toml(str(file)) == rota.Cluster.uniform(nodes=3, gpus=4)
    file.write_text("nodes = 3\ngpus = 4\n")
    with pytest.raises(rota.RotaError, match=r"mine\.toml: unknown key 'gpus'"):
        rota.Cluster.from_toml(file)


def test_a_policy_that_needs_memory_of_its_own_says_so(jobs, cluster):
    class Counting(rota.Scheduler):
        @property
        def needs(self):
            return Needs(own=("seen",))

        def plan(self, view):
            view.columns[-1, view.order] += 1.0
            return view.first_fit(view.rank(-view.columns[-1]))

    assert len(rota.simulate(jobs, cluster, Counting()).jobs) == len(jobs)


def test_a_script_without_a_guard_compares_in_processes(tmp_path):
    """The code of the design, in a file as a user writes it."""
    script = tmp_path / "script.py"
    script.write_text(
        """
from dataclasses import dataclass
import rota

jobs = rota.synthetic_trace(jobs=30, gpus=16)
cluster = rota.Cluster.uniform(nodes=2, gpus=8)

@dataclass(frozen=True)
class Aging(rota.Scheduler):
    patience: float = 0.1
    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))

run = rota.simulate(jobs, cluster, Aging(2.0))
found = rota.compare(jobs, cluster, ["fifo", "srtf", Aging(2.0)], workers=2)
assert found["aging"].timeline.equals(run.timeline)
print(*found.to_frame()["scheduler"])
"""
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fifo srtf aging\n", "")


def test_rows_have_every_metric(run):
    assert run.row() == {
        "scheduler": "srtf",
        **asdict(run.metrics),
        "wall_s": run.wall_s,
        "knows": "exact",
    }


UNEQUAL = rota.Cluster.of(k80=1, a100=1, speeds={"k80": {"default": 0.2}, "a100": {"default": 2.0}})


def an_hour():
    return workload("one", ["a"], [0.0], [1], ["m"], duration_s=[3600.0], startup_s=[0.0])


def test_types_say_which_gpus_are_preferred():
    found = {types: rota.simulate(an_hour(), UNEQUAL, "fifo", types=types) for types in ("fastest", "blind")}
    assert {types: run.metrics.avg_jct_s for types, run in found.items()} == {
        "fastest": 1800.0,
        "blind": 18000.0,
    }
    assert found["fastest"].record.inputs != found["blind"].record.inputs
    assert '[placement]\ntypes = "blind"' in found["blind"].config
    assert rota.simulate(an_hour(), UNEQUAL, "fifo").record.inputs == found["fastest"].record.inputs
    compared = rota.compare(an_hour(), UNEQUAL, ["fifo", "srtf"], types="blind")
    assert [run.metrics.avg_jct_s for run in compared.runs] == [18000.0, 18000.0]


def test_types_that_are_not_known_are_named():
    said = "unknown types 'slowest'. Known: fastest, advantage, blind"
    with pytest.raises(rota.RotaError, match=said):
        rota.simulate(an_hour(), UNEQUAL, "fifo", types="slowest")
    with pytest.raises(rota.RotaError, match=said):
        rota.compare(an_hour(), UNEQUAL, ["fifo"], types="slowest")


def test_a_speed_of_a_model_that_no_job_has_is_warned_of():
    typo = rota.Cluster.of(gpu=1, speeds={"gpu": {"restnet50": 2.0}})
    with pytest.warns(UserWarning, match=r"cluster.speeds.gpu: unknown model 'restnet50'"):
        rota.simulate(an_hour(), typo, "fifo")
    with pytest.raises(rota.RotaError, match="unknown device kind 'gpus'"):
        rota.Cluster.of(gpu=1, speeds={"gpus": {"m": 2.0}})


def digest_with(jobs, cluster, name, **options):
    return rota.simulate(jobs, cluster, name, options=options).record.inputs


def test_what_a_run_follows_from_has_the_files_of_its_agent(tmp_path, jobs, cluster):
    found = []
    for seed in (1, 1, 2):
        write_agent(tmp_path, CorrectionWeights.new(2, seed), "exact", {})
        found.append(digest_with(jobs, cluster, "learned", agent=str(tmp_path)))
    assert found[0] == found[1] != found[2]


def test_what_a_run_follows_from_has_the_files_of_what_it_previews(jobs, cluster, aging_file):
    found = []
    for comment in ("", "", "# changed\n"):
        aging_file.write_text(aging_file.read_text() + comment)
        found.append(digest_with(jobs, cluster, "lookahead", candidates=["srtf", f"{aging_file}:Aging"]))
    assert found[0] == found[1] != found[2]
