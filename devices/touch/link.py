"""Connection to a device through HDAPI: opening, calibration, motors, and the end.

HDAPI has one scheduler per process, whose thread runs the callbacks of all devices (`devices.touch.callback`). While it
runs, other threads must not call functions of a device. They send requests, which the callback performs in its next
frame. The scheduler is halted while a device is opened or closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from devices.common.exchange import ExchangeSettings, Link
from devices.touch.callback import (
    CHECK,
    COMMAND_SIZE,
    DISABLE,
    ENABLE,
    FUNCTIONS,
    LOOP,
    SAMPLE_SIZE,
    UPDATE,
    serve,
)
from devices.touch.hdapi import (
    CALLBACK,
    DEVICE_ERRORS,
    INVALID_HANDLE,
    MAX_PRIORITY,
    NAME,
    PROTECTIONS,
    Calibration,
    ErrorInfo,
    Parameter,
    Style,
    explain,
)
from haptics.clock import instruct, pause
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.jit import compile_callback

PATIENCE = 0.25
"""Timeout of a request to the servo loop [s]."""

CLOSING = 0.5
"""Timeout of the end of the servo loop and of the release of the device, without forces [s].

All timeouts at the end are together shorter than the time after which the application ends a servo process without
ticks, 1 s.
"""

_LAST_PATIENCE = 0.05  # timeout of a request to a servo loop that seems to have stopped [s]
_START = 5.0  # timeout of the first frame [s]
_SLICE = 1e-3
_REST_FRAMES = 2  # number of consecutive frames with a zero force that confirm it
_FIRST_FRAMES = 100  # number of frames after which the state of the calibration is known

_RESTS, _HALTED = 0, 1
"""Reasons for a zero force, indices of ``hold``."""

_TEXTS = {
    "model": Parameter.MODEL,
    "vendor": Parameter.VENDOR,
    "serial": Parameter.SERIAL_NUMBER,
    "driver_version": Parameter.DRIVER_VERSION,
    "firmware_version": Parameter.FIRMWARE_VERSION,
}
_NUMBERS = {
    "max_force": (Parameter.MAX_FORCE, 1),
    "continuous_force": (Parameter.CONTINUOUS_FORCE, 1),
    "usable_workspace_mm": (Parameter.USABLE_WORKSPACE, 6),
    "motor_temperatures": (Parameter.MOTOR_TEMPERATURE, 6),
    "ramping_rate": (Parameter.RAMPING_RATE, 1),
}

_MANUAL = {
    Style.AUTO: "move the stylus through its whole workspace in the maker's diagnostic program",
    Style.INKWELL: "put the stylus into the inkwell",
    Style.ENCODER_RESET: "hold all links at right angles, and start with device.reset_encoders=true",
}
"""Instructions for a calibration that needs the user, the preferred style first."""


class Library:
    """HDAPI with its scheduler, shared by all devices of the process (`library_of`).

    Parameters
    ----------
    functions : CDLL
        Loaded library with the declared functions `devices.touch.hdapi.PROTOTYPES`.
    """

    def __init__(self, functions: ctypes.CDLL) -> None:
        self.functions = functions
        self._links: list[TouchLink] = []
        self._lock = threading.Lock()
        address, self._compiled = compile_callback(serve)
        self._callback = CALLBACK(address)

    @contextlib.contextmanager
    def halted(self, closing: TouchLink | None = None) -> Iterator[None]:
        """Halt the scheduler within the block; open devices get a zero force before, except `closing`."""
        if not self._lock.acquire(timeout=_START):
            raise DeviceOpenError(f"{NAME}: the maker's library still does not end its servo loop: end this program.")
        try:
            if self._links:
                for link in self._links:
                    if link is not closing:
                        link.rest(_HALTED)
                self.functions.hdStopScheduler()
            try:
                yield
            finally:
                for link, following in zip(self._links, self._links[1:] + self._links[:1], strict=True):
                    link.record["next"] = following.place
                if self._links:
                    self.functions.hdStartScheduler()
                for link in self._links:
                    link.release(_HALTED)
        finally:
            self._lock.release()

    def pop_errors(self) -> list[ErrorInfo]:
        """Clear the error stack, and return its entries from the oldest to the newest."""
        found: list[ErrorInfo] = []
        while (error := self.functions.hdGetError()).code and len(found) < 100:
            found.insert(0, error)
        return found

    def open(self, configuration: str, settings: ExchangeSettings, reset_encoders: bool) -> TouchLink:
        """Open a device and start its frames, with a zero force.

        Parameters
        ----------
        configuration : str
            Name of the device in the manufacturer's configuration; empty for the default device.
        settings : ExchangeSettings
            Settings of the exchange.
        reset_encoders : bool
            Whether the links are held at right angles, for a device that is calibrated there.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            With the remedy.
        """
        with self.halted():
            self.pop_errors()
            handle = self.functions.hdInitDevice(configuration.encode() or None)
            errors = self.pop_errors()
            if errors or handle == INVALID_HANDLE:
                if handle != INVALID_HANDLE:
                    self._release(handle)
                raise _not_opened(configuration, errors)
            link = TouchLink(self, handle, settings)
            if reset_encoders:
                self.functions.hdUpdateCalibration(Style.ENCODER_RESET)
            link.scheduled = self.functions.hdScheduleAsynchronous(self._callback, link.place, MAX_PRIORITY)
            if errors := self.pop_errors():
                self.functions.hdUnschedule(link.scheduled)
                self._release(handle)
                _raise_first(errors)
            self._links.append(link)
        if not link.wait_for(lambda record: record["rounds"] >= _FIRST_FRAMES, _START):
            _raise_first(self.close(link))
            raise DeviceOpenError(f"{NAME}: the maker's servo loop did not start within {_START:g} s.")
        return link

    def close(self, link: TouchLink) -> list[ErrorInfo]:
        """End the frames of a device and release it; return the errors."""
        with self.halted(link):
            self._links.remove(link)
            self.functions.hdUnschedule(link.scheduled)
            errors = self.pop_errors()
            return errors + self._release(link.handle)

    def _release(self, handle: int) -> list[ErrorInfo]:
        """Release a device and clear the error stack, which other devices share; return the errors."""
        self.functions.hdDisableDevice(handle)
        return self.pop_errors()


def _not_opened(configuration: str, errors: list[ErrorInfo]) -> DeviceNotFoundError | DeviceOpenError:
    """Return the error of a device that was not opened."""
    name = f"the device {configuration!r}" if configuration else "the default device"
    code, internal = (errors[0].code, errors[0].internal) if errors else (DEVICE_ERRORS[0], 0)
    words = f"{NAME}: {name} was not opened: {explain(code, internal)}."
    if code not in DEVICE_ERRORS:
        return DeviceOpenError(words)
    return DeviceNotFoundError(
        f"{words} Connect it, give this user access to it (haptics doctor udev), give it a name with the maker's "
        "Touch_Setup or PHANToMConfiguration, set device.configuration to this name, and see that GTDD_HOME names the "
        "folder of the configuration. Or do without one: device.emulated=true."
    )


def _raise_first(errors: list[ErrorInfo]) -> None:
    """Raise `DeviceOpenError` for the first error, if any."""
    if errors:
        raise DeviceOpenError(f"{NAME}: {explain(errors[0].code, errors[0].internal)}.")


_libraries: dict[int, Library] = {}


def library_of(functions: ctypes.CDLL) -> Library:
    """Return the `Library` of a loaded library, the same one each time."""
    handle = functions._handle
    if handle not in _libraries:
        _libraries[handle] = Library(functions)
    return _libraries[handle]


class TouchLink(Link):
    """Open device.

    Parameters
    ----------
    library : Library
        Its library, with a halted scheduler, of which it is the current device.
    handle : int
        Its handle.
    settings : ExchangeSettings
        Settings of the exchange.

    Attributes
    ----------
    record : (1,) structured array
        Record of the callback, of dtype `devices.touch.callback.LOOP`.
    place : int
        Address of the record.
    scheduled : int
        Handle of the callback.
    facts : dict
        Identity and limits of the device according to the library.
    """

    noun = "Touch"
    remedy = "let go of the stylus, and switch the device off or unplug it"
    sample_size, command_size = SAMPLE_SIZE, COMMAND_SIZE

    def __init__(self, library: Library, handle: int, settings: ExchangeSettings) -> None:
        super().__init__(settings)
        self.handle, self.scheduled = handle, 0
        self._library = library
        self.facts = self._read_facts(library)
        self.record = np.zeros(1, LOOP)
        record, self.place = self.record, int(self.record.ctypes.data)
        for field, name in FUNCTIONS.items():
            record[field] = ctypes.cast(getattr(library.functions, name), ctypes.c_void_p).value
        record["samples"], record["commands"] = self.samples.place, self.commands.place
        record["lost"], record["next"], record["handle"] = self.lost.ctypes.data, self.place, handle
        record["motors"], record["watchdog"] = len(self.facts["motor_temperatures"]), settings.watchdog
        record["hold"][0, _RESTS] = 1

    @staticmethod
    def _read_facts(library: Library) -> dict[str, Any]:
        """Return identity and limits of the current device; unknown values are left out."""
        facts: dict[str, Any] = {}
        for name, parameter in _TEXTS.items():
            text = library.functions.hdGetString(parameter)
            facts[name] = (text or b"").decode(errors="replace")
        for name, (parameter, size) in _NUMBERS.items():
            numbers = (ctypes.c_double * size)(*[np.nan] * size)
            library.functions.hdGetDoublev(parameter, numbers)
            facts[name] = [number for number in numbers if np.isfinite(number)]
        facts |= {name: bool(library.functions.hdIsEnabled(number)) for name, number in PROTECTIONS.items()}
        style = ctypes.c_int()
        library.functions.hdGetIntegerv(Parameter.CALIBRATION_STYLE, ctypes.byref(style))
        facts["calibration_style"] = style.value
        library.pop_errors()  # a model may lack some of them
        return facts

    # --- servo loop ---------------------------------------------------------------------------------------------------

    def wait_for(self, condition: Callable[[Any], bool], patience: float = PATIENCE) -> bool:
        """Wait until a `condition` of the record holds; return False after `patience` [s]."""
        latest = time.monotonic() + patience
        while not condition(self.record[0]):
            if time.monotonic() > latest:
                return False
            time.sleep(_SLICE)
        return True

    def request(self, kind: int, argument: int = 0, patience: float = PATIENCE) -> int:
        """Have the callback perform a request in its next frame, and return the answer.

        Raises
        ------
        DeviceFault
            If the callback does not run.
        """
        self.record["argument"], self.record["answer"] = argument, 0
        self.record["request"] = kind
        if not self.wait_for(lambda record: record["request"] == 0, patience):
            raise DeviceFault("the maker's servo loop does not run")
        return int(self.record["answer"][0])

    def rest(self, reason: int) -> bool:
        """Set the force to zero for a `reason`; return True if the device accepted that."""
        self.record["hold"][0, reason] = 1
        latest = int(self.record["rounds"][0]) + _REST_FRAMES
        return self.wait_for(lambda record: record["rounds"] >= latest and record["rested"] >= _REST_FRAMES)

    def release(self, reason: int) -> None:
        """Allow forces again, unless there is another reason for a zero force."""
        self.record["hold"][0, reason] = 0

    def failure_words(self) -> str:
        """Return the message of the first error of the device; empty without an error."""
        code, internal = int(self.record["error"][0]), int(self.record["internal"][0])
        return explain(code, internal) if code else ""

    # --- opening ------------------------------------------------------------------------------------------------------

    def calibrate(self, patience: float) -> None:
        """Wait until the device is calibrated, update the calibration where possible, and instruct the person.

        Raises
        ------
        DeviceOpenError
            If it is not calibrated within `patience` [s].
        """
        style = next((known for known in _MANUAL if self.facts["calibration_style"] & known), Style.INKWELL)
        latest, instructed = time.monotonic() + patience, False
        while (state := self.request(CHECK)) != Calibration.OK:
            if words := self.failure_words():
                raise DeviceOpenError(f"{NAME}: the calibration failed: {words}.")
            if time.monotonic() > latest:
                raise DeviceOpenError(
                    f"{NAME}: the device was not calibrated within device.patience = {patience:g} s, so that its "
                    f"positions are wrong: {_MANUAL[style]}."
                )
            if state == Calibration.NEEDS_UPDATE and style != Style.ENCODER_RESET:  # which needs the right position
                self.request(UPDATE, style)
            elif not instructed:
                instruct(f"{_MANUAL[style]}.")
                instructed = True
            pause(_SLICE)

    def switch_on(self) -> None:
        """Switch the motors on; the force remains zero until `start`.

        Raises
        ------
        DeviceOpenError
            If they remain off.
        """
        if not self.request(ENABLE) or self.failure_words():
            reason = self.failure_words() or "the library does not enable the force output"
            raise DeviceOpenError(f"{NAME}: the motors remain off: {reason}.")

    # --- link ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to apply commands."""
        self.release(_RESTS)

    def stop(self) -> None:
        """Stop applying commands."""
        self.record["hold"][0, _RESTS] = 1

    def come_to_rest(self) -> bool:
        """Set the force to zero and switch the motors off; return True if the device confirmed both.

        Raises
        ------
        DeviceFault
            If the servo loop does not run.
        """
        rests = self.rest(_RESTS)
        return self.request(DISABLE, patience=PATIENCE if rests else _LAST_PATIENCE) == 0 and rests

    def close(self) -> None:
        """End the frames and release the device.

        Raises
        ------
        DeviceFault
            If the library does not return.
        """
        ends = threading.Thread(target=self._library.close, args=(self,), name="closing the Touch", daemon=True)
        ends.start()
        ends.join(CLOSING)
        if ends.is_alive():
            raise DeviceFault(f"{NAME}: the maker's library does not end its servo loop; {self.remedy}.")
