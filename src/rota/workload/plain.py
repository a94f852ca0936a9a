"""Rota's own trace format: a complete CSV that is read back bit for bit.

| column      | meaning                                                    | if absent or empty            |
|-------------|------------------------------------------------------------|-------------------------------|
| id          | unique name of the job                                     | required                      |
| submit_s    | when it arrives, seconds                                   | required                      |
| gpus        | gang size; below 1, a fraction of one GPU                  | required                      |
| duration_s  | what it took                                               | required                      |
| model       | name of the model                                          | none                          |
| iterations  | work to do                                                 | as many as fill the duration  |
| iteration_s | seconds per iteration, alone on the reference device       | they share the duration       |
| load_s      | of these, loading; stages may overlap                      | from the model's profile      |
| compute_s   | computing                                                  | from the model's profile      |
| sync_s      | synchronising                                              | from the model's profile      |
| startup_s   | seconds that each start costs                              | 0                             |
| priority    | 0 guaranteed, 1 opportunistic                              | drawn                         |
| group       | who submitted it: a user, a team, a queue                  | its model                     |
| kinds       | device kinds it may run on, joined by a bar                | any                           |
| sizes       | gang sizes it may have with seconds per iteration, joined  | only its own                  |
|             | by a bar, as 1:8.0; with its own, if gangs are resized     |                               |
| failed_     | seconds on its slots after which attempts of it failed,    | none                          |
| after_s     | joined by a bar; the last attempt is not among them        |                               |
| failed      | 1 if the job had failed when it ended, else 0              | 0                             |
| speed_KIND  | speed of its model on devices of that kind (any number of  | not known                     |
|             | such columns), relative to the reference device            |                               |

A model without a profile is a mere name; unless a row has its stages, the job never shares GPUs. If
models are drawn, every job without known stages gets one of rota's, with its iteration time, and starts
cost what they cost the models. A job of 0 s without iterations did no work and is left out. Rows may be in
any order.
"""

import csv
import inspect
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import ConfigError, InputError, TraceError, unknown
from rota.core.files import name_of, write_file
from rota.core.registry import describe_error
from rota.core.table import Table, open_table, read_table
from rota.workload.jobs import (
    UNNAMED,
    Workload,
    counted,
    draw_models,
    draw_priorities,
    models_note,
    priorities_note,
    workload,
)
from rota.workload.profiles import MODELS, MeasuredTimes, profiled_s
from rota.workload.public import left_out
from rota.workload.sizes import Sizes

CSV_FIELDS = ("id", "submit_s", "gpus", "duration_s")

STAGES = ("load_s", "compute_s", "sync_s")

SPEED = "speed_"
FAILED_AFTER = "failed_after_s"
SIZES = "sizes"


def read(
    path: Path, seed: int = 0, draw_models: bool = False, measured: MeasuredTimes | None = None
) -> Workload:
    """Read a trace; what a row leaves out is taken from the profile of its model.

    Profiles are those of Muri's models, or `measured` ones; the latter then determine how long a job with
    iterations takes.
    """
    return from_table(read_table(path, CSV_FIELDS), seed, draw_models, measured)


def from_table(
    everything: Table, seed: int = 0, draw_models: bool = False, measured: MeasuredTimes | None = None
) -> Workload:
    """Return the workload of a table that has the columns of this format."""
    says_how_long = draw_models or measured is not None
    table = everything.keep((everything.numbers("duration_s") > 0.0) | _has_work(everything, says_how_long))
    idle = len(everything) - len(table)
    models, drawn = _models(table, seed, draw_models and measured is None)
    priority, unranked = _priorities(table, seed)
    gpus = table.positives("gpus")
    found = measured.columns(models, gpus) if measured else np.full((5, len(table)), np.nan)
    iterations, took_s = table.positives_or_nan("iterations"), table.numbers("duration_s")
    said = [table.positives_or_nan("iteration_s"), *map(table.numbers_or_nan, (*STAGES, "startup_s"))]
    _check_profiles(table, models, found, measured)
    if not draw_models and len(table):
        shared_s = np.where(np.isnan(said[0]) & (took_s > 0.0), took_s / iterations, np.nan)
        found = _either(found, _scaled_profiles(models, gpus, shared_s))
    iteration_s, *stages_s, startup_s = map(_either, said, found)
    return workload(
        name_of(everything.path),
        ids=table.ids("id"),
        submit_s=table.numbers("submit_s"),
        gpus=gpus,
        model=models,
        duration_s=_either(iterations * iteration_s, took_s) if measured else took_s,
        iterations=iterations,
        iteration_s=iteration_s,
        stages_s=stages_s,
        startup_s=startup_s,
        priority=priority,
        group=_groups(table),
        kinds=table.sets("kinds"),
        speeds=_speeds(table, models, measured),
        sizes=_sizes(table),
        failed_after_s=_failed_after_s(table),
        failed=_failed(table),
        notes=[
            *([left_out(idle, len(everything), "they took 0 s")] if idle else []),
            *_overruled(table, models, measured),
            *([models_note(drawn, seed)] if drawn else []),
            *([priorities_note(unranked, seed)] if unranked else []),
        ],
    )


