"""Reading a file and applying flags to it."""

import pytest

from rota.config.load import override, read
from rota.core.errors import ConfigError


@pytest.fixture
def file(tmp_path):
    return tmp_path / "simulate.toml"


def message_of(action, *arguments) -> str:
    with pytest.raises(ConfigError) as caught:
        action(*arguments)
    return str(caught.value)


def test_a_file_is_read_as_it_is(file):
    file.write_text('seed = 1\n[cluster]\nname = "β"\n', "utf-8")
    assert read(file) == {"seed": 1, "cluster": {"name": "β"}}


def test_a_file_saved_by_a_windows_editor_is_read_too(file):
    file.write_bytes(b"\xef\xbb\xbfseed = 1\r\n")
    assert read(file) == {"seed": 1}


def test_a_syntax_error_names_file_and_line(file):
    file.write_text("seed = 1\nnodes =\n")
    assert message_of(read, file) == f"{file}: not valid TOML: Invalid value (at line 2, column 8)"


def test_a_file_that_is_not_text_says_so(file):
    file.write_bytes(b"\xff")
    found = message_of(read, file)
    assert found.startswith(f"{file}: not valid TOML: 'utf-8' codec can't decode byte 0xff in position 0")


@pytest.mark.parametrize("text", [f"a = 1{'0' * 5000}", f"a = {'[' * 5000}"], ids=["digits", "brackets"])
def test_a_file_that_python_cannot_take_is_still_only_a_wrong_file(file, text):
    file.write_text(text)
    assert message_of(read, file).startswith(f"{file}: not valid TOML: ")


def test_a_missing_file_is_named_with_the_one_that_was_probably_meant(file):
    file.write_text("")
    wrong = file.with_name("simulat.toml")
    assert message_of(read, wrong) == f"{wrong}: no such file. Did you mean '{file}'?"


def test_a_missing_folder_is_a_missing_file(tmp_path):
    wrong = tmp_path / "nowhere" / "simulate.toml"
    assert message_of(read, wrong) == f"{wrong}: no such file"


def test_a_folder_is_not_a_file(tmp_path):
    assert message_of(read, tmp_path) == f"{tmp_path}: cannot be read: Is a directory"


def test_an_unreadable_file_says_why(file):
    file.touch()
    below = file / "below.toml"
    assert message_of(read, below) == f"{below}: cannot be read: Not a directory"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=8", 8),
        ("x = 8 ", 8),
        ("x=1e-3", 0.001),
        ("x=true", True),
        ("x='8'", "8"),
        ('x=""', ""),
        ("x=[1, 2]", [1, 2]),
        ("x={ a = 1 }", {"a": 1}),
        ("x=srtf", "srtf"),
        ("x=traces/my file.csv", "traces/my file.csv"),
        ("x=a=b", "a=b"),
        ("x=08", "08"),
    ],
)
def test_a_flag_is_a_toml_value_or_a_bare_word(text, value):
    assert override({}, [text]) == {"x": value}


def test_flags_reach_into_sections_and_the_last_one_wins():
    table = {"seed": 1, "cluster": {"slots": 4}}
    flags = ["cluster.nodes=8", "policy.name=srtf", "seed=2", "seed=3"]
    assert override(table, flags) == {
        "seed": 3,
        "cluster": {"slots": 4, "nodes": 8},
        "policy": {"name": "srtf"},
    }
    assert table == {"seed": 1, "cluster": {"slots": 4}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed", "no value; write key.path=value, for example --set cluster.nodes=8"),
        ("seed=", "no value; write key.path=value, for example --set cluster.nodes=8"),
        ("=1", "'' is not a key; a key looks like cluster.nodes"),
        ("a..b=1", "'a..b' is not a key; a key looks like cluster.nodes"),
        ("seed.x=1", "'seed' is not a table: it is 1"),
        ("x=[1", "the value is not valid TOML: Unclosed array (at end of document)"),
        ("x='a", 'the value is not valid TOML: Expected "\'" (at end of document)'),
        (
            "x=a\nb",
            "the value is not valid TOML: Invalid value (at line 1, column 9)",
        ),
    ],
)
def test_a_malformed_flag_is_repeated_with_what_is_wrong(text, message):
    assert message_of(override, {"seed": 1}, [text]) == f"--set {text}: {message}"


def test_a_flag_with_two_values_sets_neither():
    assert message_of(override, {}, ["x=1\ny=2"]).startswith("--set x=1\ny=2: the value is not valid TOML")


@pytest.mark.parametrize(
    ("flag", "grid"),
    [
        ("seed=5", {"cluster.nodes": [8, 16], "cluster": {"slots": [1, 2]}}),
        ("cluster.nodes=8", {"seed": [0, 1], "cluster": {"slots": [1, 2]}}),
        ("cluster.slots=1", {"seed": [0, 1], "cluster.nodes": [8, 16], "cluster": {}}),
        ("cluster={ nodes = 2 }", {"seed": [0, 1]}),
        ("grid.seed=[5]", {"cluster.nodes": [8, 16], "cluster": {"slots": [1, 2]}, "seed": [5]}),
        ("grid.cluster.nodes=[4]", {"seed": [0, 1], "cluster": {"slots": [1, 2], "nodes": [4]}}),
        ("grid={ seed = [7] }", {"seed": [7]}),
    ],
)
def test_a_flag_wins_over_the_grid(flag, grid):
    table = {"grid": {"seed": [0, 1], "cluster.nodes": [8, 16], "cluster": {"slots": [1, 2]}}}
    assert override(table, [flag])["grid"] == grid


def test_a_flag_cannot_reach_into_what_the_grid_varies_as_a_whole():
    table = {"grid": {"cluster": [{"nodes": 8}, {"nodes": 16}]}}
    assert message_of(override, table, ["cluster.slots=1"]) == (
        "--set cluster.slots=1: the grid varies 'cluster' as a whole; set grid.cluster instead"
    )
