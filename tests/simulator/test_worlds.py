"""Worlds: windows of traces on clusters sized by contention, with histories; schedulers compared on them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.cli import main
from rota.core.errors import ConfigError, InputError
from rota.library.bench_schedulers import bench
from rota.policies.cluster.gittins import BINS, TOTAL, Gittins, bin_of
from rota.policies.cluster.las import Las
from rota.policies.cluster.learned import SHIPPED
from rota.results.world_ratios import WorldResult, ratios, text
from rota.simulator.jobs import engine_for
from rota.simulator.windows import contention, sized
from rota.simulator.worlds import WorldSettings, build, parts_by_group, read_worlds
from rota.workload.history import with_history
from rota.workload.jobs import workload
from rota.workload.plain import write


def jobs(*rows, group=None, name="by hand"):
    """Rows of (submit, gpus, seconds)."""
    submit_s, gpus, seconds = zip(*rows, strict=True)
    ids = [f"j{number}" for number in range(len(rows))]
    return workload(
        name,
        ids,
        submit_s,
        gpus,
        ["m"] * len(rows),
        duration_s=seconds,
        group=group,
        startup_s=[0.0] * len(rows),
    )


FOUR = jobs(*[(0, 8, 100)] * 4)


def nodes(count):
    return rota.Cluster.uniform(count, 8)


def test_contention_is_the_mean_completion_time_in_times_alone():
    # On one node they end after 100, 200, 300 and 400 s, on two after 100, 100, 200 and 200.
    assert [contention(FOUR, nodes(count)) for count in (1, 2, 4)] == [2.5, 1.5, 1.0]


@pytest.mark.parametrize(("wanted", "count"), [(1.5, 2), (1.6, 2), (2.4, 1)])
def test_the_cluster_is_that_with_the_nearest_contention(wanted, count):
    assert sized(FOUR, wanted) == nodes(count)


def test_there_is_no_cluster_where_no_contention_is_near():
    assert sized(FOUR, 9.0) is None


SETTINGS = WorldSettings(windows=3, jobs=(40, 60), seed=7)


def traces():
    found = [rota.synthetic_trace(jobs=150, gpus=64, load=0.9, seed=seed) for seed in (1, 2)]
    return [replace(jobs, name=f"made-{number}") for number, jobs in enumerate(found)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("worlds") / "w"
    build(traces(), out, SETTINGS)
    return out


def test_worlds_are_read_as_they_were_drawn(folder):
    worlds = list(read_worlds(folder))
    assert [world.facts.name for world in worlds] == [f"made-{t}-{n}" for t in range(2) for n in range(3)]
    for world in worlds:
        facts = world.facts
        assert 40 <= len(world.jobs) == facts.jobs <= 60
        assert world.jobs.submit_s[0] == 0.0
        assert world.jobs.gpus.max() <= 32
        assert abs(np.log(facts.measured / facts.contention)) <= 0.25
        assert contention(world.jobs, world.cluster) == facts.measured
        assert world.cluster.slots == 8 * facts.nodes
        assert len(world.jobs.history or ()) == facts.history


def test_a_history_has_the_jobs_that_had_ended_before_and_no_others(folder):
    by_name = {trace.name: trace for trace in traces()}
    histories = 0
    for world in read_worlds(folder):
        trace = by_name[world.facts.family]
        trace = trace.take(np.flatnonzero(trace.gpus <= 32))
        began_s = trace.submit_s[world.facts.first]
        ended = trace.submit_s + trace.solo_s <= began_s
        ended[world.facts.first :] = False
        found = world.jobs.history.solo_s if world.jobs.history else np.zeros(0)
        np.testing.assert_allclose(np.sort(found), np.sort(trace.solo_s[ended]))
        histories += len(found)
    assert histories > 0


def test_worlds_that_are_there_are_kept_and_others_are_drawn_as_before(folder):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    (folder / "made-1-2.json").unlink()
    stays = (folder / "made-0-0.csv").stat().st_mtime_ns
    build(traces(), folder, SETTINGS)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert (folder / "made-0-0.csv").stat().st_mtime_ns == stays


def test_other_settings_need_another_folder(folder):
    with pytest.raises(InputError, match="drawn in another way; give another folder"):
        build(traces(), folder, replace(SETTINGS, seed=8))


def test_groups_can_be_traces_of_their_own():
    parts = parts_by_group(jobs((0, 1, 5), (1, 1, 6), (2, 1, 7), group=["a", "b", "b"]), 2)
    assert [(part.name, part.solo_s.tolist()) for part in parts] == [("by hand-b", [6.0, 7.0])]


@pytest.mark.parametrize("wrong", [{"jobs": (9, 3)}, {"contentions": (1.0,)}, {"windows": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match="worlds: "):
        WorldSettings(**wrong)


# histories


def test_gittins_counts_the_history_once_by_group_and_gang_size():
    # Of the history, one job is of the group and gang size of j0; one has another size, one another group.
    before = jobs((0, 1, 100), (0, 2, 100), (0, 1, 9), group=["a", "a", "z"])
    work = with_history(jobs((0, 1, 50), (5, 1, 50), group=["a", "b"]), before)
    policy, cluster = Gittins(), rota.Cluster.uniform(1, 1)
    engine = engine_for(work, cluster, policy.needs)
    for number, view in enumerate(engine):
        engine.commit(policy.plan(view))
        if number == 1:
            break
    seen = engine.snapshot().arrays["own_groups"]
    own = int(engine.table[15, 0])
    assert (seen[TOTAL, own], seen[bin_of(100.0), own], seen[TOTAL, -1]) == (1.0, 1.0, 3.0)
    assert seen[:BINS, -1].sum() == 3.0
    assert seen[bin_of(100.0), -1] == 2.0


def test_predictions_begin_with_the_history():
    # Three jobs of 1,000 s came before: (1 × ln 3600 + 3 × ln 1000) ÷ 4 is the mean of all.
    work = jobs((0, 1, 50), (5, 1, 50), (9, 1, 50), group=["a", "a", "b"])
    work = with_history(work, jobs(*[(0, 1, 1000)] * 3, group=["a"] * 3))
    engine = engine_for(work, rota.Cluster.uniform(1, 1), durations=rota.Durations("predicted"))
    of_all = (np.log(3600.0) + 3 * np.log(1000.0)) / 4
    of_a = (3 * np.log(1000.0) + 2 * of_all) / 5
    assert engine.advance()
    np.testing.assert_allclose(np.log(engine.table[17]), [of_a, of_a, of_all])


# ratios


def result(world, scheduler, jct_s, level=2.0, family="f"):
    return WorldResult(world, family, level, scheduler, "none", jct_s, jct_s, jct_s, 1.0)


def test_ratios_are_geometric_means_over_worlds_with_intervals():
    names, worlds = ("tiresias", "mine", "srtf"), (("u", 2.0, (10, 5, 5)), ("v", 3.0, (10, 20, 5)))
    found = ratios(
        result(world, name, jct_s, level)
        for world, level, times in worlds
        for name, jct_s in zip(names, times, strict=True)
    )
    own = {(r.part, r.baseline): r for r in found if r.scheduler == "mine" and r.measure == "avg_jct_s"}
    everywhere = own["all", "tiresias"]
    assert (everywhere.worlds, everywhere.mean) == (2, pytest.approx(1.0))  # √(0.5 × 2)
    assert everywhere.low < 1.0 < everywhere.high
    assert own["contention 2", "tiresias"].mean == pytest.approx(0.5)
    assert own["all", "srtf"].mean == pytest.approx(2.0)
    assert "mine" in text(found)


def test_the_commands_draw_worlds_and_compare_schedulers_on_them(tmp_path, capsys):
    worlds = str(tmp_path / "w")
    assert main(["trace", "worlds", "--synthetic", "2", "--quick", "--out", worlds]) == 0
    assert "contention" in capsys.readouterr().out
    compare = ["bench-schedulers", "--worlds", worlds, "--schedulers", "las", "--json"]
    assert main([*compare, "--figure", str(tmp_path / "bench.png")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert {row["scheduler"]: row["knows"] for row in first["results"]} == {
        "las": "none", "tiresias": "none", "srtf": "exact",
    }  # fmt: skip
    assert (tmp_path / "bench.png").stat().st_size > 10_000
    assert main(compare) == 0  # from what was kept
    assert json.loads(capsys.readouterr().out) == first
    assert all(row["low"] is None for row in first["ratios"] if row["worlds"] == 1)
    assert main([*compare, "--quick", "--set", "durations=noisy"]) == 0  # the short form
    found = json.loads(capsys.readouterr().out)["results"]
    assert {row["knows"] for row in found if row["scheduler"] == "srtf"} == {"noisy"}


def test_results_that_were_kept_are_those_of_a_world_of_this_name(tmp_path, folder):
    first = next(iter(read_worlds(folder)))
    other = replace(first, facts=replace(first.facts, name="another"))
    policies, file = {"las": Las()}, tmp_path / "bench.json"
    for each in (first, other):
        (found,) = bench([each], policies, rota.Durations("none"), file)
        assert found.world == each.facts.name


def test_lookahead_is_compared_by_default(tmp_path, capsys):
    worlds = str(tmp_path / "w")
    assert main(["trace", "worlds", "--synthetic", "1", "--quick", "--out", worlds]) == 0
    capsys.readouterr()
    assert main(["bench-schedulers", "--worlds", worlds, "--json"]) == 0
    names = {row["scheduler"] for row in json.loads(capsys.readouterr().out)["results"]}
    assert {"lookahead", "learned", "tiresias", "srtf"} <= names


def test_that_no_world_could_be_drawn_is_an_error(tmp_path, capsys):
    trace = tmp_path / "one.csv"
    write(trace, FOUR)
    assert main(["trace", "worlds", str(trace), "--by-group", "--out", str(tmp_path / "w")]) == 2
    assert "trace worlds: none could be drawn" in capsys.readouterr().err


def test_the_short_form_of_durations_takes_a_flag_over_it(tmp_path, capsys):
    file = tmp_path / "one.toml"
    file.write_text('durations = "exact"\nschedulers = ["srtf"]\n[workload.synthetic]\njobs = 20\n')
    command = ["simulate", str(file), "--durations", "noisy", "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    assert '"knows": "noisy"' in capsys.readouterr().out


def test_a_folder_of_an_agent_starts_at_the_folder_of_the_file(tmp_path, capsys):
    shutil.copytree(SHIPPED["none"], tmp_path / "agent")
    file = tmp_path / "one.toml"
    text = 'durations = "none"\nschedulers = ["learned"]\n[workload.synthetic]\njobs = 20\n'
    file.write_text(text + '[options.learned]\nagent = "agent"\n')
    assert main(["simulate", str(file), "--out", str(tmp_path / "out")]) == 0
    (made,) = (tmp_path / "out").rglob("config.toml")
    assert main(["simulate", str(made), "--out", str(tmp_path / "again")]) == 0


def test_schedules_are_learned_in_one_process(capsys):
    assert main(["learn", "config/learn/schedule.toml", "--workers", "2"]) == 2
    assert "learn in one process" in capsys.readouterr().err


def test_a_folder_without_worlds_is_named(tmp_path, capsys):
    assert main(["bench-schedulers", "--worlds", str(tmp_path)]) == 2
    assert "has no worlds.json; make it with rota trace worlds" in capsys.readouterr().err
