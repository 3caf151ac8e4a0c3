"""Reaching the stick that is meant, making sure that it is the one that was calibrated, and playing forces on it."""

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
"""In place of the axis of a wheel: the first one that has a motor."""

FIRST_REPORT = 1.0
"""A stick that has sent no position for so long after it was opened will send none [s]."""


def reach(settings: StickSettings, known: StickParameters | None, backend: Any = None) -> Transport:
    """Connect to the stick that settings and parameters mean; any if they mean none.

    Raises
    ------
    DeviceNotFoundError
        If it is not plugged in; says what the parameters have to do with it.
    DeviceOpenError
        If it could not be opened; says what to do.
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
    """Return the parameters; refuse to go on without any, or with those of another stick.

    Parameters
    ----------
    known : StickParameters or None
        What is known of the stick.
    link : Link
        The stick that is connected.
    file : str
        Where the parameters come from.

    Raises
    ------
    ConfigurationError
        Naming what differs.
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
    """Make sure that the stick has the button that must be held: nobody could press it."""
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
    """Set up a stick that is connected and stream to its effects; however that ends, there is no force then.

    Parameters
    ----------
    transport : Transport
        The connection.
    duration : float
        After this long without a restart the stick itself ends the force [s].
    keep_alive : float
        How often the force is started anew, and how long a command counts [s].
    axes : tuple of int
        Usages of the two axes of a stick, of the one of a wheel, for which that may be `THE_MOTORS`.
    patience : float
        How long to wait for the first position [s].
    effects : int
        How many it adds up: with 1 the direction of one effect is streamed. A wheel has one in any case.

    Raises
    ------
    DeviceOpenError
        If its reports cannot be understood or do not do, it refuses, or it sends no positions.
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
    """Refuse what has one axis with a motor: the other one would be measured, and never pushed."""
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
