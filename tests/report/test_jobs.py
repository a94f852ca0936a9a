"""Runs of jobs: the table, the curves and the bars, by numbers that were worked out by hand."""

import pytest

from rota.core.cluster import Cluster, NodeChange
from rota.core.timeline import EventKind
from rota.figures.groups import groups
from rota.report.jobs import comparison, completion, glance, jobs_section, nodes_of
from rota.report.timelines import job_bars, unpacked


def test_the_table_has_the_figures_of_merit(two_runs):
    block = comparison(groups(two_runs)[0])
    fifo, srtf = block["rows"]
    # a: 0–14, b: 2–6, c: 4–9; a waits 4 s, c 2 s; the slots are busy for 14 and 7 of 14 s
    assert [cell[1] for cell in srtf] == [
        "srtf", "7.67", "5.00", "14.00", "14.00", "2.00", "75.0%", "1.05", "1", "1.000",
    ]  # fmt: skip
    # fairness: a has 2 slots for 27 of 28 GPU-seconds asked for, b for 14 of 8, c for 14 of 10
    assert srtf[7][0] == pytest.approx((14 / 10 + 4 / (4 * 14 / 8) + 5 / (3 * 14 / 10)) / 3)
    assert srtf[1][0] == pytest.approx(23 / 3)
    # a: 0–10, b: 2–14, c: 4–17; b waits 8 s, c 10 s
    assert [cell[1] for cell in fifo[:6]] == ["fifo", "11.67", "12.00", "13.00", "17.00", "6.00"]
    assert block["heads"][1]["name"] == "average JCT [s]"
    assert len(block["colours"]) == 2


def test_who_completes_jobs_soonest_is_told_first(two_runs):
    found = glance(groups(two_runs)[0])
    assert (found.winner, found.says) == (
        "srtf",
        "completes a job after 7.67 s on average, the soonest of all",
    )
    assert found.others == "fifo takes 52% longer"  # 35 / 23
    assert [(name, text) for name, _, _, text in found.bars] == [("srtf", "7.67 s"), ("fifo", "11.7 s")]
    assert found.won


def test_a_run_alone_has_not_won_anything(make_run):
    found = glance(groups([make_run("srtf")])[0])
    assert found.says == "completes a job after 7.67 s on average"
    assert (found.others, list(found.bars), found.won) == ("", [], False)


def test_completion_rises_from_nothing_to_all(two_runs):
    from rota.figures.jobs import jct_curves

    fifo, srtf = completion(jct_curves(groups(two_runs)[0]))["lines"]
    assert srtf["x"] == [4, 4, 5, 14]
    assert srtf["y"] == [0, 0.33333, 0.66667, 1]
    assert fifo["x"] == [10, 10, 12, 13]


def test_bars_are_by_slot_and_start(make_run):
    found = job_bars(make_run("srtf"))
    assert found["tick_s"] == pytest.approx(1e-6)
    assert found["bars"] == 5
    columns = unpacked(found)
    seconds = [round(at * 1e-6) for at in columns["instants"]]
    assert seconds == [0, 2, 4, 6, 9, 14]
    bars = [
        (seconds[start], seconds[start + length], "abc"[job], height)
        for start, length, job, height in zip(
            *(columns[name].tolist() for name in ("start", "length", "item", "height")), strict=True
        )
    ]
    # on slot 0: a, then b on both slots, then c, then a, which moved; on slot 1: a
    assert bars == [(0, 2, "a", 1), (2, 6, "b", 2), (6, 9, "c", 1), (9, 14, "a", 1), (6, 9, "a", 1)]
    assert columns["counts"].tolist() == [4, 1]
    assert columns["of"].tolist() == [1] * 5


def test_what_happened_to_each_job_is_told_in_order(make_run):
    columns = unpacked(job_bars(make_run("srtf")))
    assert columns["events"].tolist() == [6, 3, 3]
    kinds = [EventKind(kind).name for kind in columns["event_kind"][:6].tolist()]
    assert kinds == ["ARRIVED", "STARTED", "PAUSED", "STARTED", "MOVED", "FINISHED"]
    seconds = (columns["instants"][columns["event_at"][:6]] * 1e-6).round().tolist()
    assert seconds == [0, 0, 2, 6, 9, 14]
    values = columns["values"][columns["event_value"][:6]].tolist()
    assert values[2] == 80.0  # eight of ten iterations are left, in percent
    assert values[1] == 1.0  # a second per iteration


def test_a_slot_that_is_shared_is_cut_into_parts(make_run):
    rows = [
        (0, EventKind.ARRIVED, 0, (), 0),
        (0, EventKind.STARTED, 0, (0,), 1),
        (2, EventKind.ARRIVED, 1, (), 0),
        (2, EventKind.STARTED, 1, (0, 1), 1),
        (4, EventKind.ARRIVED, 2, (), 0),
        (4, EventKind.STARTED, 2, (1,), 1),
        (6, EventKind.FINISHED, 1, (), 0),
        (7, EventKind.FINISHED, 2, (), 0),
        (10, EventKind.FINISHED, 0, (), 0),
    ]
    found = job_bars(make_run("mine", rows))
    columns = unpacked(found)
    names = ("start", "length", "item", "place", "of")
    bars = list(zip(*(columns[name].tolist() for name in names), strict=True))
    seconds = [round(at * found["tick_s"]) for at in columns["instants"]]
    seen = [(seconds[s], seconds[s + n], "abc"[job], place, of) for s, n, job, place, of in bars]
    assert seen == [
        (0, 2, "a", 0, 1), (2, 6, "a", 0, 2), (2, 6, "b", 1, 2), (6, 10, "a", 0, 1),
        (2, 4, "b", 0, 1), (4, 6, "b", 0, 2), (4, 6, "c", 1, 2), (6, 7, "c", 0, 1),
    ]  # fmt: skip


