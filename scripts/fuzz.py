"""Damages inputs of every kind, and looks at what commands make of them.

    bash scripts/fuzz.sh [--cases N] [--seconds S] [--seed N] [--only NAME] [--case N] [--keep DIR]

Traces, configurations, recordings, agents and run folders are damaged, and read by a command that reads
such: it must end in time and within its memory, with exit code 0, 1 or 2, a sentence if it is 2, and nothing
else: no traceback, no warning, no control character. Nothing is trained: what would begin to is stopped.

The damage follows from the seed and the number of the case. What failed is kept, and `--case N` runs it
again.
"""

import argparse
import io
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"  # threads do not survive a fork

from fuzz_subjects import IN, Subject, damage, prepare, subjects  # noqa: E402

from rota.cli import main as rota_main  # noqa: E402
from rota.core.errors import InputError  # noqa: E402

CPU_S, WALL_S = 30, 90.0
"""Of one case: more is a hang. The longest that is none takes about two seconds."""
MEMORY = 2 << 30
"""Bytes that a case may take beyond what there is when it begins."""
RAISED = 99
"""The exit code of a case that raised something."""
BUSY_S = 0.005
BEGINS = "training would begin"
OWN = ("out.txt", "err.txt")


class Begun(InputError):
    """Training would begin now."""


@dataclass(frozen=True)
class Case:
    """One damaged input, and the command that is to read it."""

    number: int
    subject: Subject
    random: Random
    folder: Path

    @property
    def input(self) -> Path:
        return self.folder / "in"


@dataclass(frozen=True)
class Failure:
    """What a command did that it must not."""

    number: int
    subject: str
    command: str
    what: str
    where: str
    """The end of the traceback, to tell one defect from another."""


@dataclass(frozen=True)
class Verdict:
    """How a case ended."""

    refused: bool
    """With exit code 2 and a sentence."""
    failure: Failure | None


def case_of(seed: int, number: int, known: list[Subject], work: Path) -> Case:
    """Everything about a case follows from the seed and its number."""
    random = Random(f"{seed}/{number}")
    return Case(number, random.choice(known), random, work / f"case{number}")


def begin(case: Case, ground: Path) -> int:
    """Start a case in a process of its own; its id."""
    shutil.copytree(ground / case.subject.name, case.input)
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        _limit()
        code = _carry_out(case)
    except BaseException:
        traceback.print_exc()
        code = RAISED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 29, 1 << 29))


def _carry_out(case: Case) -> int:
    """In the process of the case: damage its input, run its command."""
    os.chdir(case.folder)
    damaged = damage(case.random, case.input, case.subject.files)
    words = case.random.choice(case.subject.commands).replace(IN, "in").split()
    case.folder.joinpath("command.txt").write_text(f"rota {' '.join(words)}\n# damaged: {damaged}\n")
    if words[0] == "cd":
        os.chdir(words[1])
        words = words[2:]
    out, err = (case.folder.joinpath(name).open("w", errors="strict") for name in OWN)
    with redirect_stdout(out), redirect_stderr(err), out, err:
        try:
            return rota_main(words)
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else RAISED
        except BaseException:
            traceback.print_exc()
            return RAISED


def verdict_of(case: Case, status: int, late: bool) -> Verdict:
    """How a case ended, and what is wrong with that, if anything is."""
    out, err = (_read(case.folder / name) for name in OWN)
    code = os.waitstatus_to_exitcode(status)
    what, where = _wrong(code, late, out, err)
    command = _read(case.folder / "command.txt").partition("\n")[0]
    failure = Failure(case.number, case.subject.name, command, what, where) if what else None
    return Verdict(code == 2 and failure is None and BEGINS not in err, failure)


