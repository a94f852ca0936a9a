"""Changes as text and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import ConfigError
from rota.core.network import NOTHING, SHRINK, Change

NUMBERS = st.integers(0, 10_000)
CHANGES = st.one_of(
    st.just(NOTHING),
    st.just(SHRINK),
    st.builds(lambda block: Change("deepen", block), NUMBERS),
    st.builds(lambda block, width: Change("widen", block, width + 1), NUMBERS, NUMBERS),
)


@given(CHANGES)
def test_what_is_written_is_read_back(change):
    assert Change.parse(str(change)) == change


def test_as_people_write_them():
    assert Change.parse("deepen 0") == Change("deepen", 0)
    assert Change.parse(" widen  1 64 ") == Change("widen", 1, 64)
    assert Change.parse("deepen 2").grows
    assert not SHRINK.grows


@pytest.mark.parametrize(
    "text",
    [
        "",
        "deepen",
        "deepen 0 0",
        "deepen 0 1",
        "deepen -1",
        "deepen x",
        "widen 0",
        "widen 0 0",
        "nothing 1",
        "shrink 2",
        "a b c d",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigError):
        Change.parse(text)


def test_a_slip_is_understood():
    with pytest.raises(ConfigError, match="Did you mean 'deepen'"):
        Change.parse("depen 0")
