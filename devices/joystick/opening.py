"""Connection to the selected stick, comparison with the calibrated one, and force streaming."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from devices.joystick.families import family_of
from devices.joystick.hid.actuators import actuated_axes
from devices.joystick.hid.descriptor import DescriptorError, ReportDescriptor, parse_descriptor
from devices.joystick.hid.usages import X, Y
from devices.joystick.inputs import InputLayout
from devices.joystick.parameters import StickParameters
from devices.joystick.playbook import Playbook
from devices.joystick.session import PidSession
from devices.joystick.settings import StickSettings
from devices.joystick.streaming import Streaming
from devices.joystick.usb.finding import connect
from devices.joystick.usb.transport import Link, Transport
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError

THE_MOTORS = ()
"""Placeholder for the axis of a wheel: selects the first axis with a motor."""

FIRST_REPORT = 1.0
"""Timeout for the first position after opening [s]."""


def reach(settings: StickSettings, known: StickParameters | None, backend: Any = None) -> Transport:
    """Connect to the stick that the settings and parameters select; any stick if they select none.

    Raises
    ------
    DeviceNotFoundError
        If it is not connected; the message mentions the role of the parameters.
    DeviceOpenError
        If it could not be opened; the message states the remedy.
    """
    identity = known.device.vid_pid if known else ""
    serial = settings.serial or (known.device.serial if known else "")
    try:
        return connect(identity, serial, settings.transport, backend, settings.port)
    except DeviceNotFoundError as error:
        hint = ""
        if known is None:
            hint = " It will also need a parameter file (device.parameters): haptics calibrate joystick makes it."
        elif settings.parameters:
            hint = f" The file device.parameters = {settings.parameters!r} is that of {known.device}."
        raise DeviceNotFoundError(f"{error}{hint}") from error


def require_parameters(known: StickParameters | None, link: Link, file: str) -> StickParameters:
    """Return the parameters after validating that they belong to the connected stick.

    Parameters
    ----------
    known : StickParameters or None
        Parameters of the stick.
    link : Link
        Properties of the connected stick.
    file : str
        Name of the parameter file.

    Raises
    ------
    ConfigurationError
        If parameters are missing or belong to another stick; names the difference.
    """
    if known is None:
        raise ConfigurationError(
            f"device.parameters is missing: the stick {link} is not calibrated (metres per count, newtons per level). "
            "Run haptics calibrate joystick, then name its file: --set device.parameters=FILE."
        )
    own = known.device
    for what, there, here in (
        ("identity", own.vid_pid, f"{link.vendor_id:04x}:{link.product_id:04x}"),
        ("serial", own.serial, link.serial),
        ("report descriptor", own.report_descriptor_sha256, link.digest),
    ):
        if there != here:
            raise ConfigurationError(
                f"device.parameters = {file!r}: are those of another stick; {what} is {there!r} in the file and "
                f"{here!r} of the stick. Run haptics calibrate joystick for this one."
            )
    _require_button(known, link, file)
    return known


def _require_button(known: StickParameters, link: Link, file: str) -> None:
    """Raise `ConfigurationError` if the stick does not have the configured dead-man's button."""
    button = known.handle.dead_man_button
    there = InputLayout(_parsed(link.descriptor), *known.axes.usages).buttons
    if button > there:
        raise ConfigurationError(
            f"device.parameters = {file!r}: handle.dead_man_button = {button}: the stick has {there} buttons that can "
            "be used; choose one of them, or 0 for none."
        )


@contextlib.contextmanager
def playing(
    transport: Transport,
    duration: float,
    keep_alive: float,
    axes: tuple[int, ...] = (X, Y),
    patience: float = FIRST_REPORT,
    effects: int = 2,
) -> Iterator[Streaming]:
    """Set up a connected stick and stream to its effects. On exit, the force is zero in any case.

    Parameters
    ----------
    transport : Transport
        Open connection.
    duration : float
        Time without a restart after which the stick itself ends the force [s].
    keep_alive : float
        Interval of the restarts, and age at which a command expires [s].
    axes : tuple of int
        Usages of the two axes of a stick, or of the one axis of a wheel, which may be `THE_MOTORS`.
    patience : float
        Timeout for the first position [s].
    effects : int
        Number of effects that the stick adds. With 1, the direction of one effect is streamed. A wheel always has one.

    Raises
    ------
    DeviceOpenError
        If its reports cannot be parsed or are insufficient, it rejects a request, or it sends no positions.
    """
    link = transport.link
    descriptor, family = _parsed(link.descriptor), family_of(link.vendor_id, link.product_id)
    if axes == THE_MOTORS:
        axes = actuated_axes(descriptor)[:1] or (X,)
    elif len(axes) > 1:
        _require_plane(descriptor, link)
    layout = InputLayout(descriptor, *axes)
    session = PidSession(transport, Playbook(descriptor, family), family, duration, min(effects, len(axes)))
    with contextlib.ExitStack() as undo:
        session.start()
        undo.callback(session.stop)
        streaming = Streaming(transport, session, layout, keep_alive)
        undo.callback(streaming.stop)
        streaming.start(patience)
        yield streaming


def _require_plane(descriptor: ReportDescriptor, link: Link) -> None:
    """Raise `DeviceOpenError` for a device with only one motor: its second axis could not exert force."""
    motors = actuated_axes(descriptor)
    if len(motors) == 1:
        raise DeviceOpenError(
            f"{link} is a wheel: one axis with a motor, by its report descriptor. A force in the plane needs two. "
            "Calibrate it as a wheel: haptics calibrate joystick --rim-radius M."
        )


def _parsed(descriptor: bytes) -> ReportDescriptor:
    try:
        return parse_descriptor(descriptor)
    except DescriptorError as error:
        raise DeviceOpenError(f"the stick's report descriptor cannot be read: {error}") from error
