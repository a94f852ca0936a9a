"""`rota recordings`: say what was recorded, and take in what others have measured."""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import draw_into, given_file, say
from rota.core.errors import InputError

if TYPE_CHECKING:
    from rota.recordings.folder import Provenance

DEFAULT = Path("results") / "recordings"

Parsers = Any
"""What `ArgumentParser.add_subparsers` returns; its class is private."""

VERBS = "{describe,adaptation,growth,from-run,merge,import-adaptation,import-gavel,import-pollux}"


def add_parser(subparsers: Parsers) -> None:
    """Add `recordings` and its verbs. Nothing heavy is imported for it."""
    recordings = subparsers.add_parser("recordings", help="describe recordings of training, and import them")
    verbs = recordings.add_subparsers(dest="verb", required=True, metavar=VERBS)
    _add_describe(verbs.add_parser("describe", help="say what was recorded and what is missing"))
    _add_describe(verbs.add_parser("adaptation", help="does it pay to change networks? trees summed up"))
    _add_describe(verbs.add_parser("growth", help="when does it pay to grow? growth trees summed up"))
    from_run = verbs.add_parser("from-run", help="profiles from a real run of jobs")
    _add_import(
        from_run, "DIR", "the folder of a run of jobs, as given with rota run … --out", "this machine"
    )
    merge = verbs.add_parser("merge", help="profiles of several devices or models as one recording")
    merge.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="recordings of profiles")
    merge.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write it")
    adaptation = verbs.add_parser("import-adaptation", help="a table of change sequences, as trees")
    adaptation.add_argument("--model", required=True, metavar="NAME", help="the model that was changed")
    adaptation.add_argument("--data", default="cifar10", metavar="NAME", help="its data set (cifar10)")
    adaptation.add_argument(
        "--actions", type=int, metavar="N", help="how many there are, the last to do nothing (as found)"
    )
    _add_import(adaptation, "FILE.csv", "scenario, actions, times left, total time, accuracy", "unknown")
    gavel = verbs.add_parser("import-gavel", help="Gavel's measured throughputs, as profiles")
    _add_import(gavel, "FILE.json", "simulation_throughputs.json, or one like it")
    pollux = verbs.add_parser("import-pollux", help="Pollux's measured applications, as profiles and curves")
    _add_import(pollux, "FOLDER", "an application with its placements.csv, or a folder of them", "t4")


def run(args: argparse.Namespace) -> int:
    """Carry out the verb."""
    verbs = {
        "describe": _describe,
        "adaptation": _adaptation,
        "growth": _growth,
        "from-run": _from_run,
        "merge": _merge,
        "import-adaptation": _import_adaptation,
        "import-gavel": _import_gavel,
        "import-pollux": _import_pollux,
    }
    verbs[args.verb](args)
    return 0


def _add_describe(parser: argparse.ArgumentParser) -> None:
    folder = f"where they are ({DEFAULT})"
    parser.add_argument(
        "folder", type=given_file, nargs="?", default=str(DEFAULT), metavar="FOLDER", help=folder
    )
    parser.add_argument("--figure", type=Path, metavar="PNG", help="also draw it into this file")


def _add_import(parser: argparse.ArgumentParser, metavar: str, meaning: str, device: str = "") -> None:
    parser.add_argument("source", type=Path, metavar=metavar, help=meaning)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write it")
    parser.add_argument(
        "--source", dest="origin", default="", metavar="TEXT", help="who measured it, and where"
    )
    if device:
        text = f"what it was measured on, if not {device}" if device != "unknown" else "what it ran on"
        parser.add_argument("--device", default=device, metavar="NAME", help=text)


def _describe(args: argparse.Namespace) -> None:
    from rota.recordings.describe import text
    from rota.recordings.library import read_library

    library = read_library(args.folder)
    if args.figure is not None:
        from rota.figures.recordings import recordings_figure

        draw_into(recordings_figure(library, _command(args)), args.figure)
    say(text(library))


def _adaptation(args: argparse.Namespace) -> None:
    from rota.recordings.describe import table
    from rota.recordings.library import read_library

    trees = [held.what for held in read_library(args.folder).trees]
    _note_missing(
        args, [(f"{each.model} {each.scenario}", each.missing()) for each in trees], "tree", "quick"
    )
    if args.figure is not None:
        from rota.figures.trees import adaptation_figure

        draw_into(adaptation_figure(trees, _command(args)), args.figure)
    say(table(trees))


def _growth(args: argparse.Namespace) -> None:
    from rota.recordings.gains import table
    from rota.recordings.library import read_library

    trees = [held.what for held in read_library(args.folder).growth]
    _note_missing(args, [(each.name, each.missing()) for each in trees], "growth tree", "growth-quick")
    if args.figure is not None:
        from rota.figures.growth import growth_figure

        draw_into(growth_figure(trees, _command(args)), args.figure)
    say(table(trees))


