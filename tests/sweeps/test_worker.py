"""What a trial makes of its order."""

from rota.sweeps import parcel
from rota.sweeps.worker import _train


def test_what_is_no_longer_in_the_configuration_is_not_replaced_by_its_name(tmp_path, capsys):
    seen = []
    file = tmp_path / "train.pickle"
    digest = parcel.write(file, parcel.Parcel(seen.append, []))
    assignment = {"train": str(file), "sha256": digest, "cfg": {"x": [{"thing": [0, "<class 'Gone'>"]}]}}
    ended = _train(assignment)
    assert ended["ended"] == "failed"
    assert "<class 'Gone'> was in the configuration" in ended["failure"]
    assert seen == []
