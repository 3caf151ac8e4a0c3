"""Run information of a message or of the metadata of a recording."""

import pytest

from apps.front_ends.messages import HOLD_EVERY
from apps.front_ends.run import from_message, from_metadata, levels
from haptics.servo.kernels import KEY_TIMEOUT
from tests.apps.view import view_rows


def test_held_key_is_repeated_before_it_expires():
    assert 2 * HOLD_EVERY < KEY_TIMEOUT


def test_message_describes_the_run(started):
    info = from_message(started)
    assert info.title == "model C on virtual-joystick"
    assert info.force_name == "command"
    assert (info.workspace, info.rate, info.mouse) == (started.workspace, 1000.0, True)
    assert (info.max_energy, info.dead_man) == (started.max_energy, started.dead_man)


def test_metadata_describe_the_run(rows):
    info = from_metadata(view_rows.METADATA, rows)
    assert (info.device, info.model, info.causality) == ("virtual-joystick", "C", "impedance")
    assert info.workspace == ((-0.06, -0.045), (0.06, 0.045))
    assert levels({p.key: p.value for p in info.parameters}) == (4.0,)
    assert info.force_scale == 4.0
    assert (info.max_energy, info.dead_man) == (0.02, "none")


def test_configuration_of_a_recording_describes_the_run(rows):
    tables = {"law": {"name": "coulomb", "force": 3.0}, "element": {"stiffness": 500.0}, "session": {"rate": 1.0}}
    tables["device"] = {"name": "virtual-joystick", "hand": {"name": "minimum-jerk"}}
    info = from_metadata({"configuration": tables}, rows)
    assert {p.key: p.value for p in info.parameters} == {"law.force": 3.0, "element.stiffness": 500.0}
    assert [p.unit for p in info.parameters] == ["N", "N/m"]
    assert info.hand == "minimum-jerk"


def test_run_of_a_recording_without_metadata_is_estimated(rows):
    info = from_metadata({}, rows)
    (left, low), (right, high) = info.workspace
    assert left < rows["position"][:, 0].min() < rows["position"][:, 0].max() < right
    assert low < rows["position"][:, 1].min() < rows["position"][:, 1].max() < high
    assert info.force_scale == pytest.approx(4.0, rel=0.05)
    assert (info.rate, info.causality) == (1000.0, "impedance")


@pytest.mark.parametrize(("model", "causality"), [("A", "admittance"), ("B", "impedance"), ("D", "admittance")])
def test_causality_follows_from_the_model(rows, model, causality):
    info = from_metadata({"model": model}, rows)
    assert info.causality == causality
    assert info.force_name == ("hand force" if causality == "admittance" else "command")
