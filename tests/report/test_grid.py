"""Grids on the page: one section for all points, and sections of points only if they are few."""

import json

from rota.cli import main
from rota.figures.grid_runs import MOST_POINTS
from rota.report.assemble import find, sections
from rota.report.grid import population_grid_section, trace_grid_section
from rota.results.run import read_head


def test_a_small_grid_is_summed_up_and_shown_point_by_point(make_grid, tmp_path):
    make_grid(2)
    whole, *points = sections(find([tmp_path / "grid"]))
    assert whole.title == "grid: load"
    assert whole.about.startswith("Simulated: 4 runs at 2 points; one seed each: no interval; each point is")
    assert [section.title for section in points] == [
        "by hand: 3 jobs on 2 GPUs, load=1",
        "by hand: 3 jobs on 3 GPUs, load=2",
    ]


def test_a_large_grid_is_one_section_that_says_how_to_see_a_point(make_grid, tmp_path):
    make_grid(MOST_POINTS + 1)
    (whole,) = sections(find([tmp_path / "grid"]))
    point = tmp_path / "grid" / "load=1"
    assert whole.about.endswith(
        "timelines and curves are shown of up to 12 points: "
        f"name folders of points, as in rota report {point}"
    )
    assert [block["type"] for block in whole.blocks] == ["chart", "chart", "chart", "table"]
    table = whole.blocks[-1]
    assert (len(table["rows"]), table["fold"]) == (2 * (MOST_POINTS + 1), 40)
    assert [section.title for section in sections(find([point]))] == [
        "grid: load",
        "by hand: 3 jobs on 2 GPUs, load=1",
    ]


def test_the_table_of_a_grid_has_a_column_per_parameter(make_grid, tmp_path):
    make_grid(2)
    whole = next(sections(find([tmp_path / "grid"])))
    table = whole.blocks[-1]
    assert [head["name"] for head in table["heads"][:3]] == ["scheduler", "load", "average JCT [s]"]
    # a, b and c take 14, 4 and 5 s under srtf; 10, 12 and 13 s under fifo
    assert [[cell[1] for cell in row[:3]] for row in table["rows"]] == [
        ["fifo", "1", "11.67"], ["srtf", "1", "7.67"], ["fifo", "2", "11.67"], ["srtf", "2", "7.67"],
    ]  # fmt: skip


def test_the_charts_of_a_grid_have_a_line_per_scheduler(make_grid, tmp_path):
    make_grid(2)
    jct, *_ = next(sections(find([tmp_path / "grid"]))).blocks
    assert jct["title"] == "Average JCT by load"
    assert [(line["name"], line["x"], line["y"]) for line in jct["lines"]] == [
        ("fifo", [1, 2], [11.667, 11.667]),
        ("srtf", [1, 2], [7.6667, 7.6667]),
    ]
    assert (list(jct["x"]["places"]), list(jct["x"]["names"])) == ([1.0, 2.0], ["1", "2"])


def test_who_is_best_at_how_many_points_is_said_first(make_grid, make_run, tmp_path):
    make_grid(2)
    make_run("fifo", under="grid/load=2", parameters={"workload.load": 2})  # as good as srtf there
    glance = next(sections(find([tmp_path / "grid"]))).glance
    assert (glance.winner, glance.says) == (
        "srtf", "completes jobs soonest on average, or within 0.5% of that, at 2 of 2 points",
    )  # fmt: skip
    assert [(name, text) for name, _, _, text in glance.bars] == [
        ("srtf", "best at 2"),
        ("fifo", "best at 1"),
    ]


def test_one_scheduler_is_told_by_its_range(make_run, fifo_rows, tmp_path):
    make_run("srtf", under="grid/load=1", parameters={"load": 1})
    make_run("srtf", fifo_rows, under="grid/load=2", parameters={"load": 2})
    runs = [read_head(tmp_path / "grid" / f"load={load}" / "srtf") for load in (1, 2)]
    glance = trace_grid_section(0, runs).glance
    assert glance.says == "has an average JCT of 7.67 s to 11.7 s"


def test_seeds_of_a_population_give_intervals(make_population):
    """Seeds 0 and 1 went alike: makespans of 40 s and 60 s, intervals of no width."""
    runs = [
        make_population("era", slower, seeds=2, parameters={"weather.noise": noise})
        for slower, noise in ((1.0, 0.0), (1.5, 0.5))
    ]
    section = population_grid_section(0, runs)
    makespan = section.blocks[0]
    interval, mean = makespan["lines"]
    assert (mean["y"], mean["faint"]) == ([40, 60], False)
    assert (interval["y"], interval["faint"]) == ([40, 40, None, 60, 60, None], True)
    assert "mean over 2 seeds, with its 95 % interval" in section.about


def test_categories_are_not_joined(make_run, tmp_path):
    for cost in ("interval", "restart"):
        make_run("srtf", under=f"grid/cost={cost}", parameters={"cost": cost})
    (line,) = next(sections(find([tmp_path / "grid"]))).blocks[0]["lines"]
    assert (line["x"], line["y"]) == ([0, None, 1, None], [7.6667, None, 7.6667, None])


def test_the_page_of_a_large_grid_is_small(make_grid, tmp_path, capsys):
    make_grid(MOST_POINTS + 1)
    assert main(["report", str(tmp_path / "grid"), "--out", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert [section["id"] for section in data["sections"]] == ["grid-0"]
