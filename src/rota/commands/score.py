"""`rota score`: measure how fast this machine trains, or every node of a Ray cluster."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.commands.common import say
from rota.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.core.population.scores import Resources, Score, ScoredDevice, Scores
    from rota.training.score import Benchmark, Bundle, MeasuredBundle

    Found = dict[ScoredDevice, MeasuredBundle]

RES, OUT = Path("res.json"), Path("score.json")
BUSY = 0.05
"""A bundle that waits for a larger share of the time is not alone."""
APART = 0.1
"""Runs that lie apart by a larger share of the score are not to be trusted."""


def add_parser(subparsers: Any) -> None:
    """Add `score`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "score",
        help="measure how fast this machine trains",
        description="Train a network on a bundle of cores, and on a GPU if there is one, and write how many "
        "images per second that makes. Scores of other machines in the file are kept.",
    )
    add = parser.add_argument
    res = f"cores, GPUs per bundle of each machine ({RES} if it is there; else this one's cores, and a GPU)"
    add("--res", type=Path, metavar="JSON", help=res)
    add("--address", metavar="HOST:PORT", help="measure every node of this Ray cluster instead; or auto")
    add("--out", type=Path, default=OUT, metavar="JSON", help=f"where scores go ({OUT})")
    options: tuple[tuple[str, type, str, str], ...] = (
        ("--model", str, "NAME", "the network that is trained (convnet2)"),
        ("--data", str, "NAME", "what it learns (digits)"),
        ("--batch-size", int, "N", "images per step (64)"),
        ("--seconds", float, "S", "measure each bundle for so long (5)"),
    )
    for flag, kind, metavar, meaning in options:
        add(flag, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=meaning)
    add("--json", action="store_true", help="print JSON instead of text")


class ScoreOutcome(NamedTuple):
    """Scores that were asked for, were known, and have been measured."""

    resources: "Resources"
    before: "Scores"
    found: "Found"
    work: str

    @property
    def scores(self) -> "Scores":
        """Entries in the order of what was asked, then what else there was before."""
        asked = {place: self._score(place) for place in self.resources if place in self.found | self.before}
        return asked | {place: score for place, score in self.before.items() if place not in asked}

    def _score(self, place: "ScoredDevice") -> "Score":
        from rota.core.population.scores import Score

        if place not in self.found:
            return self.before[place]
        score, spread = _rounded(self.found[place].score), _rounded(self.found[place].spread)
        return Score(self.resources[place], score, spread, self.work)


def run(args: argparse.Namespace) -> int:
    """Measure; prints a line per entry of this machine, and the file."""
    from rota.core.population.scores import write_scores
    from rota.training.score import Benchmark

    names = ("model", "data", "batch_size", "seconds")
    benchmark = Benchmark(**{name: value for name, value in vars(args).items() if name in names})
    before = _before(args.out)
    resources, found = _asked_and_found(args, benchmark)
    outcome = ScoreOutcome(resources, before, found, str(benchmark))
    write_scores(args.out, outcome.scores)
    for note in _notes(outcome):
        say(f"note: {note}", file=sys.stderr)
    say(_json(args.out, outcome) if args.json else _text(args.out, outcome))
    return 0


def _asked_and_found(args: argparse.Namespace, benchmark: "Benchmark") -> "tuple[Resources, Found]":
    if args.address is None:
        resources = _resources(args.res)
        return resources, _measured(benchmark, resources)

    from rota.commands.score_ray import measured_on_ray
    from rota.core.population.scores import read_resources

    return measured_on_ray(args.address, benchmark, read_resources(args.res) if args.res else None)


def _resources(path: Path | None) -> "Resources":
    """Return what a file says; without one, a bundle of all cores here, and one GPU if there is any."""
    from rota.core.population.scores import ScoredDevice, read_resources

    if path is not None or RES.exists():
        return read_resources(path or RES)

    import torch

    from rota.core.cluster import own_cores

    found = {ScoredDevice("127.0.0.1", "CPU"): len(own_cores())}
    return found | ({ScoredDevice("127.0.0.1", "GPU"): 1} if torch.cuda.is_available() else {})


