"""Where a scene is played: an emulated stick that some operating system shows to the driver.

A program that has a stage calls `play`; the tests get what it prints.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.device import PidJoystick
from devices.joystick.parameters import build_parameters, write_parameters
from devices.joystick.usb import reattaching
from devices.joystick.usb.finding import connect
from devices.joystick.usb.transport import Transport
from tests.processes import until
from tests.system.usb.bus import Bus
from tests.system.usb.driven import KEPT_DURATION
from tests.system.usb.light import light_handles

PATIENCE = 40.0
"""After this long a scene that hangs says where [s]."""


class Plug(Protocol):
    """How the stick is plugged in."""

    bus: Bus

    @property
    def bound(self) -> bool:
        """Whether the kernel's driver has it."""
        ...

    def plug(self) -> None: ...
    def unplug(self) -> None: ...


@dataclass
class Stage:
    """A stick, its plug, and the file with its parameters."""

    stick: EmulatedStick
    plug: Plug
    parameters: Path
    transport: str = "usb"

    def device(self) -> PidJoystick:
        """Return the stick as a device for the servo."""
        settings = {"parameters": str(self.parameters), "transport": self.transport, "force_duration": KEPT_DURATION}
        return PidJoystick(settings)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Transport]:
        """Open and close the stick's transport."""
        transport = connect("", "", self.transport)
        try:
            yield transport
        finally:
            transport.close()

    def bound_again(self) -> bool:
        """Wait until the kernel's driver has the stick, and tell whether it has."""
        with contextlib.suppress(AssertionError):
            until(lambda: self.plug.bound, "the kernel's driver did not come back", 10.0)
        return self.plug.bound

    def guardians(self) -> list[Path]:
        """Return the guardians of sticks that are alive and were started on this stage, which is in a folder."""
        found, folder = [], bytes(self.parameters.parent)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                guards = bytes(Path(reattaching.__file__)) in (process / "cmdline").read_bytes()
                if guards and folder in (process / "environ").read_bytes():
                    found.append(process)
        return found

    @contextlib.contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """Let a fault of the wire be there for a while."""
        self.stick.faults.set(name)
        try:
            yield
        finally:
            self.stick.faults.clear(name)


def staged(profile: str, folder: Path, plug: Callable[[EmulatedStick], Plug]) -> Stage:
    """Plug a stick in; its parameters are what a perfect calibration would find."""
    with light_handles():
        stick = EmulatedStick(profile)
    parameters = folder / "stick.toml"
    write_parameters(parameters, build_parameters(stick.truths))
    return Stage(stick, plug(stick), parameters)


def play(stage: Stage, scenes: Iterable[Callable[[Stage], Any]]) -> None:
    """Play the scenes one after the other, each even if another fails, and print a line with the result of each."""
    for scene in scenes:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        start = time.monotonic()
        found: dict[str, Any] = {"scene": scene.__name__}
        try:
            found["facts"] = scene(stage)
        except Exception:
            found["error"] = traceback.format_exc()
        stage.stick.faults.clear()
        found["seconds"] = round(time.monotonic() - start, 2)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    faulthandler.cancel_dump_traceback_later()


def again(scene: Callable[[Stage], Any], name: str, **changes: Any) -> Callable[[Stage], Any]:
    """Return a scene under another name, to be played on a stage that is changed."""

    def changed(stage: Stage) -> Any:
        return scene(replace(stage, **changes))

    changed.__name__ = name
    return changed


def played(text: str) -> dict[str, Any]:
    """Return what came of each scene, out of what `play` printed; its last line may be cut off."""
    return {found["scene"]: found for found in map(json.loads, text[: text.rfind("\n") + 1].splitlines())}
