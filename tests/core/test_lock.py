"""One at a time in a folder."""

import time
from threading import Thread

from rota.core.files import folder_lock


def test_who_has_to_wait_is_told(tmp_path, caplog):
    done = []

    def second():
        with folder_lock(tmp_path):
            done.append("second")

    with folder_lock(tmp_path):
        other = Thread(target=second)
        other.start()
        while not caplog.records:
            time.sleep(0.01)
        done.append("first")
    other.join()
    assert done == ["first", "second"]
    assert caplog.messages == [f"{tmp_path}: locked by another process; waiting"]
