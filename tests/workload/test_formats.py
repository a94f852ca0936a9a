"""What holds for every reader in the registry."""

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node
from rota.core.errors import ConfigError, TraceError
from rota.workload.formats import FORMATS, guess, read

CLUSTER = Cluster((Node(8, kind="G2"), Node(8, kind="V100M32")))

WITH_HEADER = [name for name in FORMATS if name != "gavel"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_reader_gives_sorted_jobs_that_can_be_simulated(sample, name):
    jobs = read(sample(name), name, seed=3)
    assert len(jobs) >= 1
    assert np.all(np.diff(jobs.submit_s) >= 0)
    assert np.all(jobs.iterations > 0)
    assert np.all(jobs.iteration_s > 0)
    assert jobs.table(CLUSTER).shape[1] == len(jobs)


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_seed_gives_the_same_jobs(sample, name):
    path = sample(name)
    first, second = read(path, name, seed=7), read(path, name, seed=7)
    assert first.ids == second.ids
    assert first.models == second.models
    assert np.array_equal(first.model, second.model)
    assert np.array_equal(first.priority, second.priority)


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_guessed_from_the_file(sample, name):
    assert guess(sample(name)) == name


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_not_there_is_an_error_with_its_path(tmp_path, name):
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read: No such file"):
        read(tmp_path / "nowhere.csv", name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_is_not_a_trace(tmp_path, name):
    with pytest.raises(TraceError, match="is a folder; expected a file"):
        read(tmp_path, name)


@pytest.mark.parametrize("name", FORMATS)
def test_an_empty_file_is_an_error(sample, name):
    with pytest.raises(TraceError, match="the file is empty; expected"):
        read(sample(name, ""), name)


@pytest.mark.parametrize("name", FORMATS)
def test_binary_garbage_is_an_error(sample, name):
    path = sample(name)
    path.write_bytes(bytes(range(128, 256)) * 8)
    with pytest.raises(TraceError, match="is not text in UTF-8"):
        read(path, name)


@pytest.mark.parametrize("name", FORMATS)
def test_garbage_in_the_middle_is_an_error_too(sample, rows, name):
    path = sample(name)
    path.write_bytes(rows[name].encode() + b"\xff\xfe\x00\n")
    with pytest.raises(TraceError, match="is not text in UTF-8"):
        read(path, name)


@pytest.mark.parametrize("name", WITH_HEADER)
def test_a_header_without_rows_has_no_jobs(sample, rows, name):
    with pytest.raises(TraceError, match="no jobs in it"):
        read(sample(name, rows[name].splitlines()[0] + "\n"), name)


@pytest.mark.parametrize("name", WITH_HEADER)
def test_a_wrong_header_says_what_is_missing_and_what_was_found(sample, name):
    with pytest.raises(TraceError, match=r"line 1: no column '.*; found 'when,how'"):
        read(sample(name, "when,how\n1,2\n"), name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_with_a_field_too_many_is_reported_with_its_line(sample, rows, name):
    text = rows[name].rstrip("\n")
    tab = "\t" if name == "gavel" else ","
    line = text.count("\n") + 1
    with pytest.raises(TraceError, match=rf"line {line}: \d+ fields; expected \d+"):
        read(sample(name, text + tab + "more\n"), name)


@pytest.mark.parametrize("name", FORMATS)
def test_blank_lines_and_other_line_ends_do_not_matter(sample, rows, name):
    plain = read(sample(name), name)
    other = read(sample(name, rows[name].replace("\n", "\r\n") + "\r\n\r\n"), name)
    assert plain.ids == other.ids
    assert np.array_equal(plain.duration_s, other.duration_s)


@pytest.mark.parametrize("name", WITH_HEADER)
def test_a_byte_order_mark_does_not_matter(sample, rows, name):
    assert read(sample(name, "\ufeff" + rows[name]), name).ids == read(sample(name), name).ids


def test_a_file_that_cannot_be_opened_is_an_error(sample):
    path = sample("azure") / "below.csv"
    with pytest.raises(TraceError, match="cannot be read: Not a directory"):
        read(path, "azure")


def test_an_unknown_format_suggests_the_nearest(sample):
    with pytest.raises(
        ConfigError, match=r"unknown trace format 'phily'. Did you mean 'philly'\? Known: csv, muri"
    ):
        read(sample("philly"), "phily")


def test_a_format_that_cannot_be_guessed_lists_them_all(sample):
    with pytest.raises(TraceError, match=r"no format has a header like 'when,how'.*csv, muri"):
        guess(sample("philly", "when,how\n"))


def test_a_negative_seed_is_an_error(sample):
    with pytest.raises(ConfigError, match="seed is -1; it must be at least 0"):
        read(sample("philly"), "philly", seed=-1)