def test_a_node_that_is_away_is_told(make_run):
    from dataclasses import replace

    cluster = replace(Cluster.uniform(2, 1), changes=(NodeChange(5.0, 1, False),))
    rows = [
        (0, EventKind.ARRIVED, 0, (), 0),
        (0, EventKind.STARTED, 0, (0,), 1),
        (2, EventKind.ARRIVED, 1, (), 0),
        (4, EventKind.ARRIVED, 2, (), 0),
        (5, EventKind.NODE_LOST, 1, (), 0),
        (10, EventKind.FINISHED, 0, (), 0),
        (10, EventKind.STARTED, 1, (0,), 1),
        (14, EventKind.FINISHED, 1, (), 0),
        (14, EventKind.STARTED, 2, (0,), 1),
        (17, EventKind.FINISHED, 2, (), 0),
    ]
    columns = unpacked(job_bars(make_run("mine", rows, cluster=cluster)))
    away = [columns["instants"][columns[name]].item() * 1e-6 for name in ("away_start", "away_end")]
    assert away == pytest.approx([5.0, 17.0])
    assert columns["away_node"].tolist() == [1]


def test_nodes_have_names_and_slots():
    assert nodes_of(Cluster.uniform(2, 4)) == [["node 0", 4], ["node 1", 4]]


def test_a_section_says_what_it_is(two_runs, make_run):
    worked_on: list[str] = []
    section = jobs_section(0, groups(two_runs)[0], worked_on.append)
    assert section.title == "by hand: 3 jobs on 2 GPUs"
    assert section.about == "Simulated: 2 schedulers on the same jobs; 1 node with 2 slots"
    assert [block["type"] for block in section.blocks] == ["table", "timeline", "chart", "chart", "chart"]
    assert worked_on == ["fifo", "srtf"]
    timeline = section.blocks[1]
    assert timeline["runs"][timeline["first"]]["name"] == "srtf"  # the best is shown first


def test_what_was_run_for_real_is_not_called_simulated(make_run):
    section = jobs_section(0, groups([make_run("srtf", command="rota run jobs.toml --out x")])[0])
    assert section.title == "by hand: 3 jobs on 2 GPUs, real run"
    assert section.about.startswith("Real run: one scheduler")


def test_failed_jobs_are_told_and_are_not_in_completion_times(make_run):
    rows = [
        (0, EventKind.ARRIVED, 0, (), 0),
        (0, EventKind.STARTED, 0, (0,), 1),
        (2, EventKind.ARRIVED, 1, (), 0),
        (4, EventKind.ARRIVED, 2, (), 0),
        (4, EventKind.STARTED, 2, (1,), 1),
        (7, EventKind.FINISHED, 2, (), 0),
        (8, EventKind.FAILED, 0, (), 5),
        (8, EventKind.STARTED, 1, (0, 1), 1),
        (12, EventKind.FINISHED, 1, (), 0),
    ]
    (group,) = groups([make_run("srtf", rows)])
    block = comparison(group)
    names = [head["name"] for head in block["heads"]]
    assert names[-4:] == ["failures", "lost [GPU h]", "goodput", "availability"]
    assert [cell[1] for cell in block["rows"][0]][-4:] == ["1", "0.00", "45.8%", "100.0%"]  # 11 of 24 GPU s
    assert [cell[1] for cell in block["rows"][0]][1:4] == ["6.50", "6.50", "10.00"]  # b: 10 s, c: 3 s
    assert block["rows"][0][names.index("failed")][1] == "1 of 3"
    assert glance(group).says == "completes a job after 6.50 s on average; 1 of 3 jobs failed"
    columns = unpacked(job_bars(group.runs[0].run))
    assert columns["values"][columns["event_value"][2]] == 50.0  # five of ten iterations, in percent


def test_a_run_in_which_no_job_has_finished_has_not_won(make_run):
    lost = [
        (4 + job, kind, job, slots, 1)
        for job in range(3)
        for kind, slots in (
            (EventKind.ARRIVED, ()),
            (EventKind.STARTED, (0, 1)[: 1 + job % 2]),
            (EventKind.FAILED, ()),
        )
    ]
    (group,) = groups([make_run("srtf", lost)])
    assert glance(group).says == "no job has finished"
    assert [block["type"] for block in jobs_section(0, group).blocks] == [
        "table",
        "timeline",
        "chart",
        "chart",
    ]
    (both,) = groups([make_run("srtf", lost), make_run("fifo")])
    assert (glance(both).winner, glance(both).won) == ("fifo", False)
