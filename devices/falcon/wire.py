"""Protocol of the Falcon: FTDI chip, boot loader, and packets of its firmware.

An FTDI chip on full-speed USB forwards bytes to a signal processor. It sends a packet when 62 bytes wait, when the
event character has arrived (here ``>``), or when its latency timer expires: then also without data. Every packet begins
with two bytes of modem status.

The processor loses its firmware when it is switched off. Its boot loader takes one that the user provides, and echoes
every byte. The firmware answers each packet of 16 bytes, ``<`` to ``>``, with another one. All other bytes are 0x41
plus a number, mostly of four bits; signed numbers of 16 bits are four such bytes, the lowest first::

    to the Falcon    3 motors (4 bytes each), LEDs and homing mode, 0
    from the Falcon  3 encoders (4 bytes each), 4 bits of the grip's buttons and 3 bits "homed", 1 byte

Sources: libnifalcon (BSD), ``FalconCommLibUSB.cpp``, ``FalconFirmware.cpp``, ``FalconFirmwareNovintSDK.cpp`` and issues
9, 24, 32, 45; libftdi for the requests of the chip; FTDI, AN232B-04, for the event character, which libnifalcon does
not use.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from devices.common import bus
from devices.common.bus import TransferError, Trouble, identity_of
from devices.common.usb_queue import NoQueue, queues_of_libusb
from haptics.clock import raise_if_cancelled
from haptics.errors import DeviceNotFoundError, DeviceOpenError, HapticError

IDENTITY = "0403:cb48"
"""USB identity."""

INTERFACE, ENDPOINT_OUT, ENDPOINT_IN = 0, 0x02, 0x81
"""Interface of the chip and its endpoints."""

# --- packets ----------------------------------------------------------------------------------------------------------

SIZE = 16
"""Length of a packet [byte]."""

GREEN, BLUE, RED = 0x2, 0x4, 0x8
"""LEDs, which may be combined."""

HOMING = 0x1
"""Homing mode, in the same byte as the LEDs: the encoders are set at their index marks."""

HOMED = 7
"""State "homed" of all three encoders."""

LARGEST_MOTOR = 0x7FFF
"""Largest number of a motor that a packet can contain."""

_BASE, _START, _END = 0x41, ord("<"), ord(">")
_SHIFTS = (0, 4, 8, 12)


class Reply(NamedTuple):
    """Contents of a reply: counts of the encoders, pressed buttons (bits), and state "homed" (bits)."""

    counts: tuple[int, int, int]
    buttons: int
    homed: int


def encode(motors: tuple[int, ...], lights: int) -> bytes:
    """Return the packet with the numbers of the three motors, and LEDs and homing mode."""
    nibbles = [number >> shift & 0xF for number in motors for shift in _SHIFTS]
    return bytes((_START, *(_BASE + nibble for nibble in nibbles), _BASE + lights, _BASE, _END))


def decode(packet: bytes) -> Reply | None:
    """Return the contents of a reply; None if it is malformed."""
    if len(packet) != SIZE or packet[0] != _START or packet[-1] != _END:
        return None
    nibbles, state = [byte - _BASE for byte in packet[1:13]], packet[13] - _BASE
    if not all(0 <= nibble <= 0xF for nibble in nibbles) or not 0 <= state <= 0x7F:
        return None
    numbers = (sum(nibbles[4 * k + i] << shift for i, shift in enumerate(_SHIFTS)) for k in range(3))
    first, second, third = (number - (number >> 15 << 16) for number in numbers)
    return Reply((first, second, third), state & 0xF, state >> 4)


class PacketReader:
    """Incremental parser of replies. Bytes outside of packets are dropped."""

    def __init__(self) -> None:
        self._input = bytearray()

    def feed(self, data: bytes) -> Iterator[Reply | None]:
        """Yield the contents of the packets that are complete, None for a malformed one."""
        for byte in data:
            if byte == _START and self._input:  # the end of the previous packet is missing
                self._input.clear()
                yield None
            if not self._input and byte != _START:
                if byte == _END:  # of a packet whose start is missing
                    yield None
                continue
            self._input.append(byte)
            if byte == _END or len(self._input) == SIZE:
                packet = bytes(self._input)
                self._input.clear()
                yield decode(packet)


# --- FTDI chip --------------------------------------------------------------------------------------------------------

_OUT = 0x40
_RESET, _MODEM, _FLOW, _BAUD, _DATA, _EVENT, _LATENCY = 0, 1, 2, 3, 4, 6, 9
_PURGE_IN, _PURGE_OUT = 1, 2
_DTR_LOW, _DTR_HIGH, _RTS_LOW = 0x0100, 0x0101, 0x0200
_EIGHT_BITS = 8
_BAUD_9600, _BAUD_140K, _BAUD_1500K = 0x4138, 0x15, 0x02
_STATUS = 2  # bytes of modem status in front of the data
_CONTROL_TIMEOUT = 250  # timeout of a control transfer [ms]

AGAIN = "unplug the Falcon and its power supply, plug them in and start again"
"""Remedy for a Falcon that does not respond as expected."""


class FalconLine:
    """Serial line to the Falcon's processor, through the FTDI chip of an open USB device.

    One thread may write while another reads.

    Parameters
    ----------
    device : usb.core.Device
        Device whose interface is claimed.
    queue : LibusbQueue
        Queue of its bulk transfers.
    taken : bool
        Whether the interface is returned to a kernel driver on closing.
    now : callable
        Returns the time [s].

    Attributes
    ----------
    device : usb.core.Device
        The device.
    serial : str
        Serial number.
    now : callable
        Returns the time [s].
    """

    def __init__(self, device: Any, queue: Any, taken: bool, now: Callable[[], float] = time.perf_counter) -> None:
        self.device, self.now = device, now
        self.serial = bus.usb_string(device, device.iSerialNumber)
        self._queue, self._taken = queue, taken

    def control(self, request: int, value: int) -> None:
        """Send a request to the chip; raise `TransferError` on failure."""
        try:
            self.device.ctrl_transfer(_OUT, request, value, INTERFACE, None, _CONTROL_TIMEOUT)
        except OSError as error:
            raise _failure(error) from error

    def write(self, data: bytes) -> None:
        """Send at most 64 bytes without waiting; raise `TransferError` on failure."""
        try:
            self._queue.submit(data)
        except OSError as error:
            raise _failure(error) from error

    def read(self, timeout: float) -> bytes | None:
        """Return the data of the next packet, which may be empty; None after `timeout` [s].

        Raises
        ------
        TransferError
            If receiving, or sending earlier data, has failed.
        """
        done = self._queue.wait(timeout)
        if done is None:
            return None
        if done.error:
            raise _failure(OSError(done.error, os.strerror(done.error)))
        return bytes(done.data[_STATUS:])

    def read_until(self, complete: Callable[[bytes], bool], timeout: float) -> bytes:
        """Return the data received until they are `complete`, or until `timeout` [s]."""
        latest, data = self.now() + timeout, b""
        while not complete(data) and (left := latest - self.now()) > 0.0:
            data += self.read(left) or b""
        return data

    def set_up(self) -> None:
        """Set up the chip for the firmware: 1.5 Mbaud, packets at the end of a reply or after 1 ms, empty buffers."""
        self.control(_LATENCY, 1)
        with contextlib.suppress(TransferError):  # the latency timer is enough
            self.control(_EVENT, 0x100 | _END)
        self.control(_BAUD, _BAUD_1500K)
        self.control(_DATA, _EIGHT_BITS)
        self.control(_FLOW, 0)
        self.purge()

    def purge(self) -> None:
        """Discard the data in the buffers of the chip, and the data that was received."""
        self.control(_RESET, _PURGE_IN)
        self.control(_RESET, _PURGE_OUT)
        while self.read(1e-4):
            pass

    def close(self) -> None:
        """Send the waiting packets, release the interface and return it to the kernel's driver."""
        self._queue.close()
        _release(self.device, self._taken)


