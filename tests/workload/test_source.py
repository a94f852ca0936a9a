"""Traces from compressed files, pipes and FIFOs."""

import gzip
import os
import shutil
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from rota import read_trace
from rota.core.errors import TraceError

TEXT = "id,submit_s,gpus,duration_s,model,priority\na,0,1,600,bert,0\nb,10,2,300,vgg16,1\n"


def zstd(content: bytes) -> bytes:
    if shutil.which("zstd") is None:
        pytest.skip("no zstd to compress with")
    return subprocess.run(["zstd", "-qc"], input=content, capture_output=True, check=True).stdout


PACK = {".gz": lambda content: gzip.compress(content), ".zst": zstd}


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_trace_is_read_as_the_file_in_it(tmp_path, suffix):
    (tmp_path / "two.csv").write_text(TEXT)
    packed = tmp_path / f"two.csv{suffix}"
    packed.write_bytes(PACK[suffix](TEXT.encode()))
    plain, found = read_trace(tmp_path / "two.csv"), read_trace(str(packed))
    assert (found.name, found.ids, found.models) == (plain.name, plain.ids, plain.models) == (
        "two", ("a", "b"), ("bert", "vgg16"),
    )  # fmt: skip
    assert found.duration_s.tolist() == [600.0, 300.0]


def test_what_is_compressed_is_seen_by_its_content_not_its_name(tmp_path):
    file = tmp_path / "two.csv"
    file.write_bytes(gzip.compress(TEXT.encode()))
    assert len(read_trace(file)) == 2
    (tmp_path / "two.csv.gz").write_text(TEXT)
    assert len(read_trace(tmp_path / "two.csv.gz")) == 2


@pytest.mark.parametrize("suffix", PACK)
def test_half_of_a_compressed_file_is_said_to_be_that(tmp_path, suffix):
    file = tmp_path / f"two.csv{suffix}"
    file.write_bytes(PACK[suffix](TEXT.encode())[:40])
    with pytest.raises(TraceError, match=r"two\.csv\.\w+: is not a complete \w+ file"):
        read_trace(file)


def test_without_anything_that_decompresses_it_is_said_what_to_install(tmp_path, monkeypatch):
    file = tmp_path / "two.csv.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd rest")
    monkeypatch.setattr("rota.core.files.ZSTD_MODULES", ())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TraceError, match=r"with zstd; pip install backports\.zstd, or decompress it"):
        read_trace(file)


def feed(path: Path, content: bytes) -> Thread:
    """A writer to a FIFO, once."""

    def write() -> None:
        with path.open("wb") as stream:
            stream.write(content)

    thread = Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_fifo_is_read_once_also_to_guess_its_format(tmp_path, pack):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    thread = feed(fifo, pack(TEXT.encode()))
    found = read_trace(fifo)
    thread.join(10)
    assert (found.name, found.ids) == ("pipe", ("a", "b"))
    feed(fifo, TEXT.replace("a,0", "c,0").encode())
    assert read_trace(fifo).ids == ("c", "b")  # nothing is kept for the next time


def test_a_pipe_without_end_of_line_is_not_waited_for():
    with subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as process:
        try:
            with pytest.raises(TraceError, match="its first line does not end"):
                read_trace(f"/dev/fd/{process.stdout.fileno()}")
        finally:
            process.kill()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(device):
    with pytest.raises(TraceError, match=f"{device}: is neither a file nor a pipe"):
        read_trace(device)
