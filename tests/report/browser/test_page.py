"""The page in a real Chromium: it is drawn, sorted, zoomed into and pointed at, and never complains."""

import re

import pytest

from rota.cli import main
from rota.core.timeline import EventKind

CANVAS = ".timeline canvas"
RANGE = "document.querySelector('.range').textContent"
DRAWN = "document.querySelector('.timeline').dataset.run"
HOSTILE = '</script><img src=x onerror="document.title=1">'


@pytest.fixture
def jobs_page(tmp_path, two_runs):
    out = tmp_path / "jobs.html"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(out)]) == 0
    return out


@pytest.fixture
def whole_page(tmp_path, two_runs, make_population, make_agent, placement_agent, evaluated):
    """Everything that there can be."""
    for name, slower in (("fifo", 1.5), ("learned", 1.0)):
        make_population(name, slower)
    make_population("fifo", 1.4, command="rota run local.toml --out x")
    make_agent("joint", 0)
    make_agent("joint", 1)
    out = tmp_path / "all.html"
    assert main(["report", str(tmp_path), "--out", str(out)]) == 0
    return out


def text_of(page, selector):
    return page.script(f"[...document.querySelectorAll({selector!r})].map(each => each.textContent)")


def over(page, share_x, share_y):
    """Where a part of the canvas is, once it is in sight and drawn."""
    page.box(CANVAS)
    page.until(DRAWN)
    box = page.box(CANVAS)
    return box["x"] + share_x * box["width"], box["y"] + share_y * box["height"]


def test_what_won_is_said_first(open_page, jobs_page):
    page = open_page(jobs_page)
    assert text_of(page, "h1") == ["by hand: 3 jobs on 2 GPUs"]
    assert text_of(page, ".card p") == [
        "srtf completes a job after 7.67 s on average, the soonest of all.",
        "fifo takes 52% longer.",
    ]


def test_a_click_on_a_head_sorts_and_another_turns_round(open_page, jobs_page):
    page = open_page(jobs_page)
    names = ".table-block tbody th"
    assert text_of(page, names) == ["fifo", "srtf"]
    page.click(".table-block thead th:nth-child(2) button")
    assert text_of(page, names) == ["srtf", "fifo"]
    assert page.script("document.querySelector('.table-block th:nth-child(2)').ariaSort") == "ascending"
    page.click(".table-block thead th:nth-child(2) button")
    assert text_of(page, names) == ["fifo", "srtf"]
    page.click(".table-block thead th:nth-child(7) button")  # of utilisation, the most is the best
    assert page.script("document.querySelectorAll('.table-block [aria-sort]').length") == 1
    assert page.script("document.querySelector('.table-block th:nth-child(7)').ariaSort") == "descending"
    assert text_of(page, names) == ["srtf", "fifo"]


def test_the_best_of_each_column_is_marked(open_page, jobs_page):
    page = open_page(jobs_page)
    marked = "(row => [...row.cells].flatMap((cell, i) => cell.classList.contains('best') ? [i] : []))"
    best = f"[...document.querySelectorAll('.table-block tbody tr')].map{marked}"
    assert page.script(best) == [[3, 8], [1, 2, 4, 5, 6, 7]]


def test_the_wheel_zooms_at_the_pointer_and_a_double_click_shows_all(open_page, jobs_page):
    page = open_page(jobs_page)
    at = over(page, 0.9, 0.5)
    assert page.script(RANGE) == "all 14 s, 5 bars"
    page.mouse("mouseWheel", *at, deltaX=0, deltaY=-300)
    page.until(f"{RANGE}.includes('–')")
    low, high = (float(part) for part in re.findall(r"[\d.]+", page.script(RANGE))[:2])
    assert high - low < 8
    assert high > 13  # the pointer was far to the right
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            page.mouse(kind, *at, button="left", clickCount=count)
    page.until(f"{RANGE} === 'all 14 s, 5 bars'")


def test_dragging_pans_and_buttons_and_keys_zoom(open_page, jobs_page):
    page = open_page(jobs_page)
    over(page, 0.5, 0.5)
    page.click(".tools button")  # +
    page.until(f"{RANGE} === '3.5 – 10.5 s of 14 s'")
    x, y = over(page, 0.2, 0.5)
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x + 800, y, button="left", buttons=1)
    page.mouse("mouseReleased", x + 800, y, button="left")
    page.until(f"{RANGE} === '0 – 7 s of 14 s'")
    page.script(f"document.querySelector({CANVAS!r}).focus()")
    page.press("ArrowRight")
    page.until(f"!{RANGE}.startsWith('0 ')")
    page.press("+")
    page.press("0")
    page.until(f"{RANGE} === 'all 14 s, 5 bars'")


def test_a_bar_says_what_it_is_and_why_it_is_there(open_page, jobs_page):
    page = open_page(jobs_page)
    at = over(page, 0.3, 0.5)  # at about 3.5 s: b, on both slots
    page.mouse("mouseMoved", *at)
    page.until("!document.getElementById('tip').hidden")
    text = page.script("document.getElementById('tip').textContent")
    assert text.startswith("bvgg16, 2 GPUs; 4 s alone")
    for part in (
        "node 0, slot 0–1", "2 – 6 s: for 4 s", "1 s per iteration",
        "started at once; before it: a, preempted by it", "finished",
        "srtf: the job with the least time left",
    ):  # fmt: skip
        assert part in text
    page.mouse("mouseMoved", 2, 2)
    page.until("document.getElementById('tip').hidden")


