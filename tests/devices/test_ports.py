"""Virtual devices without Python: through its port a device gives the same bits as through ``read`` and ``write``."""

import math

import numpy as np
import pytest

import devices
from devices.common.settings import ESTIMATORS
from devices.faults import FaultyDevice, parse_fault
from devices.virtual.hands.hand import CompiledHand, Hand, HandSettings
from devices.virtual.hands.registry import HAND_TARGET, HANDS, make_hand
from haptics import Coulomb, MasslessImpedance, RigidAdmittance, Servo, Trace
from haptics.clock import Clock
from haptics.device import MAX_CHANNELS, PORT_FIELDS, Causality, port_of
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.jit import call_part, kernel, record_at
from haptics.shared import Mailbox
from tests.devices.felt import FRICTION, write_own_friction
from tests.system.devices.virtual.test_compiled_hands import hand_table

PERIOD = 1e-3
PORT = np.dtype(PORT_FIELDS)
ROW = np.dtype(
    [
        ("time", "<f8"),
        ("buttons", "<i8"),
        *((name, "<f8", (2,)) for name in ("position", "velocity", "force", "hand_force")),
        ("channels", "<f8", (MAX_CHANNELS,)),
    ]
)
TICKS = {"virtual-joystick": 4000, "virtual-arm": 2000}

both_devices = pytest.mark.parametrize("name", TICKS)


@kernel
def run_port(place, take, give, times, commands, shares, rows):
    """Take samples at `times` and give `commands` to the device with the record at `place`.

    Returns the number of commands before a fault.
    """
    p = record_at(place, PORT)
    for k in range(len(times)):
        call_part(take, place, times[k], 0.0)
        row = rows[k]
        row.time, row.buttons = p.time, p.buttons
        for i in range(2):
            row.position[i], row.velocity[i] = p.position[i], p.velocity[i]
            row.force[i], row.hand_force[i] = p.force[i], p.hand_force[i]
        for i in range(MAX_CHANNELS):
            row.channels[i] = p.channels[i]
        p.assistance = shares[k]
        call_part(give, place, commands[k, 0], commands[k, 1])
        if p.fault != 0:
            return k
    return len(times)