def _before(path: Path) -> "Scores":
    """Return the scores that are in the file already."""
    from rota.core.population.scores import expanded, read_scores

    return read_scores(path) if expanded(path).exists() else {}


def _measured(benchmark: "Benchmark", resources: "Resources") -> "Found":
    """Measure the entries of this machine. Equal bundles under two names are measured once."""
    from rota.core.population.scores import is_here
    from rota.training.score import Bundle, check_fits, measure_apart

    here = {place: Bundle(place.device, core) for place, core in resources.items() if is_here(place.ip)}
    if not here:
        names = ", ".join(dict.fromkeys(place.ip for place in resources)) or "nothing"
        raise InputError(
            f"none of the machines is this one ({names}), and it can only measure itself; add 127.0.0.1"
        )
    bundles = list(dict.fromkeys(here.values()))
    for bundle in bundles:
        check_fits(bundle)
    with _bar(bundles) as on_run:
        found = {bundle: measure_apart(benchmark, bundle, on_run) for bundle in bundles}
    return {place: found[bundle] for place, bundle in here.items()}


def _notes(outcome: ScoreOutcome) -> Iterator[str]:
    """Return what to know before the scores are used."""
    resources, before, found, work = outcome
    for place, measured in found.items():
        yield from (f"{place}: {note}" for note in _doubts(measured))
        if place.device == "GPU" and resources[place] > 1:
            yield f"{place}: a trial trains on one GPU, so a bundle of {resources[place]} is as fast as one"
    for place, core in resources.items():
        if place not in found and place not in before:
            yield f"{place}: another machine, without a score; run rota score there and add its entry"
        elif place not in found and before[place].core != core:
            yield f"{place}: asked for {core} per bundle, but its score is for {before[place].core}"
    for place, score in before.items():
        if place not in found and score.work != work:
            of = score.work or "something unknown"
            yield f"{place}: its score is kept; it is of {of}, not of {work}: they cannot be compared"


def _doubts(measured: "MeasuredBundle") -> Iterator[str]:
    if measured.waited > BUSY:
        yield (
            f"waited {measured.waited:.0%} of the time for a processor, because others work on this machine; "
            "measure again when it is quiet"
        )
    if measured.spread > APART * measured.score:
        yield (
            f"the runs lie {measured.spread / measured.score:.0%} apart; measure for longer with --seconds, "
            "on a quiet machine"
        )


def _text(out: Path, outcome: ScoreOutcome) -> str:
    lines = [
        f"{place}  {_rounded(measured.score):g} images/s, spread {measured.spread / measured.score:.1%}  "
        f"({measured.device})"
        for place, measured in outcome.found.items()
    ]
    return "\n".join([*lines, str(out)])


def _json(out: Path, outcome: ScoreOutcome) -> str:
    """Return all that was measured, and which entries are old or missing."""
    resources, _, found, work = outcome
    scores = outcome.scores
    old = {place: score for place, score in scores.items() if place not in found}
    answer = {
        "out": str(out),
        "unit": "images/s",
        "work": work,
        "measured": [
            _entry(place, scores[place].core, score=scores[place].score, spread=scores[place].spread)
            | {"runs": list(measured.rates), "waited": measured.waited, "name": measured.device}
            for place, measured in found.items()
        ],
        "kept": [_entry(place, score.core, score=score.score) for place, score in old.items()],
        "missing": [_entry(place, core) for place, core in resources.items() if place not in scores],
    }
    return json.dumps(answer, indent=2, allow_nan=False)


def _entry(place: "ScoredDevice", core: int, **more: Any) -> dict[str, Any]:
    return {"ip": place.ip, "device": place.device, "core": core, **more}


def _rounded(value: float) -> float:
    """Return a value to four digits: no measurement is better than that."""
    return float(f"{value:.4g}")


@contextmanager
def _bar(bundles: "list[Bundle]") -> Iterator["Callable[[], None]"]:
    from rota.library.processes import progress_bar
    from rota.training.score import RUNS

    total = (1 + RUNS) * len(bundles)
    with progress_bar(total, "run", dynamic_ncols=True) as bar:
        yield lambda: bar.update() and None
