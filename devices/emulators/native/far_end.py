"""Devices of an emulated maker's library, each served by a thread of C in a child process; their faults and record.

`devices_of` builds the devices in a temporary folder with a copy of the library, whose path is the address of the
emulator. The state of every device is a file in shared memory, so that another process can switch its faults and read
its record while it runs (`FarEnd`).
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.emulators.handle import SimulatedHandle
from devices.emulators.loop import MEMORY
from devices.emulators.native.compiler import compiled, fault_flags
from devices.emulators.wire_faults import DELAYS, OPENING, parse_wire_fault
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.jit import COMPILED
from haptics.records import fields

_IDLE = 5e-3  # longest time between two passes of the device, IDLE of far_end.c [s]

_MOST_FAULTS, _MOST_TIMED, _LOG_LENGTH = 64, 32, 65536

ENTRY = np.dtype(
    [("time", "<f8"), *fields("<f8", "commanded applied position velocity", 3), *fields("<i8", "cause output")]
)
"""Row of the record: time (`time.monotonic`) [s], force of the last command and of the motors [N], true position [m]
and velocity [m/s], the cause for which the forces are off, in the maker's numbers, and the digital output."""

DEVICE = np.dtype(
    [
        *fields("<i8", "take give plant place speed buttons"),
        *(("axes", "<f8", (3, 3)), ("middle", "<f8", (3,))),
        *fields("<f8", "mass damping sag room"),
        *(("weight", "<f8", (3,)), ("brake", "<f8"), ("count", "<f8"), ("astray", "<f8", (3,)), ("most_force", "<f8")),
        ("timed", [*fields("<f8", "start end"), ("bits", "<i8")], (_MOST_TIMED,)),
        *(("delays", "<f8", (_MOST_FAULTS,)), ("causes", "<i8", (_MOST_FAULTS,))),
        *fields("<i8", "watchdog_cause speed_cause unplugging mute homed_at_first"),
        *fields("<i8", "opening switched"),
        *fields("<f8", "began opened origin"),
        *fields("<i8", "tick forces_on braking homed cause past_faults connected transfers"),
        *fields("<f8", "watchdog speed_limit renewed height rise alive stalled_at stall"),
        *fields("<f8", "commanded applied", 3),
        *fields("<i8", "output logged"),
        ("log", ENTRY, (_LOG_LENGTH,)),
    ]
)
"""``struct device`` of far_end.c."""

SAG = 0.3
"""Force of the hand normal to the plane [N]."""

GRIP = 4.0
"""Damping of the hand normal to the plane [N s/m]."""

_SUBSTEP = 1e-4


@dataclass(frozen=True)
class Maker:
    """Library of a maker, and the properties of its devices that are not settings.

    Attributes
    ----------
    source : str
        C file with the maker's symbols, compiled with ``host.c``.
    file : str
        File name of the library.
    faults : mapping
        Faults: name to description, at most 64. The C files know the number of a fault as ``FAULT_NAME``. Those of
        `devices.emulators.wire_faults.DELAYS` delay every reply, ``unplug`` disconnects, ``dropout`` loses replies.
    causes : mapping
        Faults that switch the forces off when they begin: the cause in the maker's numbers.
    watchdog_cause, speed_cause : int
        Causes of a switch-off by the watchdog and by the limit of the speed.
    """

    source: str
    file: str
    faults: Mapping[str, str]
    causes: Mapping[str, int] = field(default_factory=dict)
    watchdog_cause: int = 0
    speed_cause: int = 0

    def library(self) -> Path:
        """Return the compiled library."""
        return compiled(("host.c", self.source), fault_flags(self.faults))

    def bits(self, *names: str) -> int:
        """Return the bits of faults, as a signed number."""
        known = list(self.faults)
        bits = sum(1 << known.index(name) for name in names if name in known)
        return bits - (1 << 64) if bits >> 63 else bits


