"""The whole driver on an emulated stick: the contract of a device, what may go wrong with USB, the closed loop."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import devices
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.times import FreeTime
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.joystick import device as device_module
from devices.joystick import finding, streaming, usb_listing
from devices.joystick.device import PidJoystick
from devices.joystick.finding import choose, find_sticks, usb_sticks
from devices.joystick.parameters import format_parameters
from devices.joystick.settings import EMULATORS
from devices.joystick.streaming import Streaming
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.clock import Clock, WallClock
from haptics.device import Device, State
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.trace import Trace
from tests.contract import DeviceContract

FRAME = 1e-3
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile everything: an emulated stick lives by the wall's clock, which does not wait for a compiler."""
    device = PidJoystick({"emulated": True, "hand": STILL})
    with device:
        device.read()
    trace = Trace.create(tmp_path_factory.mktemp("compiled") / "trace", capacity=64)
    Servo(device, MasslessImpedance(Coulomb(1.0), 100.0, 1.0), trace).warm_up()


class TestEmulatedJoystick(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar[dict[str, Any]] = {"emulated": True, "hand": STILL}


class TestEmulatedSidewinder(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar[dict[str, Any]] = {"emulated": True, "emulator": "sidewinder-ff2", "hand": STILL}


class TestEmulatedArduino(DeviceContract):
    name = "pid-joystick"
    settings: ClassVar[dict[str, Any]] = {"emulated": True, "emulator": "arduino", "hand": STILL}


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    trace = Trace.create(tmp_path / "trace", capacity=4096)
    yield trace


def make(*faults: str, profile: str = "openffboard", **settings: Any) -> tuple[PidJoystick, EmulatedStick]:
    backend = emulated_stick(profile, hand=STILL, faults=faults)
    device = PidJoystick({"emulated": True, "emulator": profile, **settings}, backend=backend)
    return device, backend.sticks[0]


@pytest.fixture
def opened() -> Iterator[tuple[PidJoystick, EmulatedStick]]:
    device, stick = make()
    device.open()
    yield device, stick
    device.close()


def fault_of(device: Device, patience: float = 2.0) -> tuple[DeviceFault, float]:
    """Use the device until it fails; return what it says and how long that took [s]."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < patience:
        try:
            device.read()
            device.write(np.array((0.5, 0.0)))
        except DeviceFault as fault:
            return fault, time.perf_counter() - begun
        time.sleep(1e-3)
    raise AssertionError("it never failed")


# --- forces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", EMULATORS)
@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.0, 1.0), (-0.6, -0.8)])
def test_a_force_arrives_at_the_handle_in_size_and_direction(profile: str, direction: tuple[float, float]) -> None:
    device, stick = make(profile=profile)
    with device:
        wanted = 0.5 * device.spec.max_force * np.array(direction)
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            device.read()
            device.write(wanted)
            time.sleep(1e-3)
        count = device.spec.max_force / 255.0
        np.testing.assert_allclose(stick.force, wanted, atol=0.01 * np.hypot(*wanted) + count)


def test_more_force_than_there_is_keeps_its_direction(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        device.write(np.array((300.0, -400.0)))
        time.sleep(1e-3)
    np.testing.assert_allclose(stick.force, device.spec.max_force * np.array((0.6, -0.8)), rtol=0.01)


def test_position_is_that_of_the_handle(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    time.sleep(0.02)
    np.testing.assert_allclose(device.read().position, stick.handle, atol=2.0 * device.spec.position_resolution)


def test_a_host_that_goes_silent_leaves_no_force(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    for _ in range(20):
        device.write(np.array((2.0, 0.0)))
        time.sleep(1e-3)
    assert np.hypot(*stick.force) > 1.0
    time.sleep(device.settings.force_duration + device.settings.keep_alive)
    assert np.hypot(*stick.force) == 0.0


def test_nothing_is_left_playing_and_the_driver_is_back(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    for _ in range(20):
        device.write(np.array((2.0, 0.0)))
        time.sleep(1e-3)
    assert stick.profile.interface not in stick.drivers
    device.close()
    assert np.hypot(*stick.force) == 0.0
    assert stick.profile.interface in stick.drivers
    assert not stick.owners
    assert len(stick.received("free")) == 2


# --- what may go wrong -------------------------------------------------------------------------------------------


def test_unplugged_in_the_middle_it_fails_within_a_tenth_of_a_second(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    device.read()
    stick.unplug()
    fault, after = fault_of(device)
    assert "unplugged" in str(fault)
    assert after < 0.1
    begun = time.perf_counter()
    device.close()
    assert time.perf_counter() - begun < 1.0
    stick.plug()
    device.open()
    assert np.isfinite(device.read().position).all()


@pytest.mark.parametrize("fault", ["read-error", "write-error", "nak"])
def test_a_transfer_that_fails_is_a_fault_and_the_interface_is_released(fault: str) -> None:
    device, stick = make()
    device.open()
    stick.faults = type(stick.faults)([f"{fault}@{stick.now}+5"])
    said, _ = fault_of(device)
    assert str(said)
    device.close()
    assert not stick.owners
    assert stick.profile.interface in stick.drivers


def test_a_halted_pipe_is_cleared(opened: tuple[PidJoystick, EmulatedStick]) -> None:
    device, stick = opened
    device.read()
    with stick.lock:
        stick.halted.add(0x83)
    for _ in range(50):
        device.read()
        device.write(np.zeros(2))
        time.sleep(1e-3)
    assert not stick.halted


def test_reports_that_are_cut_short_grow_old() -> None:
    device, stick = make()
    device.open()
    stick.faults = type(stick.faults)([f"short@{stick.now}+9"])
    clock = device._clock
    end = time.perf_counter() + 0.4
    ages = []
    while time.perf_counter() < end:
        ages.append(clock.elapsed() - device.read().time)
        time.sleep(5e-3)
    device.close()
    assert max(ages) > device.spec.max_sample_age


def test_after_a_run_that_failed_it_can_be_opened_at_once() -> None:
    device, stick = make("full-pool@0+0.5")
    with pytest.raises(DeviceOpenError, match="no room for another effect"):
        device.open()
    assert not stick.owners
    assert stick.profile.interface in stick.drivers
    time.sleep(max(0.5 - stick.now, 0.0) + 0.01)
    device.open()
    device.close()


def test_a_stick_another_program_holds_says_how_to_find_it() -> None:
    device, _ = make("busy@0")
    with pytest.raises(DeviceOpenError, match=r"held by another program.*fuser -v /dev/bus/usb/"):
        device.open()


def test_the_interface_of_a_run_that_died_is_held_until_that_is_gone() -> None:
    device, stick = make()
    stick.drivers.discard(stick.profile.interface)
    stick.owners[stick.profile.interface] = object()
    with pytest.raises(DeviceOpenError, match="held by another program"):
        device.open()
    stick.owners.clear()
    device.open()
    device.close()
    assert stick.profile.interface in stick.drivers, "what the dead run had taken is given back as well"


def test_without_permission_the_rule_for_this_very_stick_is_given() -> None:
    device, _ = make("no-permission@0")
    with pytest.raises(DeviceOpenError) as error:
        device.open()
    text = str(error.value)
    assert 'ATTR{idVendor}=="1209", ATTR{idProduct}=="ffb0"' in text
    assert "/etc/udev/rules.d/70-haptics.rules" in text
    assert 'TAG+="uaccess"' in text


def test_without_libusb_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import libusb_package
    import usb.backend.libusb1

    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: None)
    monkeypatch.setattr(libusb_package, "get_libusb1_backend", lambda *_, **__: None)
    with pytest.raises(DeviceOpenError, match=r"apt-get install libusb-1\.0-0.*pip install libusb-package"):
        usb_listing.libusb()
    monkeypatch.setattr(finding, "hidraw_sticks", lambda root=None: [])
    with pytest.raises(DeviceOpenError, match="no libusb"):
        PidJoystick().open()


def test_the_systems_libusb_comes_first_then_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import libusb_package
    import usb.backend.libusb1

    own, packaged = object(), object()
    monkeypatch.setattr(libusb_package, "get_libusb1_backend", lambda *_, **__: packaged)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: own)
    assert usb_listing.libusb() is own
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda *_, **__: None)
    assert usb_listing.libusb() is packaged


# --- which stick -------------------------------------------------------------------------------------------------


def two(*serials: str) -> EmulatedUsbBackend:
    return EmulatedUsbBackend(*(EmulatedStick("openffboard", hand=STILL, serial=serial) for serial in serials))


def test_two_sticks_at_once_by_serial_number() -> None:
    backend = two("A1", "B2")
    both = [
        PidJoystick({"emulated": True, "serial": serial}, backend=_only(backend, serial)) for serial in ("A1", "B2")
    ]
    for device in both:
        device.backend = backend
        device.open()
    try:
        for _ in range(30):
            both[0].write(np.array((2.0, 0.0)))
            both[1].write(np.array((0.0, -3.0)))
            time.sleep(1e-3)
        np.testing.assert_allclose(backend.sticks[0].force, (2.0, 0.0), atol=0.02)
        np.testing.assert_allclose(backend.sticks[1].force, (0.0, -3.0), atol=0.03)
    finally:
        for device in both:
            device.close()


def _only(backend: EmulatedUsbBackend, serial: str) -> EmulatedUsbBackend:
    return EmulatedUsbBackend(*(stick for stick in backend.sticks if stick.serial == serial))


def test_several_sticks_that_could_be_meant_are_named() -> None:
    with pytest.raises(DeviceOpenError, match=r"serial A1.*serial B2.*device\.serial"):
        choose(usb_sticks(two("A1", "B2")), "1209:ffb0", "")


def test_a_stick_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(DeviceNotFoundError, match=r"045e:001b.*there is .*1209:ffb0\) serial A1"):
        choose(usb_sticks(two("A1")), "045e:001b", "")
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick is plugged in"):
        choose([], "045e:001b", "")


@pytest.mark.parametrize("profile", EMULATORS)
def test_found_sticks_say_what_they_are(profile: str) -> None:
    backend = emulated_stick(profile, hand=STILL)
    (found,) = find_sticks(backend)
    truth = backend.sticks[0].truths["device"]
    assert (found.vendor_id, found.product_id) == (truth["vendor_id"], truth["product_id"])
    assert (found.serial, found.name) == (truth["serial"], truth["name"])
    assert (found.in_interval, found.out_interval) == (truth["in_interval_s"], truth["out_interval_s"])
    assert found.speaks_pid
    assert found.missing == ()
    assert backend.sticks[0].drivers, "looking takes nothing away"


def test_what_is_missing_to_use_a_stick_is_said() -> None:
    (found,) = find_sticks(emulated_stick("openffboard", hand=STILL, faults=["no-permission@0"]))
    assert found.serial is None
    assert "idVendor" in found.missing[0]


# --- parameters ----------------------------------------------------------------------------------------------------


def stored(device: PidJoystick, folder: Path, **changes: Any) -> str:
    assert device.parameters is not None
    text = format_parameters(device.parameters)
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    path = folder / "stick.toml"
    path.write_text(text)
    return str(path)


def test_an_uncalibrated_stick_is_not_rendered_with() -> None:
    device = PidJoystick(backend=emulated_stick("openffboard", hand=STILL))
    assert device.spec.identity == "not calibrated"
    with pytest.raises(ConfigurationError, match=r"device\.parameters is missing.*haptics calibrate joystick"):
        device.open()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('report_descriptor_sha256 = "', 'report_descriptor_sha256 = "0', "report descriptor"),
        ('serial = "EMULATED0001"', 'serial = "OTHER"', "OTHER"),
        ("product_id = 0xffb0", "product_id = 0xffb1", "1209:ffb1"),
    ],
)
def test_parameters_of_another_stick_are_refused(tmp_path: Path, old: str, new: str, what: str) -> None:
    device, _ = make()
    path = stored(device, tmp_path, one=(old, new))
    if what == "report descriptor":
        Path(path).write_text(_shortened(Path(path).read_text()))
    other = PidJoystick({"parameters": path}, backend=device.backend)
    with pytest.raises((ConfigurationError, DeviceNotFoundError), match=what):
        other.open()
    stick = device.backend.sticks[0]
    assert not stick.owners


def _shortened(text: str) -> str:
    """Make the digest one digit shorter again, that is as long as it must be."""
    lines = [line[:-2] + '"' if line.startswith("report_descriptor_sha256") else line for line in text.splitlines()]
    return "\n".join(lines)


def test_a_serial_number_that_is_not_that_of_the_parameters_is_refused(tmp_path: Path) -> None:
    device, _ = make()
    with pytest.raises(ConfigurationError, match=r"device\.serial = 'X'.*EMULATED0001"):
        PidJoystick({"parameters": stored(device, tmp_path), "serial": "X"}, backend=device.backend)


def test_dead_man_is_the_button_the_file_names(tmp_path: Path) -> None:
    device, _ = make()
    path = stored(device, tmp_path, one=("dead_man_button = 0", "dead_man_button = 1"))
    held = PidJoystick({"emulated": True, "parameters": path, "hand": {"name": "minimum-jerk"}})
    assert held.spec.dead_man == "button"
    assert device.spec.dead_man == "none"
    with held:
        time.sleep(0.05)
        assert held.read().buttons & 1 == 1
        assert held.read().buttons & 2 == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emulator": "wheel"}, r"device\.emulator = 'wheel'"),
        ({"transport": "bluetooth"}, r"device\.transport = 'bluetooth': must be one of auto, usb, hidraw"),
        ({"keep_alive": 0.15}, r"device\.keep_alive = 0\.15 s: must be at most half"),
        ({"emulated": True, "transport": "hidraw"}, r"device\.transport = 'hidraw'"),
        ({"parameters": "/nowhere.toml"}, r"device\.parameters = '/nowhere\.toml': cannot be read"),
        ({"hand": {"name": "minimum-jerk"}}, r"device\.hand: only an emulated"),
        ({"emulated": True, "hand": {"name": "foot"}}, r"unknown hand 'foot'"),
        ({"seed": 0.5}, r"device\.seed = 0\.5"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PidJoystick(settings)


def test_a_simulated_hand_is_that_of_a_virtual_or_an_emulated_device() -> None:
    assert devices.has_simulated_hand("virtual-arm")
    assert devices.has_simulated_hand("pid-joystick", {"emulated": True})
    assert not devices.has_simulated_hand("pid-joystick", {"emulated": False})
    assert not devices.has_simulated_hand("pid-joystick")


def test_the_data_sheet_tells_what_the_bus_costs() -> None:
    slow, fast = (make(profile=profile)[0].spec for profile in ("sidewinder-ff2", "openffboard"))
    assert slow.delay == pytest.approx(9e-3)
    assert fast.delay == pytest.approx(3e-3)
    assert slow.watchdog == 0.2


# --- the closed loop -----------------------------------------------------------------------------------------------


class BusClock(Clock):
    """Goes by with the frames of the bus; nobody waits for them."""

    def __init__(self, period: float, bus: FreeTime) -> None:
        super().__init__(period)
        self._bus = bus
        self.start()

    def start(self) -> None:
        super().start()
        self._origin = self._bus.now()

    def elapsed(self) -> float:
        return self._bus.now() - self._origin

    def wait(self, tick: int) -> float:
        self._bus.wait_until(self._origin + tick * self.period)
        self.tick = tick
        return max(self.elapsed() - self.time, 0.0)


class InStep(Streaming):
    """Streaming without threads: a report is read before each tick, and what changed is written after it."""

    def start(self, patience: float) -> None:
        self._ask()

    def stop(self) -> None:
        pass

    def step(self) -> None:
        data = self._transport.read(2.0 * FRAME)
        self.heard = streaming.time.perf_counter()
        if data is not None:
            self._take(data, self.heard, True)

    def command(self, level_x: float, level_y: float) -> None:
        super().command(level_x, level_y)
        self._wake.acquire(blocking=False)
        self._exchange()


class Watched:
    """The device in step with the bus, and what its handle really does."""

    def __init__(self, device: PidJoystick) -> None:
        self._device = device
        self.rows: list[tuple[float, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def read(self) -> State:
        self._device._opened().step()  # type: ignore[attr-defined]
        return self._device.read()

    def write(self, command: np.ndarray) -> None:
        self._device.write(command)
        stick = self._device.backend.sticks[0]
        self.rows.append((np.hypot(*command), *stick.force, *stick.handle))


Loop = Callable[[str, dict[str, Any], float, float, float], np.ndarray]


@pytest.fixture
def loop(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """Render model C: stick, hand, force, stiffness, damping; return force commanded, force and place of the handle."""

    def render(profile: str, hand: dict[str, Any], force: float, stiffness: float, damping: float) -> np.ndarray:
        backend = emulated_stick(profile, hand=hand, period=0.0)
        bus = backend.sticks[0].time
        for module in (streaming, device_module):
            monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=bus.now, sleep=time.sleep))
        monkeypatch.setattr(device_module, "Streaming", InStep)
        period = 2.0 * (FRAME + backend.sticks[0].truths["device"]["out_interval_s"])  # all goes one after the other
        clock = BusClock(period, bus)
        device = PidJoystick({"emulated": True, "emulator": profile}, clock=clock, backend=backend)
        watched = Watched(device)
        element = MasslessImpedance(Coulomb(force), stiffness, damping, period)
        Servo(watched, element, trace, clock=clock).run(8.0)  # type: ignore[arg-type]
        return np.array(watched.rows)

    return render


HOLDING = [("openffboard", 3.0, 300.0, 3.0), ("sidewinder-ff2", 2.0, 60.0, 1.0), ("arduino", 3.0, 200.0, 2.0)]
SLIDING = [("openffboard", 3.0, 300.0, 3.0), ("sidewinder-ff2", 1.5, 120.0, 3.0), ("arduino", 2.0, 300.0, 3.0)]
"""Stick, force [N], stiffness [N/m] and damping [N s/m]: what the delays of their endpoints allow; and softer where a
hand that only pushes damps nothing."""


@pytest.mark.parametrize(("profile", "force", "stiffness", "damping"), HOLDING)
def test_model_c_holds_without_drift(profile: str, force: float, stiffness: float, damping: float, loop: Loop) -> None:
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [1.0, 0.4 * force, 0.3 * force]]}
    rows = loop(profile, hand, force, stiffness, damping)
    half, quarter = len(rows) // 2, len(rows) * 3 // 4
    first, second = rows[half:quarter, 3:5].mean(axis=0), rows[quarter:-30, 3:5].mean(axis=0)
    deflection = 0.5 * force / stiffness
    np.testing.assert_allclose(first, second, atol=0.02 * deflection)
    assert np.hypot(*first) == pytest.approx(deflection, rel=0.1), "the coupling gives way, not the friction"


@pytest.mark.parametrize(("profile", "force", "stiffness", "damping"), SLIDING)
def test_model_c_slides_with_its_force_at_the_handle(
    profile: str, force: float, stiffness: float, damping: float, loop: Loop
) -> None:
    rows = loop(profile, {"name": "minimum-jerk"}, force, stiffness, damping)
    full = np.abs(rows[:, 0] - force) < 1e-9
    steady = full.copy()
    for ago in range(1, 3):  # what was commanded is there two ticks later
        steady[ago:] &= full[:-ago]
    assert steady.sum() > 10
    forces = np.hypot(rows[steady, 1], rows[steady, 2])
    assert forces.mean() == pytest.approx(force, rel=0.01)


def test_unplugged_in_a_run_it_ends_with_a_fault(trace: Trace) -> None:
    clock = WallClock(1e-3)
    backend = emulated_stick("openffboard", hand=STILL)
    device = PidJoystick({"emulated": True}, clock=clock, backend=backend)
    stick = backend.sticks[0]
    pulled = itertools.count()

    def pull(_: Any) -> None:
        if next(pulled) == 100:
            stick.unplug()

    servo = Servo(device, MasslessImpedance(Coulomb(2.0), 300.0, 2.0), trace, clock=clock, before_tick=pull)
    with pytest.raises(DeviceFault, match=r"pid-joystick failed at tick 1\d\d: the stick was unplugged"):
        servo.run(1.0)
    assert not stick.owners