class Pushing:
    """Ticks, commands and compensation shares of a run."""

    def __init__(self, name, lane=None):
        count = TICKS[name]
        random = np.random.default_rng(5)
        ticks = np.cumsum(random.choice((1, 1, 1, 1, 1, 4), count))  # some are missed
        ticks[-count // 4 :] -= ticks[-count // 4]  # and the clock is restarted
        self.ticks, self.shares, self.lane = ticks, random.uniform(-0.1, 1.1, count), lane
        if name == "virtual-joystick":
            self.commands = np.cumsum(random.normal(0.0, 0.2, (count, 2)), axis=0) % 8.0 - 4.0
        else:
            self.commands = 0.03 * np.sin(np.arange(count) * 2e-3)[:, None] * (1.0, 0.7)
            self.commands[:: count // 5] *= 100.0  # out of the workspace

    def chunks(self):
        """Return the parts of the run; before each the mouse moves."""
        return [slice(k, k + 100) for k in range(0, len(self.ticks), 100)]

    def move(self, chunk):
        if self.lane is not None:
            angle = 1e-3 * chunk.start
            way = 0.05 * math.cos(angle), 0.05 * math.sin(angle)
            place = way, chunk.start % 900 != 800, chunk.start % 7 << 1, 0.25
            self.lane.publish(np.array(place, HAND_TARGET))

    def by_methods(self, name, settings):
        clock, rows = Clock(PERIOD), np.zeros(len(self.ticks), ROW)
        device = devices.open_device(name, settings, clock=clock)
        compensate = getattr(device, "compensate", lambda share: None)
        for chunk in self.chunks():
            self.move(chunk)
            for k in range(chunk.start, chunk.stop):
                clock.tick = int(self.ticks[k])
                state = device.read()
                for field in ("time", "buttons", "position", "velocity", "force", "hand_force"):
                    rows[field][k] = getattr(state, field)
                if state.channels is not None:
                    rows["channels"][k, : len(state.channels)] = state.channels
                compensate(self.shares[k])
                device.write(self.commands[k])
        return rows

    def by_port(self, name, settings):
        rows, times = np.zeros(len(self.ticks), ROW), self.ticks * PERIOD
        device = devices.open_device(name, settings, clock=Clock(PERIOD))
        port = port_of(device)
        assert port is not None
        for c in self.chunks():
            self.move(c)
            told = times[c], self.commands[c], self.shares[c], rows[c]
            assert run_port(port.record.ctypes.data, port.read_part, port.write_part, *told) == len(times[c])
        assert port.record["commands"][0] == len(times)
        return rows


def assert_same(pushing, name, settings):
    without, with_python = pushing.by_port(name, settings), pushing.by_methods(name, settings)
    assert np.ptp(without["position"], axis=0).min() > 1e-3
    assert without.tobytes() == with_python.tobytes()


@both_devices
@pytest.mark.parametrize("hand", HANDS)
def test_port_and_methods_agree_for_every_hand(tmp_path, name, hand):
    settings = {"hand": hand_table(hand, tmp_path)}
    lane = Mailbox(tmp_path / "target", HAND_TARGET) if hand == "mouse" else None
    assert_same(Pushing(name, lane), name, settings)
    assert isinstance(devices.open_device(name, settings).hand, CompiledHand)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_port_and_methods_agree_for_every_estimator(estimator):
    assert_same(Pushing("virtual-joystick"), "virtual-joystick", {"velocity_estimator": estimator})


@pytest.mark.parametrize("law", ["flatness", "fractional"])
def test_port_and_methods_agree_for_other_servo_laws(law):
    assert_same(Pushing("virtual-arm"), "virtual-arm", {"servo": {"law": law}})


@pytest.mark.parametrize("friction", [None, FRICTION])
def test_port_and_methods_agree_with_compensated_friction(tmp_path, friction):
    own = write_own_friction(tmp_path / "own.toml")
    settings = {"friction": friction, "friction_parameters": own, "delay": 2e-3}
    assert_same(Pushing("virtual-joystick"), "virtual-joystick", settings)


# --- hands in Python --------------------------------------------------------------------------------------------------


class OwnHandSettings(HandSettings):
    """Settings of a user's hand."""

    def __init__(self, table):
        self._table = table

    def build(self, seed, workspace):
        return OwnHand(make_hand(self._table, seed, workspace))


class OwnHand(Hand):
    """A Python hand that forwards to another one."""

    def __init__(self, other):
        self.stiffness, self.damping, self.start = other.stiffness, other.damping, other.start
        self._other = other

    def sample(self, time, handle):
        return self._other.sample(time, handle)

    def restart(self):
        self._other.restart()


@both_devices
@pytest.mark.parametrize("hand", ["minimum-jerk", "mouse"])
def test_python_hand_has_no_port(tmp_path, name, hand):
    table = hand_table(hand, tmp_path)
    pushing = Pushing(name, Mailbox(tmp_path / "target", HAND_TARGET) if hand == "mouse" else None)
    own = {"hand": OwnHandSettings(table)}
    assert pushing.by_methods(name, own).tobytes() == pushing.by_methods(name, {"hand": table}).tobytes()
    assert port_of(devices.open_device(name, own)) is None


# --- availability and faults of the port ------------------------------------------------------------------------------


@both_devices
def test_log_has_every_command_of_the_port(tmp_path, name):
    clock, file = Clock(PERIOD), tmp_path / "log.npy"
    device = devices.create_device(name, {"log": str(file)}, clock=clock)
    causality = device.spec.causality
    impedance = causality is Causality.IMPEDANCE
    element = MasslessImpedance(Coulomb(1.0), 3000.0, 10.0) if impedance else RigidAdmittance(Coulomb(1.0), 3.0)
    servo = Servo(device, element, Trace.create(tmp_path / "trace"), clock=clock)
    servo.run(0.1)
    assert servo.compiled
    rows, log = servo.trace.since(0), np.load(file)
    stamps = log["monotonic_ns"][: len(rows)]
    np.testing.assert_array_equal(log["command"][: len(rows)], rows["command"])
    np.testing.assert_array_equal(log["time"][: len(rows)], rows["time"])
    assert (np.diff(stamps) >= 0).all() and stamps[0] > 0
    assert not log["command"][len(rows)].any() or causality is Causality.ADMITTANCE  # the safe output


@both_devices
def test_no_port_with_faults_or_before_open(name):
    clock = Clock(PERIOD)
    with FaultyDevice(devices.create_device(name, clock=clock), [parse_fault("dropout@1")], clock) as faulty:
        assert port_of(faulty) is None
    with pytest.raises(DeviceOpenError, match=r"open\(\)"):
        port_of(devices.create_device(name))


@both_devices
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_command_that_is_not_finite_is_a_fault(name, bad):
    device = devices.open_device(name, clock=Clock(PERIOD))
    port = port_of(device)
    times, commands, rows = PERIOD * np.arange(10), np.zeros((10, 2)), np.zeros(10, ROW)
    commands[4, 1] = bad
    assert run_port(port.record.ctypes.data, port.read_part, port.write_part, times, commands, np.zeros(10), rows) == 4
    with pytest.raises(DeviceFault, match="must be finite"):
        device.write(commands[4])
    device.write(commands[3])
    assert port.record["fault"][0] == 0
    assert port.record["command"][0].tolist() == [0.0, 0.0]
