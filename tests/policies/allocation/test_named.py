"""SPA and GPA, as users of the originals know them."""

import pytest

from rota.core.errors import ConfigError
from rota.policies.allocation.era import Era
from rota.policies.allocation.eta import Eta
from rota.policies.allocation.registry import named
from rota.policies.population import RetireSlowest


@pytest.mark.parametrize(
    ("name", "mode", "allocation", "retirement"),
    [
        ("spa", "ERA", Era(split="spa"), None),
        ("spa", "ETA", Eta(split="spa"), None),
        ("gpa", "ERA", Era(split="gpa"), RetireSlowest()),
        ("GPA", "eta", Eta(split="gpa"), RetireSlowest()),
    ],
)
def test_a_name_and_a_mode_stand_for_an_allocation_and_a_retirement(name, mode, allocation, retirement):
    assert named(name, mode) == (allocation, retirement)


def test_the_mode_is_era_unless_it_is_given():
    assert named("spa") == named("spa", "ERA")


def test_the_originals_can_be_had_with_their_defects():
    assert named("gpa", "ETA", original=True) == (Eta(original=True), RetireSlowest(original=True))


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match=r"unknown scheduler 'gba'\. Did you mean 'gpa'"):
        named("gba")
    with pytest.raises(ConfigError, match="unknown mode 'EPA'"):
        named("gpa", "EPA")
