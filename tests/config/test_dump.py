"""What is written binds back to an equal object."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.config.bind import bind
from rota.config.load import dump


@dataclass(frozen=True)
class Node:
    slots: int
    kind: str = "gpu"
    speed: float | None = None


@dataclass(frozen=True)
class Everything:
    node: Node
    flag: bool
    count: int
    share: float
    title: str
    folder: Path
    policy: Literal["fifo", "srtf"] = "fifo"
    spare: Node | None = None
    nodes: tuple[Node, ...] = ()
    more: list[Node] = field(default_factory=list)
    seeds: tuple[int, ...] = ()
    span: tuple[float, str] = (0.0, "s")
    speeds: dict[str, float] = field(default_factory=dict)
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    derived: int = field(default=7, init=False)


texts = st.text("aβ1.'\"\\/#=[]{} \t\r\n\x00\x7f\u2028😀", max_size=8)
paths = texts.filter(lambda text: "\0" not in text).map(Path)
floats = st.floats(allow_nan=False)
nodes = st.builds(Node, st.integers(-(2**63) + 1, 2**63 - 1), texts, st.none() | floats)
speeds = st.dictionaries(texts, floats, max_size=3)
everything = st.builds(
    Everything,
    node=nodes,
    flag=st.booleans(),
    count=st.integers(-(2**63) + 1, 2**63 - 1),
    share=floats,
    title=texts,
    folder=paths,
    policy=st.sampled_from(["fifo", "srtf"]),
    spare=st.none() | nodes,
    nodes=st.lists(nodes, max_size=3).map(tuple),
    more=st.lists(nodes, max_size=3),
    seeds=st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=3).map(tuple),
    span=st.tuples(floats, texts),
    speeds=speeds,
    weights=st.dictionaries(texts, speeds, max_size=3),
)


@given(everything)
def test_what_is_written_binds_back_to_an_equal_object(config):
    assert bind(Everything, tomllib.loads(dump(config))) == config


def test_the_text_is_plain_toml_with_the_defaults_in_it():
    config = Everything(Node(4), flag=True, count=2, share=0.5, title="a", folder=Path("b/c"))
    assert dump(config) == (
        'flag = true\ncount = 2\nshare = 0.5\ntitle = "a"\nfolder = "b/c"\npolicy = "fifo"\n'
        'nodes = []\nmore = []\nseeds = []\nspan = [\n    0.0,\n    "s",\n]\n'
        '\n[node]\nslots = 4\nkind = "gpu"\n\n[speeds]\n\n[weights]\n'
    )


def test_a_none_that_toml_cannot_say_is_refused_rather_than_changed():
    @dataclass(frozen=True)
    class Odd:
        speed: float | None = 1.0

    with pytest.raises(ValueError, match="speed is None, which TOML cannot express"):
        dump(Odd(speed=None))
