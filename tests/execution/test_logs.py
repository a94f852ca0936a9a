"""What workers printed last."""

import pytest

from rota.execution.folder import last_of, opened
from rota.execution.journal import NotWritten


@pytest.mark.parametrize(
    ("content", "last"),
    [
        (b"", ""),
        (b"short", "short"),
        (b"x" * 1000 + b"the end", "xxxthe end"),
        ("é€😀".encode() * 50, "😀é€😀é€😀é€😀"),
        (b"\xff" * 3 + b"no text", "�" * 3 + "no text"),
    ],
)
def test_the_last_characters_are_found(tmp_path, content, last):
    (tmp_path / "log").write_bytes(content)
    assert last_of(tmp_path / "log", 10) == last


def test_of_a_log_that_is_not_there_nothing_is_known(tmp_path):
    assert last_of(tmp_path / "log") == ""


def test_a_log_that_cannot_be_written_is_said_to_be_the_reason(tmp_path):
    with pytest.raises(NotWritten, match="No such file or directory"):
        opened(tmp_path / "no" / "log")
