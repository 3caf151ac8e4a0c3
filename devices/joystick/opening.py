"""Reaching the stick that is meant, making sure that it is the one that was calibrated, and finding its reports."""

from __future__ import annotations

from typing import Any

from devices.joystick.descriptor import DescriptorError, ReportDescriptor, parse_descriptor
from devices.joystick.families import family_of
from devices.joystick.finding import connect
from devices.joystick.parameters import StickParameters
from devices.joystick.session import PidSession, Playbook
from devices.joystick.settings import StickSettings
from devices.joystick.streaming import InputLayout
from devices.joystick.transport import Link, Transport
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError


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
        return connect(identity, serial, settings.transport, backend)
    except DeviceNotFoundError as error:
        hint = ""
        if known is None:
            hint = " It will need a parameter file, too, device.parameters: haptics calibrate joystick makes it."
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
            f"device.parameters is missing: nobody knows what a count of the stick {link} is in metres, or how "
            "strong it is. Run haptics calibrate joystick, then name its file: --set device.parameters=FILE."
        )
    own = known.device
    for what, there, here in (
        ("identity", own.vid_pid, f"{link.vendor_id:04x}:{link.product_id:04x}"),
        ("serial", own.serial, link.serial if own.serial else ""),
        ("report descriptor", own.report_descriptor_sha256, link.digest),
    ):
        if there != here:
            raise ConfigurationError(
                f"device.parameters = {file!r}: are those of another stick; {what} is {there!r} in the file and "
                f"{here!r} of the stick. Run haptics calibrate joystick for this one."
            )
    return known


def prepare(transport: Transport, known: StickParameters, duration: float) -> tuple[PidSession, InputLayout]:
    """Find the reports of a stick that is connected; a force that is not started anew ends after `duration` [s].

    Raises
    ------
    DeviceOpenError
        If its reports cannot be understood, or do not do.
    """
    link = transport.link
    descriptor, family = _parsed(link.descriptor), family_of(link.vendor_id, link.product_id)
    layout = InputLayout(descriptor, known.axes.usage_x, known.axes.usage_y)
    return PidSession(transport, Playbook(descriptor, family), family, duration), layout


def _parsed(descriptor: bytes) -> ReportDescriptor:
    try:
        return parse_descriptor(descriptor)
    except DescriptorError as error:
        raise DeviceOpenError(f"what the stick says of itself cannot be understood: {error}") from error
