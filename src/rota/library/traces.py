"""Workloads from files and from a seed."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rota.core.errors import ConfigError, unknown
from rota.core.shipped import located
from rota.workload import formats
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate


def read_trace(
    path: str | os.PathLike[str],
    format: str | Callable[..., Any] | None = None,
    *,
    seed: int = 0,
    draw_models: bool = False,
    startup_s: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Workload:
    """Read a trace of jobs from a file.

    Formats are `csv` (rota's own), `muri`, `philly`, `azure`, `gavel`, `pollux`, `helios` and `alibaba`; the
    format is guessed from the file unless it is given. It may also be a function, or the name of one
    (`"mine.py:read_mine"`), that takes an open file, and `options` by their names, and gives the jobs: a
    dictionary each, with the columns of `csv`, or a whole `Workload`. A job takes as long as the trace says,
    and starting it costs nothing unless the trace says so or `startup_s` is given. With `draw_models`, jobs
    whose stages are not known get models of rota's, drawn from `seed`: then starts cost what they cost these
    models, and schedulers that share GPUs can share them. What was drawn is said in the `notes` of the
    workload. Files may be compressed (.gz, .zst), and pipes are read, too. A trace that comes with rota,
    `config/workload/shipped.csv`, is found from any folder that has no file of that name. Raises
    `rota.RotaError` if the file cannot be read.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import rota
    >>> rows = "id,submit_s,gpus,duration_s,model,priority\\na,0,1,600,bert,0\\nb,10,2,300,vgg16,1\\n"
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.csv")
    ...     _ = file.write_text(rows)
    ...     rota.read_trace(str(file))
    Workload('two', 2 jobs)

    >>> def read_lines(file, gpus=1):
    ...     for line in file:
    ...         name, minute, minutes = line.split()
    ...         yield {
    ...             "id": name, "submit_s": 60 * int(minute), "gpus": gpus, "duration_s": 60 * int(minutes)
    ...         }
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.txt")
    ...     _ = file.write_text("a 0 30\\nb 5 10\\n")
    ...     rota.read_trace(file, read_lines, options={"gpus": 2}).duration_s.tolist()
    [1800.0, 600.0]
    """
    jobs = formats.read(located(Path(path)), format, seed, draw_models, options=options)
    return jobs if startup_s is None else jobs.with_startup(startup_s)


def synthetic_trace(**settings: Any) -> Workload:
    """Make up a workload from a seed: arrivals, heavy-tailed durations, gang sizes and models.

    `jobs` (1000), `gpus` (64: the cluster that the load refers to), `load` (0.85), `arrivals` (`bursty` or
    `poisson`), `median_s` (1800) and `seed` (0) are the settings that matter most; the others are the fields
    of `rota.workload.synthetic.SyntheticConfig`. The same settings give the same workload.

    >>> import rota
    >>> rota.synthetic_trace(jobs=20, gpus=8, load=0.5, seed=3)
    Workload('synthetic-3', 20 jobs)
    """
    known = SyntheticConfig.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise ConfigError(unknown("setting", name, known))
    return generate(SyntheticConfig(**settings))