@dataclass(frozen=True)
class Body:
    """Properties of one device.

    Attributes
    ----------
    name : str
        Name or serial number, by which the library finds it; without a tab.
    kind : int
        Number of the type of the device, for the library.
    axes : sequence of 9 numbers
        Directions of x, y and the normal of the plane of the hand, along the device's axes.
    middle : sequence of 3 numbers
        Origin of the plane [m].
    half_width, half_height : float
        Half the sides of the workspace of the hand [m].
    room : float
        Largest distance from the plane [m].
    mass, damping : float
        Of the handle [kg], [N s/m].
    hand : mapping or None
        Table of the hand that holds the handle.
    seed : int
        Seed of the hand.
    weight : sequence of 3 numbers
        Weight of the moving parts along the device's axes [N].
    sag : float
        Force of the hand normal to the plane [N].
    brake : float
        Damping of braking motors [N s/m].
    count : float
        Resolution of the position [m].
    most_force : float
        Largest force of the motors [N].
    homed : bool
        Whether the device knows its reference positions from the beginning. Otherwise its position is wrong.
    """

    name: str
    kind: int = 0
    axes: Sequence[float] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    middle: Sequence[float] = (0.0, 0.0, 0.0)
    half_width: float = 0.08
    half_height: float = 0.08
    room: float = 0.08
    mass: float = 0.2
    damping: float = 0.5
    hand: Mapping[str, Any] | None = None
    seed: int = 0
    weight: Sequence[float] = (0.0, 0.0, 0.0)
    sag: float = SAG
    brake: float = 5.0
    count: float = 1e-5
    most_force: float = 12.0
    homed: bool = True


class FarEnd:
    """View of a running device from any process: its record, and faults that are switched by hand.

    Parameters
    ----------
    library : Path or str
        Path of the emulated library, the address of the emulator.
    maker : Maker
        Maker of the library.
    name : str
        Name of the device; may be empty if there is only one.
    """

    def __init__(self, library: Path | str, maker: Maker, name: str = "") -> None:
        rows = [line.split("\t") for line in (Path(library).parent / "devices").read_text().splitlines()]
        (path,) = [file for found, _, _, file in rows if name in {"", found}]
        with open(path, "r+b") as file:
            self._memory = np.frombuffer(mmap.mmap(file.fileno(), 0), DEVICE)
        self._maker = maker

    @property
    def state(self) -> Any:
        """Present state, a row of `DEVICE`."""
        return self._memory[0]

    def set(self, *names: str) -> None:
        """Activate faults."""
        self._memory["switched"][0] |= self._maker.bits(*names)

    def clear(self) -> None:
        """Deactivate all faults that were activated by `set`."""
        self._memory["switched"][0] = 0

    def stalled(self) -> float:
        """Return the longest recent time for which the device was not executed [s]."""
        now, state = time.monotonic(), self.state
        recent = float(state["stall"]) if now - state["stalled_at"] < MEMORY else 0.0
        return max(recent, now - float(state["alive"]) - _IDLE)

    def log(self) -> NDArray[Any]:
        """Return a copy of the record, the latest `ENTRY` rows in the order of time."""
        count = int(self._memory["logged"][0])
        rows = self._memory["log"][0]
        return rows[:count].copy() if count <= _LOG_LENGTH else np.roll(rows, -(count % _LOG_LENGTH))


