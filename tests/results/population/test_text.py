"""Summaries for people."""

from dataclasses import replace

from rota.results.population.summary import comparison, markdown


def test_a_summary_says_averages_repetitions_slots_and_batch_sizes(by_hand):
    lines = markdown(by_hand).splitlines()
    assert lines[0] == "# era"
    assert lines[2] == "2 trials × 100 steps, evolution: pbt, on pair"
    for line in (
        "- run time: 50.00 s",
        "- best accuracy: 75.0%",
        "- time to the target: 35.00 s",
        "- assignments: 5.0",
        "| 1 | 50.00 | 2.000 | 75.0% | 1 | 0 | 5 |",
        "| 0 | a | gpu | 2 | 37.00 | 3.00 | 0.00 | 20.0% | 6 | 6 |",
        "| 1 | b | cpu | 1 | 19.00 | 1.00 | 10.00 | 0.0% | 4 | 2 |",
        "- a: 16 (300)",
    ):
        assert line in lines


def test_allocations_are_compared_one_to_a_line(by_hand):
    eta = replace(by_hand, allocation="eta")
    header, first, second = comparison([("", by_hand), ("x", eta)]).splitlines()
    assert header.split() == [
        "allocation", "makespan", "[s]", "lower", "bound", "[s]", "ratio", "idle", "clones", "decisions/s",
        "best", "accuracy",
    ]  # fmt: skip
    # 10 of 80 s in which slots were there.
    assert first.split() == ["era", "50.00", "25.00", "2.000", "12.5%", "1.0", "3,333", "75.0%"]
    assert second.startswith("x eta")


def test_without_accuracies_there_is_no_column_for_them(by_hand):
    nothing = {"best_accuracy": None, "final_accuracy": None, "to_target_s": None}
    plain = replace(by_hand, repetitions=tuple(replace(each, **nothing) for each in by_hand.repetitions))
    assert "accuracy" not in comparison([("", plain)])
    assert "best accuracy:" not in markdown(plain)


def bound_of(summary, bound_s):
    return replace(
        summary, repetitions=tuple(replace(each, lower_bound_s=bound_s) for each in summary.repetitions)
    )


def bounds(*runs):
    return [line.split()[-6] for line in comparison(runs).splitlines()[1:]]


def test_bounds_are_common_to_the_allocations_of_one_point_on_the_same_slots(by_hand):
    less, more = bound_of(by_hand, 20.0), bound_of(by_hand, 40.0)
    other = replace(more, slots=tuple(replace(slot, speed=1.0) for slot in more.slots))
    assert bounds(("a", less), ("a", more)) == ["20.00", "20.00"]
    assert bounds(("a", less), ("b", more)) == ["20.00", "40.00"]
    assert bounds(("a", less), ("a", other)) == ["20.00", "40.00"]


def test_a_metric_that_is_to_be_small_has_the_sign_that_it_was_reported_with(by_hand):
    losses = {"best_accuracy": -0.25, "final_accuracy": -0.5, "to_target_s": None}
    less = replace(
        by_hand,
        mode="min",
        repetitions=tuple(replace(each, **losses) for each in by_hand.repetitions),
    )
    lines = markdown(less).splitlines()
    assert {"- best metric: 0.25", "- best metric in the end: 0.5"} < set(lines)
    assert "| 1 | 50.00 | 2.000 | 0.25 | 1 | 0 | 5 |" in lines
    header, row = comparison([("", less)]).splitlines()
    assert (header.split()[-2:], row.split()[-1]) == (["best", "metric"], "0.25")


def test_what_is_no_share_is_not_in_percent(by_hand):
    heights = {"best_accuracy": 43.928, "final_accuracy": 0.5}
    high = replace(by_hand, repetitions=tuple(replace(each, **heights) for each in by_hand.repetitions))
    assert {"- best metric: 43.93", "- best metric in the end: 0.5"} < set(markdown(high).splitlines())
