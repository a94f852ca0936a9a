"""Binding a table to a dataclass: what is accepted, and what is said when it is not."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from rota.config.bind import bind
from rota.core.errors import ConfigError


@dataclass(frozen=True)
class Cluster:
    slots: int
    nodes: int = 1
    cross_node: float = 1.0

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ConfigError(f"nodes must be at least 1, not {self.nodes}")


@dataclass(frozen=True)
class Failure:
    at_s: float
    node: int = 0


@dataclass(frozen=True)
class Config:
    cluster: Cluster
    policy: Literal["fifo", "srtf", "tiresias"] = "fifo"
    level: Literal[1, 2] = 1
    trace: Path = Path("trace.csv")
    title: str = ""
    verbose: bool = False
    until_s: float | None = None
    failures: tuple[Failure, ...] = ()
    spare: list[Cluster] = field(default_factory=list)
    seeds: tuple[int, ...] = (0,)
    names: tuple[str, ...] = ()
    span: tuple[float, float] = (0.0, 1.0)
    speeds: dict[str, float] = field(default_factory=dict)
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    backup: Cluster | None = None
    derived: int = field(default=3, init=False)


def bound(text: str) -> Config:
    """`text` after a cluster that is fine, so that each test shows only its own line."""
    return bind(Config, {"cluster": {"slots": 4}, **tomllib.loads(text)}, "simulate.toml")


def test_a_full_file_binds_to_nested_dataclasses():
    text = """
        policy = "srtf"
        trace = "traces/a.csv"
        until_s = 60
        seeds = [1, 2]
        span = [0, 0.5]
        speeds = { v100 = 1, a100 = 2.5 }
        weights.resnet.v100 = 3
        cluster = { slots = 8, nodes = 2 }
        backup = { slots = 1 }
        [[failures]]
        at_s = 3
        [[failures]]
        at_s = 4.5
        node = 1
    """
    assert bound(text) == Config(
        cluster=Cluster(slots=8, nodes=2),
        policy="srtf",
        trace=Path("traces/a.csv"),
        until_s=60.0,
        failures=(Failure(3.0), Failure(4.5, node=1)),
        seeds=(1, 2),
        span=(0.0, 0.5),
        speeds={"v100": 1.0, "a100": 2.5},
        weights={"resnet": {"v100": 3.0}},
        backup=Cluster(slots=1),
    )


def test_what_is_left_out_has_its_default():
    assert bound("") == Config(Cluster(slots=4))


def test_a_whole_number_becomes_a_float_where_one_is_wanted():
    assert type(bound("until_s = 60").until_s) is float


def test_an_infinite_time_is_a_number():
    assert bound("until_s = inf").until_s == float("inf")


MISTAKES = {
    "cluster = { slot = 4 }": "cluster: unknown key 'slot'. Did you mean 'slots'? "
    "Known: slots, nodes, cross_node",
    "cluster = { slots = 4, zzz = 1 }": "cluster: unknown key 'zzz'. Known: slots, nodes, cross_node",
    "derived = 4": "unknown key 'derived'. Known: cluster, policy, level, trace, title, verbose, until_s, "
    "failures, spare, seeds, names, span, speeds, weights, backup",
    "cluster = { nodes = 4 }": "cluster: missing key 'slots': an integer",
    "cluster = 4": "cluster: 4 is not a table",
    "cluster = { slots = 'four' }": "cluster.slots: 'four' is not an integer",
    "cluster = { slots = '4' }": "cluster.slots: '4' is not an integer. Did you mean 4?",
    "cluster = { slots = 1e3 }": "cluster.slots: 1000.0 is not an integer. Did you mean 1000?",
    "cluster = { slots = 4.5 }": "cluster.slots: 4.5 is not an integer",
    "cluster = { slots = inf }": "cluster.slots: inf is not an integer",
    "cluster = { slots = true }": "cluster.slots: true is not an integer",
    "cluster = { slots = [4] }": "cluster.slots: [4] is not an integer",
    "cluster = { slots = 4, nodes = 0 }": "cluster: nodes must be at least 1, not 0",
    "cluster = { slots = 4, cross_node = 'slow' }": "cluster.cross_node: 'slow' is not a number",
    "until_s = '1.5'": "until_s: '1.5' is not a number. Did you mean 1.5?",
    "until_s = false": "until_s: false is not a number",
    "until_s = nan": "until_s: nan is not a number",
    f"until_s = 1{'0' * 400}": f"until_s: 1{'0' * 58}… is not a number",
    "verbose = 'yes'": "verbose: 'yes' is not true or false",
    "verbose = 'True'": "verbose: 'True' is not true or false. Did you mean true?",
    "verbose = 1": "verbose: 1 is not true or false",
    "title = 4": "title: 4 is not a string. Did you mean '4'?",
    "title = 2024-01-02": "title: 2024-01-02 is not a string",
    "trace = ['a']": "trace: ['a'] is not a path",
    "policy = 'srft'": "policy: unknown value 'srft'. Did you mean 'srtf'? Known: fifo, srtf, tiresias",
    "policy = 1": "policy: 1 is not one of fifo, srtf, tiresias",
    "level = 3": "level: 3 is not one of 1, 2",
    "level = true": "level: true is not one of 1, 2",
    "seeds = 1": "seeds: 1 is not a list",
    "seeds = [1, 'b']": "seeds[1]: 'b' is not an integer",
    "names = ['a', 1]": "names[1]: 1 is not a string. Did you mean '1'?",
    "span = [1.0]": "span: [1.0] is not a list of 2 values",
    "speeds = [1.0]": "speeds: [1.0] is not a table",
    "speeds.v100 = 'fast'": "speeds.v100: 'fast' is not a number",
    "weights.resnet = 1": "weights.resnet: 1 is not a table",
    "weights.resnet.v100 = 'x'": "weights.resnet.v100: 'x' is not a number",
    "failures = { at_s = 1 }": "failures: {at_s = 1} is not a list",
    "failures = [{ at_s = 1 }, { node = 1 }]": "failures[1]: missing key 'at_s': a number",
    "failures = [{ at = 1 }]": "failures[0]: unknown key 'at'. Did you mean 'at_s'? Known: at_s, node",
    "spare = [{ slots = 1, nodes = -1 }]": "spare[0]: nodes must be at least 1, not -1",
    "backup = {}": "backup: missing key 'slots': an integer",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_is_named_with_its_place(text, message):
    with pytest.raises(ConfigError) as caught:
        bound(text)
    assert str(caught.value) == f"simulate.toml: {message}"


@dataclass(frozen=True)
class Demanding:
    table: Cluster
    choice: Literal["a", "b"]
    items: tuple[int, ...]
    perhaps: bool | None


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("table", "a table"), ("choice", "one of a, b"), ("items", "a list"), ("perhaps", "true or false")],
)
def test_a_missing_key_is_named_with_what_it_should_be(missing, expected):
    table = {"table": {"slots": 1}, "choice": "a", "items": [], "perhaps": True}
    del table[missing]
    with pytest.raises(ConfigError) as caught:
        bind(Demanding, table)
    assert str(caught.value) == f"missing key {missing!r}: {expected}"


@pytest.mark.parametrize("kind", [set[int], int | str, bytes, Any])
def test_a_field_that_cannot_be_configured_is_a_bug_and_not_a_mistake_of_the_user(kind):
    @dataclass(frozen=True)
    class Odd:
        value: kind

    with pytest.raises(TypeError, match="a setting"):
        bind(Odd, {"value": 1})