def _release(device: Any, taken: bool) -> None:
    """Release the interface, return it to the kernel's driver if it was `taken`, and close the device."""
    import usb.util

    with contextlib.suppress(OSError):  # unplugged, or not claimed
        usb.util.release_interface(device, INTERFACE)
    if taken:
        with contextlib.suppress(OSError):
            device.attach_kernel_driver(INTERFACE)
    with contextlib.suppress(OSError):
        usb.util.dispose_resources(device)


def _failure(error: OSError) -> TransferError:
    """Return the error for a failed transfer, with the remedy."""
    trouble = bus.trouble_of(error)
    words = {
        Trouble.UNPLUGGED: "the Falcon was unplugged: plug it in, start again and home it",
        Trouble.TIMEOUT: f"the Falcon did not take a packet in time: {AGAIN}",
        Trouble.STALL: f"the Falcon refused a transfer (stall): {AGAIN}",
        Trouble.BROKEN: f"a transfer failed ({error.strerror or error}): check cable and hub",
    }[trouble]
    return TransferError(f"{words}.", trouble)


def find_falcon(serial: str = "", backend: Any = None) -> Any:
    """Return the selected Falcon on the USB, not open.

    Raises
    ------
    DeviceNotFoundError
        If it is not plugged in.
    DeviceOpenError
        If there are several and none is selected, or libusb is missing.
    """
    import usb.core
    import usb.util

    reached = backend if backend is not None else bus.libusb_backend()
    try:
        found = list(
            usb.core.find(find_all=True, backend=reached, custom_match=lambda own: identity_of(own) == IDENTITY)
        )
    except OSError as error:  # no USB is accessible
        raise DeviceOpenError(f"USB devices cannot be listed ({error}): 'haptics doctor libusb' says why.") from error
    if not found:
        raise DeviceNotFoundError(
            "no Falcon is plugged in: plug in its USB cable and its power supply. Or do without: device.emulated=true."
        )
    if len(found) == 1 and not serial:
        return found[0]
    names: dict[str, Any] = {}
    for device in found:
        try:
            try:
                device.get_active_configuration()  # reading the string would not report a missing permission
            except usb.core.USBError as error:
                if error.errno in bus.DENIED:
                    raise DeviceOpenError(_not_permitted(device)) from error
            names[bus.usb_string(device, device.iSerialNumber)] = device
        finally:
            usb.util.dispose_resources(device)
    listed = ", ".join(sorted(names))
    if not serial:
        raise DeviceOpenError(f"{len(found)} Falcons are plugged in: {listed}. Choose one with device.serial.")
    if serial not in names:
        raise DeviceNotFoundError(f"no Falcon with device.serial = {serial!r} is plugged in; there is {listed}.")
    return names[serial]


