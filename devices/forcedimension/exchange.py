"""Exchange of forces for positions with one device."""

from __future__ import annotations

import time
from collections.abc import Callable

from devices.common.exchange import Exchange, ExchangeSettings
from devices.common.output import OutputDriver
from devices.forcedimension.library import MOTOR_SATURATED, TIMEGUARD, Sdk, SdkError, trouble

STATUS_PERIOD = 0.01
"""Time between two requests of the status [s]; the forces are off already when it states so."""

BLOCKED = 0.1
"""Duration of a failed exchange from which calls count as blocked [s].

The end must take less than 1 s, after which the application ends a servo process without ticks.
"""

_NONE = (0.0, 0.0, 0.0)


class DeviceExchange(Exchange):
    """Exchange of forces along the device's axes [N] for positions.

    A sample consists of the position [m] and the maker's estimate of the velocity [m/s] along the device's axes, the
    buttons, the numbers of skipped readings and of saturated forces, and the rate of the communication [Hz]. The time
    of a sample is the time before its reading. Instead of a reading that the library skipped, the sample has the one
    before with its time: the maker does not state whether the library then writes the numbers.

    Parameters
    ----------
    sdk : Sdk
        Open device.
    settings : ExchangeSettings
        Settings of the exchange.
    watched : bool
        Whether the device's own watchdog is on.

    Attributes
    ----------
    output : OutputDriver or None
        Digital output, if another process sets it.
    """

    noun = "device"
    sample_size, command_size = 10, 3

    def __init__(self, sdk: Sdk, settings: ExchangeSettings, *, watched: bool = True) -> None:
        super().__init__(settings)
        ending = "the device switches its forces off by itself when commands cease" if watched else "its force may last"
        self.remedy = f"{ending}: let go of the handle, and switch the device off if it still pushes"
        self._sdk = sdk
        self.output: OutputDriver | None = None
        self._skipped = self._saturated = 0
        self._position: tuple[float, ...] = _NONE
        self._velocity: tuple[float, ...] = _NONE
        self._rate = self._read = self._asked = self._begun = 0.0

    def exchange(self, now: float, command: tuple[float, ...]) -> tuple[float, ...]:
        """Send a force, read the position, and check the status if due."""
        sdk, self._begun = self._sdk, now
        self._saturated += sdk.call("dhdSetForce", *command) == MOTOR_SATURATED
        if self.output is not None:
            self.output.poll()
        before = time.perf_counter()
        result, position = sdk.vector("dhdGetPosition")
        if result == TIMEGUARD:
            self._skipped += 1
        else:
            self._read, self._position = before, position
        result, velocity = sdk.vector("dhdGetLinearVelocity")
        if result != TIMEGUARD:
            self._velocity = velocity
        buttons = sdk.library.dhdGetButtonMask(sdk.device)
        if before - self._asked >= STATUS_PERIOD:
            self._asked = before
            self._rate = 1e3 * sdk.library.dhdGetComFreq(sdk.device)
            reason = trouble(sdk.status())
            if reason:
                raise SdkError(reason)
        state = *self._position, *self._velocity
        return self._read, *state, buttons, self._skipped, self._saturated, self._rate

    def come_to_rest(self) -> bool:
        """Send a zero force, switch the forces off, apply the brakes and set the output to 0; return True if confirmed.

        Every call is tried, also after an error.

        Raises
        ------
        SdkError
            The first error.
        """
        errors: list[SdkError] = []
        calls: tuple[Callable[[], object], ...] = (
            lambda: self._sdk.call("dhdSetForce", *_NONE),
            lambda: self._sdk.call("dhdEnableForce", False),
            lambda: self._sdk.call("dhdSetBrakes", True),
        )
        if self.output is not None:
            calls = (*calls, self.output.close)
        for call in calls:
            try:
                call()
            except SdkError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return True

    def fail_safe(self, error: Exception) -> None:
        """Try to reach the safe output, unless calls block: then only the closing of the driver tries it."""
        if time.perf_counter() - self._begun < BLOCKED:
            self.come_to_rest()