def write(path: Path, jobs: Workload) -> None:
    """Write a workload so that `read` gives it back, but for its name (the file's) and its notes."""
    write_file(path, text(jobs))


def text(jobs: Workload) -> str:
    """Return the workload as CSV text."""
    models = [jobs.models[number] for number in jobs.model.tolist()]
    bare = ~jobs.has_stages & ~np.array([model in MODELS for model in jobs.models], bool)[jobs.model]
    columns: dict[str, Iterable[str]] = {
        "id": jobs.ids,
        "submit_s": _exact(jobs.submit_s),
        "gpus": _exact(jobs.gpus),
        "model": ["" if model == UNNAMED else model for model in models],
        "duration_s": _exact(jobs.duration_s),
        "iterations": _unless(bare & jobs.says_only_duration, jobs.iterations),
        "iteration_s": _unless(bare & jobs.says_only_duration, jobs.iteration_s),
        **{stage: _unless(bare, seconds) for stage, seconds in zip(STAGES, jobs.stages_s, strict=True)},
        "startup_s": _unless(jobs.startup_s == 0.0, jobs.startup_s),
        "priority": map(str, jobs.priority.tolist()),
        "kinds": map("|".join, jobs.kinds or [()] * len(jobs)),
    }
    owners = [jobs.groups[number] for number in jobs.group.tolist()]
    if owners != models:
        columns["group"] = owners
    if jobs.sizes:
        texts = [[f"{gpus}:{_shortest(step_s)}" for gpus, step_s in each] for each in jobs.sizes]
        columns[SIZES] = map("|".join, texts)
    if jobs.failed_after_s:
        columns[FAILED_AFTER] = ["|".join(map(_shortest, each)) for each in jobs.failed_after_s]
    if jobs.failed:
        columns["failed"] = [str(int(each)) for each in jobs.failed]
    for kind, speeds in jobs.speeds.items():
        cells = {model: _shortest(speed) for model, speed in speeds.items()}
        columns[SPEED + kind] = [cells.get(model, "") for model in models]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()


def _exact(column: Floats) -> list[str]:
    return [_shortest(value) for value in column.tolist()]


def _unless(left_out: NDArray[np.bool_], column: Floats) -> list[str]:
    """Return numbers as text, empty where they may be left out."""
    return ["" if out else text for out, text in zip(left_out.tolist(), _exact(column), strict=True)]


def _shortest(value: float) -> str:
    """Return the shortest text that is read back as the same number."""
    return repr(value).removesuffix(".0")


def _has_work(table: Table, says_how_long: bool) -> NDArray[np.bool_]:
    """Return which rows have iterations and a known iteration time."""
    known = np.array([model in MODELS for model in table.optional("model")], bool)
    return table.given("iterations") & (known | table.given("iteration_s") | says_how_long)


def _models(table: Table, seed: int, draws: bool) -> tuple[list[str], int]:
    """Return every job's model, and how many were drawn: for jobs without known stages."""
    named = table.optional("model")
    if not draws:
        return [model or UNNAMED for model in named], 0
    staged = np.logical_or.reduce([table.given(name) for name in STAGES]).tolist()
    bare = [not model or (model not in MODELS and not own) for model, own in zip(named, staged, strict=True)]
    drawn = iter(draw_models(sum(bare), seed))
    return [next(drawn) if draw else model for model, draw in zip(named, bare, strict=True)], sum(bare)