def _wrong(code: int, late: bool, out: str, err: str) -> tuple[str, str]:
    if late or code == -signal.SIGXCPU:
        return "hang", "took too long"
    if code == RAISED or "Traceback (most recent call last)" in err:
        lines = err.strip().splitlines() or ["?"]
        places = re.findall(r'File "[^"]*/(?:rota|scripts)/([^"]+)", line (\d+)', err)
        return "traceback", f"{':'.join(places[-1]) if places else '?'} {lines[-1][:150]}"
    if code not in (0, 1, 2):
        return f"exit code {code}", err[-200:]
    if warning := re.search(r"^.*Warning: .*$", err, re.MULTILINE):
        return "warning", warning[0][-200:]
    if code == 2 and not re.search(r"^rota[\w -]*: error: \S", err, re.MULTILINE):
        return "no sentence", err[-200:]
    if odd := [char for char in out + err if not char.isprintable() and char not in "\n\r\t"]:
        return "control character", f"{odd[0]!r} in {(err if odd[0] in err else out)[:200]!r}"
    return "", ""


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def run_all(numbers: Iterator[int], args: argparse.Namespace, ground: Path, work: Path) -> Iterator[Verdict]:
    """Cases side by side, until there are no more or the time is over; how each ended."""
    known = [each for each in subjects() if args.only in each.name]
    if not known:
        raise SystemExit(f"fuzz: --only {args.only}: there is no such subject")
    running: dict[int, tuple[Case, float]] = {}
    until_s = time.monotonic() + args.seconds
    while True:
        while len(running) < args.workers and time.monotonic() < until_s:
            number = next(numbers, None)
            if number is None:
                break
            case = case_of(args.seed, number, known, work)
            running[begin(case, ground)] = case, time.monotonic() + WALL_S
        if not running:
            return
        yield from _ended(running, args.keep)
        time.sleep(BUSY_S)


def _ended(running: dict[int, tuple[Case, float]], keep: Path) -> Iterator[Verdict]:
    for child, (case, limit_s) in list(running.items()):
        late = time.monotonic() > limit_s
        if late:
            os.killpg(child, signal.SIGKILL)
        done, status = os.waitpid(child, 0 if late else os.WNOHANG)
        if done:
            del running[child]
            verdict = verdict_of(case, status, late)
            if verdict.failure:
                shutil.rmtree(keep / case.folder.name, ignore_errors=True)
                shutil.copytree(case.folder, keep / case.folder.name, ignore_dangling_symlinks=True)
            shutil.rmtree(case.folder, ignore_errors=True)
            yield verdict


@contextmanager
def nothing_trains() -> Iterator[None]:
    """What would start processes, train or learn for long says so instead."""
    from rota.commands import run_jobs
    from rota.execution import local, ray_config, slurm_config
    from rota.learning import runs
    from rota.learning.placement import compare
    from rota.learning.placement import run as placing
    from rota.library import real_run
    from rota.training import run as training
    from rota.training.recorder import record

    def population(self: Any, *_: Any) -> None:
        self.order.population_spec(self.order.config.seed)
        self._warm_up()
        raise Begun(BEGINS)

    def jobs(self: Any, *_: Any) -> None:
        self.order.jobs_spec()
        raise Begun(BEGINS)

    def refuse(*_: Any, **__: Any) -> None:
        raise Begun(BEGINS)

    replaced: list[tuple[Any, str, Callable[..., Any]]] = [
        (real_run.RealRun, "carry_out", population),
        (run_jobs.JobsRun, "carry_out", jobs),
        (local.LocalConfig, "workers", refuse),
        (ray_config.RayConfig, "workers", refuse),
        (slurm_config.SlurmConfig, "workers", refuse),
        (runs, "_carried", refuse),
        (placing, "learn", refuse),
        (compare, "compare", refuse),
        (training.TrainingRun, "epochs", refuse),
        (record, "record", refuse),
    ]
    before = [getattr(owner, name) for owner, name, _ in replaced]
    for owner, name, new in replaced:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for (owner, name, _), old in zip(replaced, before, strict=True):
            setattr(owner, name, old)


