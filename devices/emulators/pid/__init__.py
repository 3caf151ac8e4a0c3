"""Force-feedback sticks of the USB HID PID class, emulated byte by byte, with a simulated handle.

    backend = emulated_stick("openffboard", seed=1)
    device = usb.core.find(backend=backend)

- `devices.emulators.pid.profiles`: the available sticks (`known`), each a `profile`; `layouts`, `directions`: their
  bytes; the ``.hex`` files: their report descriptors.
- `devices.emulators.pid.firmware`: firmware with its `machine`, which has a `pool` of `effects`; `enumeration`.
- `devices.emulators.pid.plant`: the virtual joystick with motors and converters.
- `devices.emulators.pid.stick`: the stick on the bus, with its `faults`.
- `devices.emulators.pid.usb_backend`: the bus, for pyusb, with its `descriptor_tree` and its `transfers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devices.emulators.pid.usb_backend import EmulatedUsbBackend
    from devices.virtual.hands.registry import HandTable

__all__ = ["emulated_stick"]


def emulated_stick(
    profile: str,
    *,
    hand: HandTable | None = None,
    seed: int = 0,
    serial: str | None = None,
    period: float = 1e-3,
    faults: Iterable[str] = (),
    friction: Any = None,
) -> EmulatedUsbBackend:
    """Return a backend for pyusb with one stick on its bus.

    Parameters
    ----------
    profile : str
        ``openffboard``, ``sidewinder-ff2`` or ``arduino``.
    hand : mapping, optional
        Table of the hand that holds the handle (`devices.virtual.hands.registry.make_hand`).
    seed : int
        Seed of the random numbers.
    serial : str, optional
        Serial number; by default the serial number of the profile.
    period : float
        Length of a frame of the bus: 1e-3 s in real time; or 0 for simulated time, which advances with the transfers as
        fast as possible.
    faults : iterable of str
        Communication faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.pid.faults`).
    friction : mapping, optional
        Dry friction of the handle (`devices.common.friction.parse_friction`).

    Raises
    ------
    ConfigurationError
        If profile, fault, period, hand or friction is invalid.
    """
    from devices.emulators.pid.stick import EmulatedStick
    from devices.emulators.pid.usb_backend import EmulatedUsbBackend
    from devices.emulators.times import FreeTime, WallTime
    from haptics.errors import ConfigurationError

    if period not in {0.0, 1e-3}:
        raise ConfigurationError(f"period = {period!r} s: a frame of the bus lasts 1e-3 s, or nobody waits for it (0).")
    time = WallTime() if period else FreeTime()
    stick = EmulatedStick(profile, hand=hand, seed=seed, serial=serial, time=time, faults=faults, friction=friction)
    return EmulatedUsbBackend(stick)