def _groups(table: Table) -> list[str]:
    """Return who submitted each job, or the model in the trace if nobody is named."""
    named, models = table.optional("group"), table.optional("model")
    if any(named):
        return [group or UNNAMED for group in named]
    return [model or UNNAMED for model in models]


def _scaled_profiles(models: Sequence[str], gpus: Floats, iteration_s: Floats) -> Floats:
    """Return five rows: iteration times, the profiles' stages scaled to them, and start-ups of 0 s."""
    names = {model: number for number, model in enumerate(dict.fromkeys(models))}
    profile_s = profiled_s(tuple(names), np.array([names[model] for model in models], np.int64), gpus)
    return np.vstack([iteration_s, profile_s[1:] * (iteration_s / profile_s[0]), np.zeros(len(models))])


def _priorities(table: Table, seed: int) -> tuple[NDArray[np.int64], int]:
    """Return every job's priority, and how many were drawn."""
    given = table.given("priority")
    priority = np.zeros(len(table), np.int64)
    if given.any():
        priority[given] = [int(value) for value in table.keep(given).one_of("priority", ("0", "1"))]
    missing = int(np.count_nonzero(~given))
    priority[~given] = draw_priorities(missing, seed)
    return priority, missing


def _sizes(table: Table) -> list[Sizes]:
    """Return the gang sizes that each job may have, and the seconds per iteration."""
    found: list[Sizes] = []
    for row, texts in enumerate(table.sets(SIZES)):
        pairs = [text.partition(":") for text in texts]
        try:
            found.append(tuple((int(gpus), float(step_s)) for gpus, _, step_s in pairs))
        except ValueError:
            raise table.wrong(SIZES, row, "gang sizes with seconds per iteration, as 1:8.0|2:4.5") from None
    return found


def _failed_after_s(table: Table) -> list[tuple[float, ...]]:
    """Return when attempts of each job failed."""
    found: list[tuple[float, ...]] = []
    for row, texts in enumerate(table.sets(FAILED_AFTER)):
        try:
            found.append(tuple(map(float, texts)))
        except ValueError:
            found.append((math.nan,))
        if not all(0.0 < at_s < math.inf for at_s in found[-1]):
            raise table.wrong(FAILED_AFTER, row, "numbers above 0, joined by a bar")
    return found


def _failed(table: Table) -> list[bool]:
    """Return whether each job had failed when it ended."""
    given = table.given("failed")
    failed = np.zeros(len(table), np.bool_)
    if given.any():
        failed[given] = [value == "1" for value in table.keep(given).one_of("failed", ("0", "1"))]
    return failed.tolist()


def _either(first: Floats, second: Floats) -> Floats:
    """Return the first, and the second where that is NaN."""
    return np.where(np.isnan(first), second, first)


def _check_profiles(
    table: Table, models: Sequence[str], found: Floats, measured: MeasuredTimes | None
) -> None:
    """Raise if a model without a profile has some of its times in a row, but not all."""
    given = [table.given(name) for name in ("iteration_s", *STAGES)]
    complete = np.logical_and.reduce(given)
    begun = np.logical_or.reduce(given[1:]) | (measured is not None)
    for row in np.flatnonzero(begun & ~complete & np.isnan(found[0])).tolist():
        if models[row] not in MODELS:
            expected = f"measured ({', '.join(MODELS)}): give its iteration_s and {', '.join(STAGES)}"
            raise TraceError.at(table.path, table.lines[row], "model", models[row], expected, table.each)


def _overruled(table: Table, models: Sequence[str], measured: MeasuredTimes | None) -> Iterator[str]:
    """Yield the note on jobs with iteration times of their own, though their model was measured."""
    if measured is None:
        return
    known = np.array([model in measured.rows for model in models], bool)
    jobs = int(np.count_nonzero(known & table.given("iteration_s")))
    if jobs:
        yield f"iteration_s in the trace for {counted(jobs)}: that counts, not what {measured.source} says"