def _not_permitted(device: Any) -> str:
    return bus.not_permitted("Falcon", identity_of(device), bus.node_of(device))


def open_line(serial: str = "", backend: Any = None, now: Callable[[], float] = time.perf_counter) -> FalconLine:
    """Open the selected Falcon, with its chip set up for the firmware.

    Parameters
    ----------
    serial : str
        Serial number; empty if there is only one.
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.
    now : callable
        Clock of the line [s].

    Raises
    ------
    DeviceNotFoundError, DeviceOpenError
        With the remedy.
    """
    import usb.core
    import usb.util

    device = find_falcon(serial, backend)
    identity, node, taken = identity_of(device), bus.node_of(device), False
    try:
        bus.active_configuration(device)
        with contextlib.suppress(NotImplementedError):  # a system without kernel drivers
            if device.is_kernel_driver_active(INTERFACE):
                device.detach_kernel_driver(INTERFACE)
                taken = True
        usb.util.claim_interface(device, INTERFACE)
        queues_of = getattr(device.backend, "queues_of", queues_of_libusb)  # an emulator has its own queues
        line = FalconLine(device, queues_of(device)(INTERFACE, ENDPOINT_OUT, ENDPOINT_IN), taken, now)
    except (usb.core.USBError, NoQueue) as error:
        _release(device, taken)
        number = getattr(error, "errno", None)
        reason = f"the Falcon {identity} could not be opened ({error}): {AGAIN}."
        if number in bus.DENIED:
            reason = _not_permitted(device)
        elif number == errno.EBUSY:
            reason = (
                f"the Falcon {identity} is held by another program: see which one with: fuser -v {node}; end it and "
                "start again."
            )
        elif isinstance(error, OSError) and bus.trouble_of(error) is Trouble.UNPLUGGED:
            reason = f"the Falcon {identity} was unplugged while it was being opened: plug it in, start again."
        raise DeviceOpenError(reason) from error
    try:
        line.set_up()
    except BaseException as error:
        line.close()
        if isinstance(error, TransferError):
            raise DeviceOpenError(str(error)) from error
        raise
    return line