def rota(*words: object) -> None:
    """A command on sound inputs: what all cases begin with."""
    code = rota_main([str(word) for word in words])
    if code != 0:
        raise SystemExit(f"fuzz: rota {' '.join(map(str, words))}: exit code {code} with nothing damaged")


def warm_up(ground: Path, only: str) -> None:
    """Run every command once on sound inputs, so that cases find compiled what they need."""
    wrong = []
    for subject in subjects():
        if only not in subject.name:
            continue
        for command in subject.commands:
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(ground / subject.name, Path(folder) / "in")
                before = Path.cwd()
                os.chdir(folder)
                words = command.replace(IN, "in").split()
                if words[0] == "cd":
                    os.chdir(words[1])
                    words = words[2:]
                try:
                    with (
                        Path(os.devnull).open("w") as void,
                        redirect_stdout(void),
                        redirect_stderr(said := io.StringIO()),
                    ):
                        code = rota_main(words)
                finally:
                    os.chdir(before)
            if code != 0 and BEGINS not in said.getvalue():
                wrong.append(f"{subject.name}: rota {command}: {said.getvalue()}")
    if wrong:
        raise SystemExit("\n".join(["fuzz: with nothing damaged:", *wrong]))


def main() -> int:
    args = _arguments()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rota-fuzz-") as folder:
        ground, work = Path(folder) / "ground", Path(folder) / "work"
        ground.mkdir()
        work.mkdir()
        with Path(os.devnull).open("w") as void, redirect_stdout(void):
            prepare(ground, rota)
        print(f"prepared in {time.monotonic() - began_s:.0f} s", flush=True)
        with nothing_trains():
            warm_up(ground, args.only)
            print(f"warm after {time.monotonic() - began_s:.0f} s", flush=True)
            numbers = iter(args.case or range(args.first, args.first + args.cases))
            ended = list(_reported(run_all(numbers, args, ground, work), args))
    failures = [each.failure for each in ended if each.failure]
    took_s = time.monotonic() - began_s
    for (what, where), count in Counter((each.what, each.where) for each in failures).most_common():
        first = next(each for each in failures if (each.what, each.where) == (what, where))
        print(f"{count:5} × {what}: {where}\n        case {first.number}, {first.subject}: {first.command}")
    kinds = Counter(each.what for each in failures)
    others = len(failures) - kinds["traceback"] - kinds["hang"]
    print(
        f"{len(ended):,} cases with seed {args.seed}: {sum(each.refused for each in ended):,} refusals, "
        f"{kinds['traceback']} tracebacks, {kinds['hang']} hangs, {others} other failures; {took_s:.0f} s"
    )
    return 1 if failures else 0


def _reported(ended: Iterator[Verdict], args: argparse.Namespace) -> Iterator[Verdict]:
    for verdict in ended:
        if failure := verdict.failure:
            kept = args.keep / f"case{failure.number}"
            print(
                f"case {failure.number}, {failure.subject}: {failure.what}: {failure.where}; kept in {kept}",
                flush=True,
            )
        yield verdict


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz.sh", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--cases", type=int, default=5000, metavar="N", help="how many (5000)")
    add("--first", type=int, default=0, metavar="N", help="number of the first (0)")
    add("--seconds", type=float, default=3600.0, metavar="S", help="begin no more cases after this (an hour)")
    add("--seed", type=int, default=0, metavar="N", help="another one damages otherwise (0)")
    add("--case", type=int, action="append", metavar="N", help="only this one; may be repeated")
    add("--only", default="", metavar="NAME", help="only subjects that have this in their name")
    add(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="cases side by side (one per core)",
    )
    add(
        "--keep",
        type=Path,
        default=Path("results/fuzz"),
        metavar="DIR",
        help="where failures go (results/fuzz)",
    )
    args = parser.parse_args()
    args.keep = args.keep.absolute()
    return args


if __name__ == "__main__":
    sys.exit(main())
