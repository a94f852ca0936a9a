"""Simulated against real, where both are given."""

from rota.report.fidelity import fidelity_sections, pairs_of

REAL = "rota run local.toml --out x"


def test_a_real_run_is_held_against_its_simulation(make_population):
    runs = [make_population("fifo", command=REAL), make_population("fifo", 1.1), make_population("eta")]
    (section,) = fidelity_sections(runs)
    assert section.title == "Simulated against real: fifo, seed 0"
    rows = {row[0][1]: [cell[1] for cell in row[1:]] for row in section.blocks[0]["rows"]}
    # trial 0 is done after 40 s or 44 s, trial 1 last reports at 20 s or 22 s
    assert rows["makespan"] == ["40.00", "44.00", "+10.0%"]
    assert rows["mean completion time"] == ["30.00", "33.00", "+10.0%"]
    assert "10.0% too long" in section.glance.says
    real, simulated = section.blocks[1]["lines"]
    assert (real["x"], real["y"]) == ([0, 20, 40], [0, 0.5, 1])
    assert simulated["x"] == [0, 22, 44]


def test_jobs_are_compared_too(make_run):
    real = make_run("srtf", under="real", command=REAL)
    (section,) = fidelity_sections([real, make_run("srtf"), make_run("fifo")])
    rows = {row[0][1]: [cell[1] for cell in row[1:]] for row in section.blocks[0]["rows"]}
    assert rows["makespan"] == ["14.00", "14.00", "+0.0%"]
    assert section.about == "3 jobs; real: srtf, simulated: srtf"


def test_other_jobs_are_not_compared(make_run):
    real = make_run("srtf", ids=("x", "b", "c"), under="real", command=REAL)
    assert list(fidelity_sections([real, make_run("srtf")])) == []


def test_without_a_real_run_there_is_nothing_to_compare(make_population):
    assert list(fidelity_sections([make_population("fifo"), make_population("eta")])) == []


def test_other_seeds_or_policies_are_not_compared(make_population):
    real, other = make_population("fifo", command=REAL), make_population("eta")
    assert pairs_of(real, other) == []
