"""Parameters of a grid as short labels."""

import pytest

from rota.results.parameters import Labels, constant, in_order, is_seed, varying

POINTS = [{"workload.load": load, "cluster.nodes": 8, "seed": seed} for load in (0.5, 0.8) for seed in (0, 1)]


def test_only_what_varies_is_in_a_label():
    labels = Labels(POINTS)
    assert labels.keys == varying(POINTS) == ("workload.load", "seed")
    assert [labels.text(point) for point in POINTS] == [
        "load=0.5 seed=0", "load=0.5 seed=1", "load=0.8 seed=0", "load=0.8 seed=1",
    ]  # fmt: skip


def test_a_point_alone_has_all_of_its_parameters():
    labels = Labels([POINTS[0], POINTS[0]])
    assert labels.text(POINTS[0]) == "load=0.5 nodes=8 seed=0"


def test_a_run_without_a_grid_has_no_label():
    assert Labels([{}, {}]).text({}) == ""
    labels = Labels([{}, POINTS[0]])
    assert [labels.text(point) for point in ({}, POINTS[0])] == ["", "load=0.5 nodes=8 seed=0"]


def test_keys_that_end_alike_are_in_full():
    labels = Labels([{"a.rate": 1, "b.rate": 2}, {"a.rate": 2, "b.rate": 1}])
    assert labels.text({"a.rate": 1, "b.rate": 2}) == "a.rate=1 b.rate=2"


def test_values_that_read_alike_are_told_apart():
    points = [{"x": "a/b"}, {"x": "a b"}, {"x": [1, 2]}]
    assert [Labels(points).text(point) for point in points] == ["x=a_b#1", "x=a_b#2", "x=1_2"]


def test_names_of_files_are_those_of_the_folders_of_points():
    assert Labels(POINTS).file_name(POINTS[3], ("workload.load", "seed")) == "load=0.8,seed=1"


def test_some_parameters_are_the_same_in_a_part_of_the_points():
    assert constant(POINTS[:2], ("workload.load", "seed")) == ("workload.load",)


def test_points_are_sorted_by_size_not_by_their_text():
    points = [{"n": "many"}, {"n": 16}, {"n": 8}, {"n": 0.5}]
    assert sorted(points, key=lambda point: in_order(point, ["n"])) == [
        {"n": 0.5}, {"n": 8}, {"n": 16}, {"n": "many"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "seed"), [("workload.synthetic.seed", True), ("seed", True), ("seeds", False)]
)
def test_a_seed_is_known_by_its_name(key, seed):
    assert is_seed(key) is seed