# --- firmware ---------------------------------------------------------------------------------------------------------

ANSWER_TIMEOUT = 0.05
"""Timeout of a reply of the firmware [s]."""

ATTEMPTS = 20
"""Maximum number of requests to the boot loader."""

PIECE = 62
"""Length of a piece of the firmware [byte]: its echo fits into one packet."""

LARGEST_FILE = 1 << 18
"""Maximum size of a firmware file [byte], far more than the memory of the processor."""

_BOOT_REQUEST, _BOOT_ANSWER = bytes.fromhex("0a430d"), bytes.fromhex("0a442c0d")
_SYNCHRONISE = b"A"
_BOOT_LATENCY = 16  # latency timer for the boot loader [ms]
_BOOT_TIMEOUT = 0.1
_ECHO_TIMEOUT = 0.5


class BootError(HapticError):
    """The boot loader did not take the firmware."""


def ask(line: FalconLine, lights: int, timeout: float = ANSWER_TIMEOUT) -> Reply | None:
    """Send a packet without force; return the first reply, None after `timeout` [s] without one."""
    reader, latest = PacketReader(), line.now() + timeout
    line.write(encode((0, 0, 0), lights))
    while (left := latest - line.now()) > 0.0:
        for reply in reader.feed(line.read(left) or b""):
            if reply is not None:
                return reply
    return None


def is_running(line: FalconLine) -> bool:
    """Return True if a firmware answers. The first packet may complete one that was interrupted earlier."""
    return any(ask(line, BLUE) is not None for _ in range(3))


def load_firmware(line: FalconLine, image: bytes) -> None:
    """Load a firmware through the boot loader, and set up the line for it.

    Raises
    ------
    BootError
        If the boot loader does not answer or echoes something else.
    TransferError
        If the Falcon is lost.
    """
    line.control(_LATENCY, _BOOT_LATENCY)
    line.control(_EVENT, 0)
    line.control(_BAUD, _BAUD_9600)
    line.control(_DATA, _EIGHT_BITS)
    line.control(_FLOW, 0)
    for level in (_RTS_LOW, _DTR_LOW, _DTR_HIGH):  # restarts the processor
        line.control(_MODEM, level)
    line.purge()
    for _ in range(ATTEMPTS):
        raise_if_cancelled()
        line.write(_BOOT_REQUEST)
        if _BOOT_ANSWER in line.read_until(lambda data: _BOOT_ANSWER in data, _BOOT_TIMEOUT):
            break
    else:
        raise BootError(f"its boot loader does not answer: is the power supply plugged in? If so, {AGAIN}")
    line.control(_MODEM, _DTR_LOW)
    line.control(_BAUD, _BAUD_140K)
    _send_echoed(line, _SYNCHRONISE, "the first byte")
    for start in range(0, len(image), PIECE):
        raise_if_cancelled()
        _send_echoed(line, image[start : start + PIECE], f"byte {start} of {len(image)}")
    line.set_up()


def _send_echoed(line: FalconLine, piece: bytes, place: str) -> None:
    """Send data to the boot loader and check their echo."""
    line.write(piece)
    echo = line.read_until(lambda data: len(data) >= len(piece), _ECHO_TIMEOUT)
    if echo != piece:
        found = "another echo" if len(echo) >= len(piece) else f"an echo of {len(echo)} of {len(piece)} bytes"
        raise BootError(f"its boot loader sent {found} at {place}: {AGAIN}, without a hub")