def test_fingers_point_pan_and_zoom(open_page, jobs_page):
    page = open_page(jobs_page)
    x, y = over(page, 0.3, 0.5)
    page.touch([(x, y)])
    page.until("!document.getElementById('tip').hidden")
    assert page.script("document.querySelector('#tip b').textContent") == "b"
    page.touch(*([(x - step, y), (x + 50 + step, y)] for step in range(0, 100, 10)))
    page.until(f"{RANGE}.includes('–')")
    before = page.script(RANGE)
    page.touch(*([(x - step, y)] for step in range(0, 100, 10)))
    page.until(f"{RANGE} !== {before!r}")


def test_a_job_that_was_paused_says_what_it_waited_for(open_page, jobs_page):
    page = open_page(jobs_page)
    page.mouse("mouseMoved", *over(page, 0.12, 0.3))  # at about 1 s: a, before it makes way
    page.until("!document.getElementById('tip').hidden")
    text = page.script("document.getElementById('tip').textContent")
    assert "paused with 80% left; preempted by b" in text
    page.mouse("mouseMoved", *over(page, 0.55, 0.85))  # at about 7 s on slot 1: a again
    page.until("document.getElementById('tip').textContent.includes('resumed')")
    text = page.script("document.getElementById('tip').textContent")
    assert "resumed after waiting 4 s (paused with 80% left); before it: b, finished" in text
    assert "migrated to other slots" in text


def test_arrow_keys_go_from_bar_to_bar(open_page, jobs_page):
    page = open_page(jobs_page)
    over(page, 0.5, 0.5)
    page.script(f"document.querySelector({CANVAS!r}).focus()")
    first = "document.querySelector('#tip b').textContent"
    seen = []
    for _ in range(4):
        page.press("ArrowRight", shift=True)
        page.until("!document.getElementById('tip').hidden")
        seen.append(page.script(first))
    page.press("ArrowDown", shift=True)
    assert seen == ["a", "b", "c", "a"]
    assert "slot 1" in page.script("document.getElementById('tip').textContent")


def test_another_run_can_be_chosen(open_page, jobs_page):
    page = open_page(jobs_page)
    over(page, 0.5, 0.5)
    assert page.script(DRAWN) == "srtf"
    choose = "(e => { e.value = '0'; e.dispatchEvent(new Event('change')); })"
    page.script(f"{choose}(document.querySelector('.tools select'))")
    page.until(f"{DRAWN} === 'fifo' && {RANGE} === 'all 17 s, 3 bars'")


def test_what_is_drawn_is_what_there_is(open_page, jobs_page):
    """The pixels of the canvas: b is on both slots, a on the first, nobody on the second."""
    page = open_page(jobs_page)
    over(page, 0.5, 0.5)
    page.until("document.querySelector('.timeline').dataset.drawn === '5'")
    pixel = (
        "(x, y) => { const c = document.querySelector('.timeline canvas'), head = 22;"
        " const [left, top] = [Math.round(x * c.width), Math.round(head + y * (c.height - head))];"
        " return [...c.getContext('2d').getImageData(left, top, 1, 1).data.slice(0, 3)]; }"
    )
    bert, vgg16, idle = [0x77, 0xAA, 0xDD], [0xEE, 0x88, 0x66], [0xF1, 0xF1, 0xEF]
    assert page.script(f"({pixel})(0.12, 0.2)") == bert
    assert page.script(f"({pixel})(0.12, 0.8)") == idle
    assert page.script(f"({pixel})(0.40, 0.3)") == page.script(f"({pixel})(0.40, 0.8)") == vgg16
    assert page.script(f"({pixel})(0.95, 0.2)") == bert


def test_a_line_can_be_hidden_and_followed(open_page, jobs_page):
    page = open_page(jobs_page)
    box = page.box(".chart svg")
    lines = "document.querySelector('.chart svg').querySelectorAll('.line').length"
    assert page.until(lines) == 2
    page.mouse("mouseMoved", box["x"] + box["width"] * 0.8, box["y"] + 60)
    page.until("!document.getElementById('tip').hidden")
    assert "srtf" in page.script("document.getElementById('tip').textContent")
    page.click(".legend button")
    page.until(f"{lines} === 1")
    assert page.script("document.querySelector('.legend button').ariaPressed") == "false"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
def test_everything_fits_light_and_dark_wide_and_narrow(open_page, whole_page, width, dark):
    page = open_page(whole_page, width=width, dark=dark)
    count = page.script("document.querySelectorAll('main > section').length")
    # at a glance, jobs, two of populations, fidelity, evaluation, comparison, two of learning
    assert count == 9
    for number in range(count):
        page.box(f"main > section:nth-of-type({number + 1})")
    assert page.script("document.documentElement.scrollWidth") <= width
    paper = page.script("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(23, 24, 27)" if dark else "rgb(255, 255, 255)")


