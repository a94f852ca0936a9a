"""The command line with commands made up for the occasion: exit codes, messages, streams."""

import logging
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import rota
from rota import cli
from rota.core.errors import ConfigError, IllegalPlan, TraceError


@pytest.fixture
def command(monkeypatch):
    """Gives a function that makes `rota act` the only command, doing what it is given."""

    def make(run):
        module = ModuleType("act")
        module.add_parser = lambda subparsers: subparsers.add_parser("act", help="does something")
        module.run = run
        monkeypatch.setitem(sys.modules, "act", module)
        monkeypatch.setattr(cli, "COMMANDS", {"act": "act"})

    yield make
    logging.getLogger("rota").handlers = []
    logging.getLogger("rota").setLevel(logging.NOTSET)


def raising(error):
    def run(args):
        raise error

    return run


@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_code_is_the_one_of_the_command(command, code):
    command(lambda args: code)
    assert cli.main(["act"]) == code


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("a.toml: seed: 'x' is wrong"), 2, "rota: error: a.toml: seed: 'x' is wrong"),
        (TraceError("a.csv: line 2: no number"), 2, "rota: error: a.csv: line 2: no number"),
        (IllegalPlan("slot 3 twice"), 1, "rota: error: slot 3 twice"),
        (ConfigError("two\nlines"), 2, "rota: error: two lines"),
        (KeyboardInterrupt(), 130, "rota: interrupted"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_an_exit_code(command, capsys, error, code, line):
    command(raising(error))
    assert cli.main(["act"]) == code
    assert capsys.readouterr() == ("", f"{line}\n")


def test_a_bug_shows_its_traceback(command):
    command(raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["act"])


def test_rota_alone_prints_its_help_and_exits_with_2(command, capsys):
    command(lambda args: 0)
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"act +does something", err)


@pytest.mark.parametrize("argv", [["nonsense"], ["act", "--nonsense"]])
def test_a_wrong_argument_exits_with_2(command, argv):
    command(lambda args: 0)
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2


def test_the_version_is_the_one_of_the_package(command, capsys):
    command(lambda args: 0)
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"rota {rota.__version__}\n"


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (["act"], "rota.x: careful\n"),
        (["-v", "act"], "rota.x: careful\nrota.x: doing\n"),
        (["act", "-v"], "rota.x: careful\nrota.x: doing\n"),
        (["act", "-vv"], "rota.x: careful\nrota.x: doing\nrota.x: because\n"),
        (["-vvv", "act"], "rota.x: careful\nrota.x: doing\nrota.x: because\n"),
    ],
)
def test_more_is_logged_to_stderr_the_more_often_v_is_given(command, capsys, argv, lines):
    def run(args):
        log = logging.getLogger("rota.x")
        log.warning("careful")
        log.info("doing")
        log.debug("because")
        logging.getLogger("numba").debug("other people's noise")
        return 0

    command(run)
    assert cli.main(argv) == 0
    assert capsys.readouterr() == ("", lines)


SPEAK = """
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from rota import cli

act = sys.modules["act"] = ModuleType("act")
act.add_parser = lambda subparsers: subparsers.add_parser("act")
act.run = lambda args: print("line\\n" * {lines}) or 0
cli.COMMANDS = {{"act": "act"}}
sys.exit(cli.main({argv}))
"""


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    ("lines", "argv"), [(1, ["act"]), (100_000, ["act"]), (0, ["--help"])], ids=["short", "long", "help"]
)
def test_a_reader_that_leaves_early_is_no_error(lines, argv, unbuffered):
    with subprocess.Popen(
        [sys.executable, "-c", SPEAK.format(lines=lines, argv=argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 141)


def spoken(argv: list[str], redirected: str, lines: int = 1, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in a shell."""
    words = [sys.executable, "-c", SPEAK.format(lines=lines, argv=argv)]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(words)} {redirected}"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr


FULL = "rota: error: standard output cannot be written (No space left on device); not all of it is there\n"


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    ("lines", "argv"), [(1, ["act"]), (100_000, ["act"]), (0, ["--help"])], ids=["short", "long", "help"]
)
def test_a_standard_output_that_is_full_is_an_error(lines, argv, unbuffered):
    assert spoken(argv, ">/dev/full", lines, PYTHONUNBUFFERED=unbuffered) == (1, "", FULL)


def test_a_standard_output_that_is_closed_is_an_error():
    said = "rota: error: standard output is closed; open it, or send it to a file\n"
    assert spoken(["act"], ">&-") == (2, "", said)
    assert spoken(["act"], ">&- 2>&-") == (2, "", "")


def test_without_a_standard_error_everything_goes_on():
    """And what belongs there does not turn up among the output."""
    assert spoken(["act"], "2>&-") == (0, "line\n\n", "")
    assert spoken(["act"], "2>/dev/full") == (0, "line\n\n", "")
    assert spoken(["nonsense"], "2>&-") == (2, "", "")
    assert spoken(["nonsense"], "2>/dev/full") == (2, "", "")


@pytest.mark.parametrize(
    "command", [[], *([name] for name in cli.COMMANDS)], ids=lambda words: "".join(words)
)
def test_help_can_be_read_in_any_encoding(command):
    done = subprocess.run(
        [sys.executable, "-m", "rota", *command, "--help"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"usage: rota" in done.stdout


def test_so_it_can_where_the_locale_has_only_ascii():
    """There, Python lets what it cannot write through only if that came from a file name."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [sys.executable, "-m", "rota", "simulate", "--help"]
    done = subprocess.run(words, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")


def test_every_command_adds_a_parser_of_its_own_name():
    actions = cli.build_parser()._subparsers._group_actions
    assert list(actions[0].choices) == list(cli.COMMANDS)


def test_the_module_runs_as_the_command_does():
    command = [sys.executable, "-m", "rota", "--version"]
    assert subprocess.check_output(command, text=True) == f"rota {rota.__version__}\n"


def test_a_command_that_needs_an_extra_says_how_to_get_it(command, capsys):
    def run(args):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    command(run)
    assert cli.main(["act"]) == 2
    assert "needs torch; install it with: bash scripts/setup.sh train" in capsys.readouterr().err


def test_whatever_an_extra_installs_is_known_by_its_extra():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    imported = {"scikit-learn": "sklearn", "tensorflow-cpu": "tensorflow"}
    names = {
        imported.get(name, name): extra
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("dev", "docs", "tune")  # of tests, pages and benchmarks
        for name in (re.match(r"[\w-]+", requirement)[0] for requirement in requirements)
    }
    assert cli.EXTRAS.items() >= names.items()


def test_what_is_written_when_all_is_learned_is_asked_for_before(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)  # as if it were not installed
    assert cli.main(["learn", "--recordings", str(tmp_path)]) == 2
    assert "needs tensorboardX; install it with: bash scripts/setup.sh train" in capsys.readouterr().err


def test_a_module_that_is_missing_by_mistake_is_a_bug(command):
    def run(args):
        import no_such_module  # noqa: F401

    command(run)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["act"])