def _note_missing(
    args: argparse.Namespace, trees: Sequence[tuple[str, object]], what: str, config: str
) -> None:
    """Note which trees, given by name with what they lack, are incomplete; raise InputError if all are."""
    if all(missing for _, missing in trees):
        first = f"record one first: rota record config/record/{config}.toml"
        raise InputError(f"{args.folder}: no complete {what}; {first}")
    for name, missing in trees:
        if missing:
            say(f"note: {name} is not complete, left out", file=sys.stderr)


def _command(args: argparse.Namespace) -> str:
    return f"rota recordings {args.verb} {args.folder} --figure {args.figure}"


def _import_adaptation(args: argparse.Namespace) -> None:
    from rota.recordings.adaptation import read_adaptation
    from rota.recordings.tree import folder_name, write_tree

    command = f"rota recordings import-adaptation {args.source.name} --model {args.model}"
    command += f" --actions {args.actions}" if args.actions is not None else ""
    origin = _provenance(args, args.device, command, args.source)
    trees = read_adaptation(args.source, args.model, args.data, origin, args.actions)
    folders = [args.out / folder_name(tree) for tree in trees]
    _check_free(*folders)
    for folder, tree in zip(folders, trees, strict=True):
        write_tree(folder, tree)
        sequences = f"{len(tree.sequences())} of {len(tree.all_sequences)} sequences"
        say(f"{folder}: {sequences} of {', '.join(tree.actions)}")


def _from_run(args: argparse.Namespace) -> None:
    from rota.commands.profiles_of_run import profiles_of_run
    from rota.execution.folder import RealFolder
    from rota.recordings.profile import Profiles, write_profiles

    rows = profiles_of_run(args.source, args.device)
    command = f"rota recordings from-run {args.source.name}"
    origin = _provenance(args, args.device, command, RealFolder(args.source).paths(0).journal)
    _check_free(args.out)
    write_profiles(args.out, Profiles(tuple(rows), origin))
    for row in rows:
        other = f" beside {row.beside}" if row.beside else ""
        say(f"{row.model} on {row.gang}{other}: {1000 * row.iteration_s:.2f} ms per iteration")


def _merge(args: argparse.Namespace) -> None:
    from rota.recordings.folder import provenance
    from rota.recordings.profile import merged, read_profiles, write_profiles

    found = {str(folder): read_profiles(folder) for folder in args.folders}
    devices = dict.fromkeys(device for profiles in found.values() for device in profiles.devices)
    command = f"rota recordings merge {' '.join(found)}"
    origin = provenance(device=", ".join(devices), seed=None, command=command, libraries=(), note="merged")
    profiles = merged(found, origin)
    _check_free(args.out)
    write_profiles(args.out, profiles)
    models = f"{len(profiles.models)} models on {', '.join(devices)}"
    say(f"{args.out}: {len(profiles.rows):,} profiles of {models}")


def _import_gavel(args: argparse.Namespace) -> None:
    from rota.recordings.gavel import as_profiles, read_throughputs_file
    from rota.recordings.profile import write_profiles

    measured = read_throughputs_file(args.source)
    command = f"rota recordings import-gavel {args.source.name}"
    profiles = as_profiles(measured, _provenance(args, ", ".join(measured.devices), command, args.source))
    _check_free(args.out)
    write_profiles(args.out, profiles)
    alone = sum(not row.beside for row in profiles.rows)
    say(f"{args.out}: {alone:,} profiles alone, {len(profiles.rows) - alone:,} beside another")


def _import_pollux(args: argparse.Namespace) -> None:
    from rota.recordings.curve import write_curves
    from rota.recordings.pollux import CURVES, PROFILES, applications, as_curves, as_profiles
    from rota.recordings.profile import write_profiles

    command = f"rota recordings import-pollux {args.source.name} --device {args.device}"
    read = {}
    for folder in applications(args.source):
        origin = _provenance(args, args.device, command, *sorted(folder.glob("*.csv")))
        target = args.out / folder.resolve().name
        read[target] = as_profiles(folder, args.device, origin), as_curves(folder, args.device, origin)
    _check_free(*(target / name for target in read for name in (PROFILES, CURVES)))
    for target, (profiles, curves) in read.items():
        write_profiles(target / PROFILES, profiles)
        write_curves(target / CURVES, curves)
        say(f"{target}: {len(profiles.rows):,} profiles, {len(curves.settings)} curves")


def _provenance(args: argparse.Namespace, device: str, command: str, *sources: Path) -> "Provenance":
    from rota.recordings.folder import provenance

    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes() if source.is_file() else b"")
    note = f"{args.origin}; " if args.origin else ""
    note += f"imported; sha256 of what was read {digest.hexdigest()[:16]}"
    return provenance(device=device, seed=None, command=command, libraries=(), note=note)


def _check_free(*folders: Path) -> None:
    """Raise an error if something was recorded there: nothing is written over."""
    from rota.recordings.library import recording_folders

    for folder in folders:
        if next(recording_folders(folder), None) is not None:
            raise InputError(f"{folder}: there is a recording in it; move it away, or choose another --out")
