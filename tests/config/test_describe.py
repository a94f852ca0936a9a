"""Fields document themselves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rota.config.describe import KeyDescription, describe, help_text


@dataclass(frozen=True)
class Cluster:
    """The machines."""

    slots: int
    """Slots of each node."""
    speeds: dict[str, float] = field(default_factory=lambda: {"gpu": 1.0})
    """Speed of each kind of device,
    relative to the reference."""


@dataclass(frozen=True)
class Failure:
    """A node that is lost.

    And more about it.
    """

    at_s: float = 0.5
    undocumented: bool = False


@dataclass(frozen=True)
class Seeded:
    seed: int = 0
    """Seeds everything random."""


@dataclass(frozen=True)
class Config(Seeded):
    """What to simulate."""

    cluster: Cluster = field(default_factory=lambda: Cluster(4))
    policy: Literal["fifo", "srtf"] = "fifo"
    """Who goes first."""
    out: Path = Path("results")
    """Where results go."""
    until_s: float | None = None
    """When to stop."""
    failures: tuple[Failure, ...] = ()
    """Nodes that are lost, in order."""
    names: tuple[str, ...] = ("a", "b")
    derived: int = field(default=3, init=False)
    """Not for the user."""

    def steps(self) -> int:
        """Not a field."""
        return 1


def test_tables_by_name_are_listed_with_what_is_in_them():
    @dataclass(frozen=True)
    class Named:
        clusters: dict[str, Failure] = field(default_factory=dict)
        """Several of them."""

    assert describe(Named) == [
        KeyDescription("clusters.NAME", "optional", "Several of them."),
        KeyDescription("clusters.NAME.at_s", "0.5", ""),
        KeyDescription("clusters.NAME.undocumented", "false", ""),
    ]


def test_every_setting_is_listed_with_default_and_meaning():
    assert describe(Config) == [
        KeyDescription("seed", "0", "Seeds everything random."),
        KeyDescription("cluster", "optional", "The machines."),
        KeyDescription("cluster.slots", "required", "Slots of each node."),
        KeyDescription(
            "cluster.speeds", "{gpu = 1.0}", "Speed of each kind of device, relative to the reference."
        ),
        KeyDescription("policy", "'fifo'", "Who goes first. One of: fifo, srtf."),
        KeyDescription("out", "'results'", "Where results go."),
        KeyDescription("until_s", "none", "When to stop."),
        KeyDescription("failures[]", "optional", "Nodes that are lost, in order."),
        KeyDescription("failures[].at_s", "0.5", ""),
        KeyDescription("failures[].undocumented", "false", ""),
        KeyDescription("names", "['a', 'b']", ""),
    ]


def test_the_help_text_is_aligned_in_columns():
    assert help_text(Cluster) == (
        "slots   required     Slots of each node.\n"
        "speeds  {gpu = 1.0}  Speed of each kind of device, relative to the reference."
    )


def test_nothing_to_configure_is_an_empty_text():
    @dataclass(frozen=True)
    class Nothing:
        pass

    assert help_text(Nothing) == ""
