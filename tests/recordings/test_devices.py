"""Speeds of devices: from what was measured, of the nearest batch size and the same family."""

from pathlib import Path

import pytest

from rota.core.errors import InputError
from rota.recordings.devices import DeviceSpeeds
from rota.recordings.profile import Profiles, read_profiles

GPUS = read_profiles(Path(__file__).parents[2] / "results" / "recordings" / "profiles" / "gpus")


@pytest.mark.parametrize(
    ("model", "batch_size", "device", "speed", "said"),
    [
        ("resnet8", 32, "k80", 7.18 / 29.9, "0.24 × as ResNet-18 at batch size 32"),
        ("convnet2", 90, "p100", 22.3 / 24.1, "0.925 × as ResNet-18 at batch size 64"),  # √(64·128) = 90.5
        ("convnet2", 91, "p100", 11.7 / 18.0, "0.65 × as ResNet-18 at batch size 128"),
        ("resnet50", 1, "k80", 2.3 / 11.4, "0.202 × as ResNet-50 at batch size 16"),
        ("feedforward1", 32, "p100", 48.9 / 23.3, "2.1 × as Recommendation at batch size 512, assumed"),
        ("transformer", 64, "v100", 1.0, "1 × as Transformer at batch size 64"),
        ("LM", 20, "k80", 17.1 / 64.7, "0.264 × as LM at batch size 20"),
        ("a2c", 16, "k80", 3.44 / 7.18, "0.479 × as A3C"),
    ],
)
def test_a_model_takes_the_measured_speed_of_its_family(model, batch_size, device, speed, said):
    found = DeviceSpeeds(GPUS).speed(model, batch_size, device)
    assert found.speed == pytest.approx(speed)
    assert str(found) == said


def test_what_has_no_factor_is_named():
    speeds = DeviceSpeeds(GPUS)
    with pytest.raises(InputError, match="device 'a100' has no factor; measured were k80, p100, v100"):
        speeds.speed("resnet8", 32, "a100")
    with pytest.raises(InputError, match="device 'h100' has no factor"):
        DeviceSpeeds(GPUS, reference="h100")
    with pytest.raises(InputError, match="model 'bert' has no factor: neither it nor one of its family"):
        speeds.speed("bert", 32, "k80")
    rows = [row for row in GPUS.rows if (row.model, row.device) != ("ResNet-18", "p100")]
    with pytest.raises(
        InputError, match="p100: has no factor for convnet2: ResNet-18 was not measured there"
    ):
        DeviceSpeeds(Profiles(tuple(rows), GPUS.provenance)).speed("convnet2", 32, "p100")


def test_the_shipped_measurements_name_their_source():
    assert GPUS.devices == ("k80", "p100", "v100")
    assert len(GPUS.rows) == 3 * 26
    assert "Gavel" in GPUS.provenance.note
