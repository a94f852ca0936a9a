"""The recordings that are shipped: whole, as documented, and of networks that are still built the same."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from rota.config.bind import bind
from rota.config.load import read
from rota.core.network import Change
from rota.recordings.folder import read_about
from rota.recordings.growth import read_growth_tree
from rota.recordings.library import read_library, recording_folders
from rota.recordings.profile import read_profiles
from rota.recordings.tree import read_tree
from rota.training.describe import describe, with_blocks
from rota.training.hyper import Hyperparameters
from rota.training.models.registry import MODELS, build
from rota.training.net2net import blocks, deepen
from rota.training.recorder.record import RecordConfig
from rota.training.recorder.step_times import grown
from rota.training.setup import Setup

SHIPPED = Path(__file__).parents[3] / "results" / "recordings"
TREES = {read_about(folder).what["model"]: folder for folder in recording_folders(SHIPPED / "trees")}
"""One of each model: its scenarios and seeds have the same structures."""


def test_they_can_be_read_and_nothing_is_missing():
    library = read_library(SHIPPED)
    assert library.problems == []
    assert library.trees
    assert all(not held.what.missing() for held in library.trees)
    assert all(len(held.what.sequences()) == 64 for held in library.trees)
    assert all(0.2 < accuracy < 0.9 for held in library.trees for accuracy in held.what.accuracies().values())


GROWTH = {folder.parent.name: folder for folder in recording_folders(SHIPPED / "growth")}
"""One growth tree of each network."""


def test_growth_trees_are_whole_and_say_how_they_were_recorded():
    trees = [held.what for held in read_library(SHIPPED).growth]
    for tree in trees:
        table = tree.table()  # which raises if a node is missing
        assert all(1e-4 < each.step_s < 1.0 for each in tree.structures)
        trained = ~np.isnan(table.accuracy)
        assert (abs(table.accuracy[trained] - 0.5) <= 0.5).all()
        assert len(set(table.steps[trained].tolist())) == 1
        assert tree.provenance.command == "rota record config/record/growth-pairs.toml"
        assert tree.provenance.seed == tree.seed


def test_every_network_is_in_one_fold():
    path = SHIPPED.parents[1] / "config" / "record" / "growth-pairs.toml"
    found = tomllib.loads((SHIPPED / "growth" / "folds.toml").read_text())["folds"]
    assert len(found) == 4
    names = [name for fold in found.values() for name in fold]
    assert sorted(names) == sorted(config.name for config in bind(RecordConfig, read(path), path).growth)
    assert set(GROWTH) <= set(names)


@pytest.mark.parametrize("name", GROWTH)
def test_the_structures_of_growth_trees_are_those_that_growing_leads_to_now(name):
    tree = read_growth_tree(GROWTH[name])
    channels, size = {"digits": (1, 8), "fashion-mnist": (1, 14), "cifar10": (3, 16)}[tree.data]
    network = build(tree.model, (channels, size, size), 10)
    assert with_blocks(network) == (tree.structures[0].structure, tree.structures[0].blocks)
    names = blocks(network)
    for change, known in zip(tree.choices.order, tree.structures[1:], strict=False):
        deepen(network, names[Change.parse(change).block])
        assert with_blocks(network) == (known.structure, known.blocks)


def test_every_model_has_profiles_at_four_batch_sizes_alone_and_in_a_gang():
    every = [
        row for name in ("profiles", "resnet8") for row in read_profiles(SHIPPED / "profiles" / name).rows
    ]
    for model in MODELS:
        for gang in (1, 2):
            rows = [row for row in every if (row.model, row.gang) == (model, gang)]
            assert len({row.batch_size for row in rows}) == 4
            assert all(row.iteration_s > 0 for row in rows)
            assert all((row.synchronise_s > 0) == (gang > 1) for row in rows)


def test_all_trees_of_a_model_have_the_step_times_of_the_same_structures():
    for held in read_library(SHIPPED).trees:
        known = held.what.details["seconds_per_step"]
        assert known.keys() == read_tree(TREES[held.what.model]).details["seconds_per_step"].keys()


@pytest.mark.parametrize("folder", TREES.values(), ids=TREES)
def test_the_seconds_per_step_are_those_of_the_structures_that_growing_leads_to_now(folder):
    """A fingerprint that no longer fits would make the profiled clock useless."""
    tree = read_tree(folder)
    asked = tree.details["asked"]["setup"]
    network = build(asked["model"], (3, asked["size"], asked["size"]), 10)
    assert describe(network).fingerprint in tree.details["seconds_per_step"]
    size = Hyperparameters(batch_size=8)  # alike but for the channels of an image
    alike = Setup(model=asked["model"], data="digits", size=8, threads=1, hyper=size)
    changes = [Change.parse(action) for action in tree.actions]
    assert len(list(grown(alike, changes, tree.decisions, 0))) == len(tree.details["seconds_per_step"])