def _speeds(
    table: Table, models: Sequence[str], measured: MeasuredTimes | None
) -> Mapping[str, Mapping[str, float]]:
    """Return device kind → model → speed: those of the rows, or else the measured ones."""
    speeds: dict[str, dict[str, float]] = {}
    for column in table.columns:
        if column.startswith(SPEED):
            row_of = speeds.setdefault(column.removeprefix(SPEED), {})
            for row, speed in enumerate(table.positives_or_nan(column).tolist()):
                if not math.isnan(speed) and row_of.setdefault(models[row], speed) != speed:
                    raise table.wrong(
                        column, row, f"{_shortest(row_of[models[row]])}, as in another row of its model"
                    )
    for kind, known in (measured.speeds if measured else {}).items():
        found = {model: known[model] for model in dict.fromkeys(models) if model in known}
        speeds[kind] = {**found, **speeds.get(kind, {})}
    return speeds


Reader = Callable[..., Any]


EXAMPLE = f"yield {{{', '.join(f'{name!r}: …' for name in CSV_FIELDS)}}} for each job"


def read_with(
    reader: Reader,
    path: Path,
    seed: int = 0,
    draw_models: bool = False,
    *,
    options: Mapping[str, Any] | None = None,
    measured: MeasuredTimes | None = None,
    name: str = "",
) -> Workload:
    """Read a trace with a function of an open file; `name` is what errors call the function.

    The file is text, decompressed if need be; its bytes are in `file.buffer`.
    """
    name = name or getattr(reader, "__name__", type(reader).__name__)
    given = dict(options or {})
    _check(reader, given, name)
    with open_table(path) as file:
        try:
            found = reader(file, **given)
            if isinstance(found, Workload):
                return _whole(found, name, draw_models or bool(measured and measured.rows))
            rows = list(_rows(found, name))
        except (InputError, OSError, UnicodeDecodeError):
            raise
        except Exception as error:
            raise TraceError(f"{path}: {name}: {describe_error(error, _file_of(reader))}") from error
    if not rows:
        raise TraceError(f"{path}: no jobs in it, says {name}")
    columns = {key: [_cell(row.get(key)) for row in rows] for key in _keys(rows)}
    table = Table(path, range(1, len(rows) + 1), columns, f"{name}: row")
    table.require(CSV_FIELDS)
    return from_table(table, seed, draw_models, measured)


def _check(reader: Any, options: Mapping[str, Any], name: str) -> None:
    """Raise unless the reader can be called with a file and these options."""
    if not callable(reader):
        raise ConfigError(f"{name}: is not a function, but {type(reader).__name__}; name a function")
    try:
        signature = inspect.signature(reader)
    except (TypeError, ValueError):  # built in: it does not say
        return
    known = [each.name for each in list(signature.parameters.values())[1:]]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for option in options:
        if option not in known and not takes_any:
            raise ConfigError(f"{name}: {unknown('option', option, known)}")
    try:
        signature.bind(None, **options)
    except TypeError as error:
        raise ConfigError(
            f"{name}: cannot be called with an open file ({error}); write def {name.rpartition(':')[2]}(file)"
        ) from None


def _whole(found: Workload, name: str, says_more: bool) -> Workload:
    """Return a reader's workload; raise if models or profiles were also asked for."""
    if says_more:
        raise ConfigError(
            f"{name}: gives a Workload, which says how long its jobs take; leave out draw_models and profiles"
        )
    return found


def _rows(found: Any, name: str) -> Iterable[Mapping[str, Any]]:
    """Yield what a reader returned, row by row."""
    if hasattr(found, "to_dict") and not isinstance(found, Mapping):
        found = found.to_dict("records")
    if isinstance(found, Mapping | str | bytes) or not isinstance(found, Iterable):
        raise TraceError(f"{name}: gave a {type(found).__name__}; {EXAMPLE}, or return a rota.Workload")
    for number, row in enumerate(found, 1):
        if not isinstance(row, Mapping):
            raise TraceError(f"{name}: row {number} is a {type(row).__name__}; {EXAMPLE}")
        yield row


def _keys(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(key) for row in rows for key in row))


def _cell(value: Any) -> str:
    """Return a value as CSV text; None and NaN are empty, and lists are joined by bars."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return "|".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _file_of(reader: Any) -> Path | None:
    code = getattr(reader, "__code__", None)
    return Path(code.co_filename) if code else None