class _Served:
    """A device with its handle, its memory and its socket, which `resources` close."""

    def __init__(
        self,
        maker: Maker,
        body: Body,
        faults: Sequence[str],
        folders: tuple[Path, Path],
        resources: contextlib.ExitStack,
    ) -> None:
        handle = SimulatedHandle(
            _SUBSTEP, body.hand, half_width=body.half_width, half_height=body.half_height, substep=_SUBSTEP,
            mass=body.mass, damping=body.damping, seed=body.seed,
        )  # fmt: skip
        handle.restart()
        self._handle = handle
        self.place, self.memory = (folder / body.name for folder in folders)
        self.memory.write_bytes(b"")
        with open(self.memory, "r+b") as file:
            file.truncate(DEVICE.itemsize)
            self.record = np.frombuffer(mmap.mmap(file.fileno(), 0), DEVICE)
        self._fill(maker, body, faults)
        self.listener = resources.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.listener.bind(str(self.place))
        self.listener.listen()

    def _fill(self, maker: Maker, body: Body, faults: Sequence[str]) -> None:
        joystick, record = self._handle.joystick, self.record
        port = joystick.port()
        if port is None:
            raise ConfigurationError("device.hand: the hand of this emulated device must be one of the named hands.")
        plant = port.record
        record["take"], record["give"] = port.read_part, port.write_part
        record["plant"] = plant.ctypes.data
        for name, source in (("place", "handle"), ("speed", "handle_velocity"), ("buttons", "buttons")):
            record[name] = plant[source].ctypes.data
        record["axes"] = np.reshape(body.axes, (3, 3))
        record["damping"] = body.damping + GRIP
        for name in ("middle", "mass", "sag", "room", "weight", "brake", "count", "most_force"):
            record[name] = getattr(body, name)
        record["homed_at_first"], record["astray"] = body.homed, (0.013, -0.007, 0.021)
        known = list(maker.faults)
        for name, delay in DELAYS.items():
            if name in known:
                record["delays"][0, known.index(name)] = delay
        for name, cause in maker.causes.items():
            record["causes"][0, known.index(name)] = cause
        record["watchdog_cause"], record["speed_cause"] = maker.watchdog_cause, maker.speed_cause
        record["unplugging"], record["mute"] = maker.bits("unplug"), maker.bits("dropout")
        record["opening"] = maker.bits(*OPENING)
        if len(faults) > _MOST_TIMED:
            raise ConfigurationError(f"device.wire_faults: at most {_MOST_TIMED} faults are possible.")
        for row, text in zip(record["timed"][0], faults, strict=False):
            fault = parse_wire_fault(text, maker.faults)
            end = math.inf if fault.duration is None else fault.start + fault.duration
            row["start"], row["end"], row["bits"] = fault.start, end, maker.bits(fault.name)


@contextlib.contextmanager
def devices_of(
    maker: Maker, bodies: Sequence[Body], faults: Sequence[str] = (), until: int = 0
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Build devices; yield the path of their library and the function that serves them until the file `until` ends.

    Parameters
    ----------
    maker : Maker
        Maker of the library.
    bodies : sequence of Body
        The devices, with different names.
    faults : sequence of str
        Faults of all devices by time, ``NAME@SECONDS+DURATION``. The time counts from the first force of every host, or
        from its connection (`devices.emulators.wire_faults.OPENING`).
    until : int
        File descriptor; 0 is standard input, which ends with the parent process.

    Raises
    ------
    DeviceOpenError
        If the sources cannot be compiled, or numba is disabled.
    """
    if not COMPILED:
        raise DeviceOpenError("this emulated device moves in compiled code only: unset NUMBA_DISABLE_JIT.")
    far_end = ctypes.CDLL(str(compiled(("far_end.c",))))
    far_end.serve.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    assert far_end.device_size() == DEVICE.itemsize
    library = maker.library()
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # memory, which no disk delays
    with contextlib.ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="haptics-")))
        memory = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="haptics-", dir=shared)))
        # a copy, because the loader would share the state of one file between all devices of a process
        shutil.copy(library, folder / maker.file)
        served = [_Served(maker, body, faults, (folder, memory), resources) for body in bodies]
        rows = [(b.name, str(b.kind), str(s.place), str(s.memory)) for b, s in zip(bodies, served, strict=True)]
        (folder / "devices").write_text("".join("\t".join(row) + "\n" for row in rows))

        def serve() -> None:
            def run(one: _Served) -> None:
                far_end.serve(one.record.ctypes.data, one.listener.fileno(), until)

            threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in served[1:]]
            for thread in threads:
                thread.start()
            run(served[0])
            for thread in threads:
                thread.join()

        yield str(folder / maker.file), serve
