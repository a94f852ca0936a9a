"""Delimited files as columns of text; errors name the file, line, field and what was expected.

Columns are converted as a whole, which is fast; only if that fails is the first bad line searched for.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from rota.core.arrays import Floats, Mask
from rota.core.errors import TraceError
from rota.core.files import LARGEST, open_text

if TYPE_CHECKING:
    from _csv import Reader


EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a file, by column."""

    path: Path
    lines: Sequence[int]
    """Line number of each row in the file."""
    columns: Mapping[str, Sequence[str]]
    each: str = "line"
    """Unit that `lines` counts."""

    def __len__(self) -> int:
        return len(self.lines)

    def require(self, names: Sequence[str]) -> None:
        """Raise TraceError if a column is missing."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            names, found = ", ".join(map(repr, missing)), ",".join(self.columns)
            raise TraceError(f"{self.path}: {self.each} 1: no column {names}; found {found[:200]!r}")

    def keep(self, rows: Mask) -> "Table":
        """Return only the marked rows; errors in them still name their own line."""
        if rows.all():
            return self
        places = np.flatnonzero(rows).tolist()
        columns = {name: [column[place] for place in places] for name, column in self.columns.items()}
        return replace(self, lines=[self.lines[place] for place in places], columns=columns)

    def optional(self, name: str) -> list[str]:
        """Return text that may be empty, as it is everywhere if the column is missing."""
        return [value.strip() for value in self.columns.get(name, [""] * len(self))]

    def given(self, name: str) -> Mask:
        """Return which rows have a value in a column."""
        return np.array([bool(value) for value in self.optional(name)], np.bool_)

    def texts(self, name: str) -> list[str]:
        """Return text without blanks around it. Raises TraceError if a field is empty."""
        values = self.optional(name)
        if not all(values):
            raise self.wrong(name, values.index(""), "there: the field is empty")
        return values

    def sets(self, name: str) -> list[tuple[str, ...]]:
        """Return text split at bars; an empty tuple where the field is empty."""
        return [
            tuple(part.strip() for part in text.split("|") if part.strip()) for text in self.optional(name)
        ]

    def ids(self, name: str) -> list[str]:
        """Return text that is unique in each row."""
        values = self.texts(name)
        if len(set(values)) != len(values):
            first: dict[str, int] = {}
            for row, value in enumerate(values):
                if value in first:
                    raise self.wrong(name, row, f"unique: line {self.lines[first[value]]} has it too")
                first[value] = row
        return values

    def one_of(self, name: str, choices: Sequence[str]) -> list[str]:
        """Return text that is one of the choices. Raises TraceError for any other."""
        values = self.texts(name)
        if not set(values) <= set(choices):
            row = next(row for row, value in enumerate(values) if value not in choices)
            raise self.wrong(name, row, f"one of {', '.join(choices)}")
        return values

    def numbers(self, name: str, *, at_least: float = 0.0) -> Floats:
        """Return finite numbers from `at_least` up to the largest 64-bit integer."""
        values = self._converted(name, float, "a number")
        self.check(name, np.isfinite(values) & (values >= at_least), f"a number of {at_least:g} or more")
        self.check(name, values < float(LARGEST), f"a number below {LARGEST:.1e}")
        return values

    def positives(self, name: str) -> Floats:
        """Return numbers as `numbers` does. Raises TraceError if one is 0."""
        values = self.numbers(name)
        self.check(name, values > 0.0, "a number above 0")
        return values

    def wholes(self, name: str, *, at_least: int = 0) -> Floats:
        """Return numbers as `numbers` does. Raises TraceError if one is not a whole number."""
        values = self.numbers(name, at_least=at_least)
        self.check(name, values == np.floor(values), "a whole number")
        return values

    def floats(self, name: str) -> Floats:
        """Return any numbers, also infinite ones; NaN where the field is empty."""
        return self._converted(name, lambda text: float(text) if text.strip() else math.nan, "a number")

    def numbers_or_nan(self, name: str) -> Floats:
        """Return numbers as `numbers` does, with NaN where the field is empty or the column missing."""
        return self._or_nan(name, Table.numbers)

    def positives_or_nan(self, name: str) -> Floats:
        """Return numbers as `positives` does, with NaN where the field is empty or the column missing."""
        return self._or_nan(name, Table.positives)

    def times_s(self, name: str) -> Floats:
        """Return wall-clock times as seconds since 1970; those with a time zone as seconds in UTC."""
        zoned = bool(len(self)) and _converts(_seconds_in_utc, self.optional(name)[0])  # then all must be
        convert = _seconds_in_utc if zoned else _seconds
        return self._converted(name, convert, "a time like 2017-10-09 07:01:55")

    def check(self, name: str, right: Mask, expected: str) -> None:
        """Raise TraceError for the first row of a column that is not marked as right."""
        if not right.all():
            raise self.wrong(name, int(np.argmin(right)), expected)

    def wrong(self, name: str, row: int, expected: str) -> TraceError:
        """Return the error about a field: what is there, and what was expected."""
        found = self.columns[name][row][:80] if name in self.columns else ""
        return TraceError.at(self.path, self.lines[row], name, found, expected, self.each)

    def _converted(self, name: str, convert: Callable[[str], float], expected: str) -> Floats:
        column = self.columns[name]
        try:
            return np.fromiter(map(convert, column), np.float64, len(column))
        except (ValueError, TypeError):
            row = next(row for row, value in enumerate(column) if not _converts(convert, value))
            raise self.wrong(name, row, expected) from None

    def _or_nan(self, name: str, read: "Callable[[Table, str], Floats]") -> Floats:
        values = np.full(len(self), math.nan)
        given = self.given(name)
        if given.any():
            column = replace(self, columns={name: self.columns[name]})
            values[given] = read(column.keep(given), name)
        return values


def read_table(path: Path, required: Sequence[str]) -> Table:
    """Read a comma-separated file whose first line names its columns, among them the required ones."""
    with open_table(path) as file:
        lines = csv.reader(file)
        names = [name.strip() for name in next(lines, [])]
        if not any(names):
            raise TraceError(f"{path}: the file is empty; expected a header with {','.join(required)}")
        Table(path, (), dict.fromkeys(names, ())).require(required)
        twice = [name for name in names if name and names.count(name) > 1]
        if twice:
            raise TraceError(f"{path}: line 1: column {twice[0]!r} appears twice; name each column once")
        return _table(path, names, lines)


def read_unnamed(path: Path, names: Sequence[str]) -> Table:
    """Read a tab-separated file without a header; quotes have no meaning."""
    with open_table(path) as file:
        table = _table(path, names, csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not len(table):
        fields = ",".join(names)
        raise TraceError(
            f"{path}: the file is empty; expected lines of {len(names)} fields between tabs: {fields}"
        )
    return table


def first_line(path: Path) -> str:
    """Return the first line of a text file, without its line end."""
    with open_table(path) as file:
        return file.readline().rstrip("\r\n")


def _table(path: Path, names: Sequence[str], reader: "Reader") -> Table:
    rows: list[list[str]] = []
    lines: list[int] = []
    width = len(names)
    for fields in reader:
        if len(fields) == width:
            rows.append(fields)
            lines.append(reader.line_num)
        elif fields:
            found = f"{path}: line {reader.line_num}: {len(fields)} fields"
            raise TraceError(f"{found}; expected {width}: {','.join(names)}")
    columns: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * width
    return Table(path, lines, dict(zip(names, columns, strict=True)))


@contextmanager
def open_table(path: Path) -> Iterator[TextIO]:
    """Open a text file; raise TraceError if it cannot be read."""
    try:
        if path.is_dir():
            raise TraceError(f"{path}: is a folder; expected a file")
        with open_text(path) as file:
            yield file
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        byte = f"byte {error.object[error.start]:#04x}"
        raise TraceError(f"{path}: is not text in UTF-8 ({byte}); expected a text file") from None
    except csv.Error as error:
        raise TraceError(f"{path}: is not a text table: {error}") from None


def _seconds(value: str) -> float:
    return (datetime.fromisoformat(value.strip()) - EPOCH).total_seconds()


def _seconds_in_utc(value: str) -> float:
    return (datetime.fromisoformat(value.strip()) - EPOCH_UTC).total_seconds()


def _converts(convert: Callable[[str], float], value: str) -> bool:
    try:
        convert(value)
    except (ValueError, TypeError):
        return False
    return True