def test_on_an_ordinary_screen_all_columns_of_the_comparison_are_in_sight(open_page, tmp_path, make_run):
    for name in ("fifo", "muri-l-worst-order"):
        make_run(name, wall_s=1000.0)
    out = tmp_path / "wide.html"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(out)]) == 0
    page = open_page(out, width=1300)
    assert (
        page.script("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.table-block .scroll'))")
        == 0
    )


def test_the_switch_turns_light_into_dark_and_bars_with_it(open_page, jobs_page):
    page = open_page(jobs_page)
    over(page, 0.5, 0.5)
    corner = (
        "[...document.querySelector('.timeline canvas').getContext('2d').getImageData(300, 30, 1, 1).data]"
    )
    light = page.script(corner)
    page.click("#theme")
    assert page.script("getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 27)"
    page.until(f"JSON.stringify({corner}) !== {str(light).replace(' ', '')!r}")
    assert page.script("document.getElementById('theme').textContent") == "☀ Light"


def test_paper_is_light(open_page, jobs_page):
    page = open_page(jobs_page, dark=True)
    over(page, 0.5, 0.5)
    corner = (
        "[...document.querySelector('.timeline canvas').getContext('2d').getImageData(120, 80, 1, 1).data]"
    )
    dark = page.script(corner)
    page.script("dispatchEvent(new Event('beforeprint'))")
    assert page.script(corner)[:3] == [0xF1, 0xF1, 0xEF]
    page.script("dispatchEvent(new Event('afterprint'))")
    assert page.script(corner) == dark


def test_probabilities_are_shown_with_what_the_agent_does(open_page, whole_page):
    page = open_page(whole_page)
    assert text_of(page, ".heat:first-child td") == ["10", "60", "20", "30", "70", "10"]
    assert text_of(page, ".heat:first-child td.chosen") == ["60", "70"]


def test_an_interval_of_a_trial_says_what_became_of_it(open_page, whole_page):
    page = open_page(whole_page)
    canvas = "#population-0 .timeline canvas"
    page.box(canvas)
    page.until("document.querySelector('#population-0 .timeline').dataset.run")
    box = page.box(canvas)
    page.mouse("mouseMoved", box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"])
    page.until("!document.getElementById('tip').hidden")
    text = page.script("document.getElementById('tip').textContent")
    assert "trial 0" in text
    assert "of 2 trials" in text
    assert "was done" in text


def test_names_are_only_names(open_page, tmp_path, make_run):
    make_run("srtf", ids=(HOSTILE, "b", "c"), models=(HOSTILE, "x"))
    out = tmp_path / "hostile.html"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(out), "--title", HOSTILE]) == 0
    page = open_page(out)
    page.mouse("mouseMoved", *over(page, 0.12, 0.3))
    page.until("!document.getElementById('tip').hidden")
    assert page.script("document.querySelector('#tip b').textContent") == HOSTILE
    assert page.script("document.title") == HOSTILE
    assert page.script("document.images.length") == 0


def test_a_node_that_is_away_says_so(open_page, tmp_path, make_run):
    from dataclasses import replace

    from rota.core.cluster import Cluster, NodeChange

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
    make_run("mine", rows, cluster=cluster)
    out = tmp_path / "away.html"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(out)]) == 0
    page = open_page(out)
    page.mouse("mouseMoved", *over(page, 0.8, 0.85))
    page.until("!document.getElementById('tip').hidden")
    assert page.script("document.getElementById('tip').textContent") == "node 1 is not there5 – 17 s"


def test_without_scripts_it_says_so(jobs_page):
    assert "<noscript>" in jobs_page.read_text("utf-8")


@pytest.fixture
def grid_page(tmp_path, make_grid):
    """42 runs at 21 points."""
    make_grid(21)
    out = tmp_path / "grid.html"
    assert main(["report", str(tmp_path / "grid"), "--out", str(out)]) == 0
    return out


def test_a_large_table_is_folded_and_sorted_as_a_whole(open_page, grid_page):
    page = open_page(grid_page)
    rows = "document.querySelectorAll('.table-block tbody tr').length"
    assert page.script(rows) == 40
    page.click(".table-block thead th:nth-child(2) button")
    page.click(".table-block thead th:nth-child(2) button")
    assert text_of(page, ".table-block tbody tr:first-child td")[0] == "21"
    page.click(".unfold")
    assert page.script(rows) == 42
    assert text_of(page, ".unfold") == []


def test_charts_of_a_grid_have_dots_and_say_what_is_nearest(open_page, grid_page):
    page = open_page(grid_page)
    box = page.box(".chart svg")
    page.until("document.querySelector('.chart svg').querySelectorAll('circle').length == 42")
    page.mouse("mouseMoved", box["x"] + 0.95 * box["width"], box["y"] + 0.5 * box["height"])
    page.until("!document.getElementById('tip').hidden")
    assert text_of(page, "#tip b") == ["21"]
    assert text_of(page, "#tip tr") == ["fifo11.7 s", "srtf7.67 s"]
