"""Tables of figures: a long measurement prints all rows; drift of a held handle."""

import numpy as np
import pytest

from haptics import Coulomb, InertialImpedance, MasslessImpedance
from tests.devices.sessions import SessionFailed, drift, print_tables, unrendered


def fail():
    raise SessionFailed("the device\nwas unplugged")


def test_row_that_fails_has_its_cause_and_the_others_are_measured(capsys):
    rows = [(("first",), fail), (("second",), lambda: (1.0, 2))]
    assert print_tables({"only": (("row", "one", "two"), lambda seconds: rows)}, ["3"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["| first | failed: the device was unplugged | - |", "| second | 1.0 | 2 |"]


@pytest.mark.parametrize(
    "element", [MasslessImpedance(Coulomb(2.0), 1500.0, 4.0), InertialImpedance(Coulomb(2.0), 0.1, 1500.0, 4.0)]
)
def test_contact_of_a_held_handle_drifts_by_the_motion_in_skipped_ticks(element):
    rng, count = np.random.default_rng(1), 9000
    fields = [("tick", "<i8"), ("time", "<f8"), ("status", "<i8")]
    rows = np.zeros(count, [*fields, ("position", "<f8", (2,)), ("velocity", "<f8", (2,))])
    steps = np.where(rng.random(count) < 0.01, rng.integers(2, 6, count), 1)  # of ticks: 1 % after skipped ones
    rows["tick"] = np.cumsum(steps) - steps[0]
    rows["time"] = element.period * rows["tick"]
    rows["velocity"][1:] = rng.normal(0.0, 2e-3, (count - 1, 2))
    rows["position"] = np.cumsum(element.period * steps[:, None] * rows["velocity"], axis=0)
    contact = np.empty((count, 2))
    for k in range(count):
        element.step(rows["velocity"][k])
        assert element.sticking
        contact[k] = rows["position"][k] - element.displacement
    np.testing.assert_allclose(contact, unrendered(rows), atol=1e-12)
    held = rows.copy()
    held["position"] = contact  # of a handle that a constant force pushes against the contact
    assert drift(held) > 1e-5
    assert drift(held, rendered=True) == pytest.approx(0.0, abs=1e-12)
