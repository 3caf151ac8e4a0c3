"""The compiled loop on the wall clock: settings, stop, the dead-man key, and samples written by a thread."""

import threading
import time

import numpy as np
import pytest

from haptics import MasslessImpedance, Servo, Stribeck, Trace, WallClock
from haptics.device import MAX_CHANNELS
from haptics.elements.models import write_parameters
from haptics.rendering.envelope import Limits
from haptics.servo.control import Supervision
from haptics.servo.kernels import AVAILABLE, CONTROL, SETTINGS
from haptics.servo.servo import EndReason
from haptics.shared import Mailbox, SharedFile
from tests.haptics.doubles import PortedBench, ThreadedBench

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.skipif(not AVAILABLE, reason="the compiled loop is for Linux"),
]


def contact():
    return MasslessImpedance(Stribeck(2.0, 4.0, 0.5), 3000.0, 10.0)


@pytest.fixture
def lanes(tmp_path):
    control, settings = SharedFile("control"), SharedFile("settings")
    yield Mailbox(control.path, CONTROL, create=True), Mailbox(settings.path, SETTINGS, create=True)
    control.close()
    settings.close()


def run_live(lanes, folder, action, **limits):
    """Run on the wall clock while another thread calls `action`."""
    clock = WallClock(1e-3)
    element = contact()
    device = PortedBench(clock, element.causality)
    bounds = Limits.for_device(device.spec, dict(limits))
    servo = Servo(
        device, element, Trace.create(folder / "live"), clock=clock, limits=bounds, supervision=Supervision(*lanes)
    )
    servo.warm_up()
    other = threading.Thread(target=action, args=(servo.trace,))
    other.start()
    end = servo.run(10.0)
    other.join()
    assert servo.compiled
    return servo, end


def await_count(trace, count):
    until = time.monotonic() + 60.0
    while trace.count < count:
        assert time.monotonic() < until
        time.sleep(1e-3)


def test_live_run_takes_settings_and_a_stop_and_keeps_to_the_clock(lanes, tmp_path):
    control, lane = lanes

    def change(trace):
        for version in (1, 2, 3):
            await_count(trace, trace.count + 20)
            settings = np.zeros(1, SETTINGS)
            write_parameters(MasslessImpedance(Stribeck(0.5 * version, 1.0 * version, 0.5), 3000.0, 10.0), settings)
            settings["version"] = version
            lane.publish(settings[0])
        await_count(trace, trace.count + 20)
        control.record["stop"] = 1

    begun = time.monotonic()
    servo, end = run_live(lanes, tmp_path, change)
    taken, rows = time.monotonic() - begun, servo.trace.since(0)
    assert end is EndReason.STOPPED
    assert list(dict.fromkeys(rows["settings_version"].tolist())) == [0, 1, 2, 3]
    assert servo.noticed_ns > 0
    assert np.hypot(*rows["command"][-1]) < np.hypot(*rows["command"][-30])  # it faded out
    assert (np.diff(rows["tick"]) >= 1).all()
    np.testing.assert_allclose(rows["time"], 1e-3 * rows["tick"])
    assert rows["time"][-1] < taken
    assert (rows["period_error"] >= 0.0).all()
    assert (rows["tick_time"] >= rows["write_time"]).all()
    assert (rows["write_time"] > 0.0).all()


def test_live_run_obeys_the_dead_man_key(lanes, tmp_path):
    control, _ = lanes

    def hold(trace):
        await_count(trace, 30)
        for _ in range(50):
            control.record["key_ns"] = time.monotonic_ns()
            time.sleep(4e-3)
        await_count(trace, trace.count + 300)
        control.record["stop"] = 1

    servo, _ = run_live(lanes, tmp_path, hold, dead_man="key")
    forces = np.hypot(*servo.trace.since(0)["command"].T)
    assert not forces[:20].any()
    assert forces.max() > 1.0
    assert not forces[-1]


def test_sample_written_by_a_thread_is_never_torn(tmp_path):
    """Position, velocity and channels of each sample hold the same number."""
    clock = WallClock(1e-3)
    patient = {"max_sample_age": 10.0}  # a thread that does not get its turn is another matter
    device = ThreadedBench(clock, channels=(("everything", "1", MAX_CHANNELS),), **patient)
    servo = Servo(device, contact(), Trace.create(tmp_path / "t"), clock=clock)
    servo.run(1.0)
    rows = servo.trace.since(0)
    assert servo.compiled
    np.testing.assert_array_equal(rows["position"][:, 0], rows["position"][:, 1])
    np.testing.assert_array_equal(rows["position"], rows["velocity"])
    np.testing.assert_array_equal(rows["channels"], np.repeat(rows["position"][:, :1], MAX_CHANNELS, axis=1))
    assert len(np.unique(rows["position"][:, 0])) > 50
    assert device.commands >= len(rows)
