"""Reading delimited files so that a mistake in them is reported with file, line, field and what was expected."""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rota.core.errors import TraceError


class Row:
    """One line of a file, its fields by name."""

    __slots__ = ("_fields", "line", "path")

    def __init__(self, path: Path, line: int, fields: dict[str, str]) -> None:
        self.path = path
        self.line = line
        self._fields = fields

    def text(self, name: str) -> str:
        value = self._fields[name].strip()
        if not value:
            raise TraceError.at(self.path, self.line, name, value, "there: the field is empty")
        return value

    def optional(self, name: str) -> str:
        return self._fields.get(name, "").strip()

    def number(self, name: str, *, at_least: float = 0.0) -> float:
        value = self._fields[name]
        try:
            number = float(value)
        except ValueError:
            raise TraceError.at(self.path, self.line, name, value, "a number") from None
        if not math.isfinite(number) or number < at_least:
            raise TraceError.at(self.path, self.line, name, value, f"a number of {at_least:g} or more")
        return number

    def positive(self, name: str) -> float:
        number = self.number(name)
        if number <= 0.0:
            raise TraceError.at(self.path, self.line, name, self._fields[name], "a number above 0")
        return number

    def whole(self, name: str, *, at_least: int = 0) -> int:
        number = self.number(name, at_least=at_least)
        if number != int(number):
            raise TraceError.at(self.path, self.line, name, self._fields[name], "a whole number")
        return int(number)

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        value = self.text(name)
        if value not in choices:
            raise TraceError.at(self.path, self.line, name, value, f"one of {', '.join(choices)}")
        return value


def read_rows(
    path: Path, required: Sequence[str], *, delimiter: str = ",", header: Sequence[str] | None = None
) -> Iterator[Row]:
    """The lines of a file; `header` names the fields of a file that does not name them itself."""
    with open_text(path) as file:
        lines = csv.reader(file, delimiter=delimiter)
        names = [name.strip() for name in (header if header is not None else next(lines, []))]
        if not names:
            raise TraceError(f"{path}: the file is empty; expected a header with {','.join(required)}")
        missing = [name for name in required if name not in names]
        if missing:
            raise TraceError(f"{path}: line 1: no column {', '.join(map(repr, missing))}; found {','.join(names)}")
        for fields in lines:
            if not fields:
                continue
            if len(fields) != len(names):
                raise TraceError(f"{path}: line {lines.line_num}: {len(fields)} fields; expected {len(names)}: {','.join(names)}")
            yield Row(path, lines.line_num, dict(zip(names, fields, strict=True)))


def open_text(path: Path):  # type: ignore[no-untyped-def]
    """Open a text file, or say why not."""
    try:
        if path.is_dir():
            raise TraceError(f"{path}: is a folder; expected a file")
        return path.open(newline="", encoding="utf-8-sig")
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
