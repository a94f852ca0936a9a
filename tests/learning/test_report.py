"""What was evaluated, as a table."""

from rota.learning.outcome import Baselines, EvaluationOutcome, EvaluationRow, brief, table

ACTIONS = ("deepen 0", "deepen 1", "deepen 2", "nothing")
CHANGES = ("deepen 0", "nothing", "deepen 2")


def row(
    scenario: str,
    *,
    seed: int = 0,
    seen: bool = True,
    headroom: float = 1.0,
    fixed: float | None = 0.4,
    data: str = "",
) -> EvaluationRow:
    agent = EvaluationOutcome(
        scenario, "convnet2", seed, (0, 3, 2), CHANGES, ACTIONS, 0.45678, 3, 64, headroom, (), data
    )
    return EvaluationRow(
        agent, Baselines(0.2, 0.3, fixed, None if fixed is None else (0, 0, 0), 0.5, 0.3), seen
    )


def test_a_table_by_hand():
    found = table([row("early"), row("late", seed=1, seen=False, headroom=-0.25, fixed=None)])
    assert found.splitlines() == [
        "model      scenario             rank  headroom  accuracy   never  random   fixed  oracle  sequence",
        "convnet2   early               3/64       1.00    45.68%  20.00%  30.00%  40.00%  50.00%  "
        "deepen 0, nothing, deepen 2",
        "convnet2   late (1) *          3/64      -0.25    45.68%  20.00%  30.00%       –  50.00%  "
        "deepen 0, nothing, deepen 2",
        "mean                                      0.38  * unseen",
    ]


def test_where_all_was_seen_there_is_no_legend():
    assert (
        table([row("early", headroom=0.5)]).splitlines()[-1]
        == "mean                                      0.50"
    )


def test_in_brief():
    found = brief([row("early"), row("late", headroom=0.5)])
    assert found == "  convnet2/early rank 3/64, convnet2/late rank 3/64; headroom 0.75"


def test_data_is_named_where_there_is_more_than_one():
    rows = [row("early", data="digits"), row("early", data="mnist")]
    assert [line[:26] for line in table(rows).splitlines()] == [
        "model           scenario  ",
        "convnet2-digits early     ",
        "convnet2-mnist  early     ",
        "mean                      ",
    ]
    assert brief(rows).startswith("  convnet2-digits/early rank 3/64, convnet2-mnist/early rank 3/64;")
    assert "convnet2   early" in table(rows[:1])
