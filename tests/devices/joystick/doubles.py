"""Test doubles of the driver: a transport that records reports and returns scripted answers."""

import queue
import threading
import time

from devices.common.bus import TransferError, Trouble
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import emulated_stick
from devices.joystick.families import GENERIC
from devices.joystick.hid.descriptor import ReportType, parse_descriptor
from devices.joystick.reports import Playbook
from devices.joystick.session import PidSession
from devices.joystick.usb.transport import Link

# A hand that does nothing.
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}

# Those of two axes.
STICKS = tuple(name for name, profile in PROFILES.items() if not profile.handle.rim_radius)
POOL_AND_LOAD = {"sidewinder-ff2": (3, 2), "openffboard": (19, 18), "arduino": (7, 6), "openffboard-wheel": (19, 18)}
POOL_ANSWER = bytes((0xFF, 0xFF, 14, 3))


def described(stick):
    return parse_descriptor(PROFILES[stick].report_descriptor)


class FakeTransport:
    """Notes every transfer; `blocks` are the answers to block load (number, status), one after the other."""

    def __init__(self, stick="openffboard"):
        self.stick = stick
        self.pool, self.load = POOL_AND_LOAD[stick]
        self.link = Link(0x1209, 0xFFB0, "1", stick, PROFILES[stick].report_descriptor, 1e-3, 1e-3, True)
        self.answers = {}
        self.sent = []
        self.stamps = []
        self.pool_answers = [POOL_ANSWER]
        self.blocks = [(1, 1), (2, 1)]
        self.reports = queue.Queue()
        self.before_write = lambda report: None
        self.changed = threading.Condition()

    def get_report(self, report):
        if report.type is ReportType.INPUT:
            if report.id not in self.answers:
                raise stall()
            return self.answers[report.id]
        self.sent.append(f"get {report.id} {report.length}")
        if report.id == self.pool:
            answer = self.pool_answers.pop(0) if len(self.pool_answers) > 1 else self.pool_answers[0]
        else:
            assert report.id == self.load
            answer = bytes(self.blocks.pop(0) if len(self.blocks) > 1 else self.blocks[0]) + b"\0\0"
        return bytes((report.id, *answer))

    def set_feature(self, report):
        self.sent.append(f"set {report.hex()}")

    def write(self, report):
        self.before_write(report)
        with self.changed:
            self.sent.append(report.hex())
            self.stamps.append(time.perf_counter())
            self.changed.notify_all()

    def read(self, timeout):
        try:
            report = self.reports.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(report, Exception):
            raise report
        return report

    def close(self):
        self.sent.append("close")

    def wait_for(self, condition, patience=5.0):
        """Wait until `condition` holds for the sent reports."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self.sent), patience), self.sent[-5:]


def session(transport, family=GENERIC, duration=0.2, count=2):
    return PidSession(transport, Playbook(described(transport.stick), family), family, duration, count)


def timeout():
    return TransferError("not in time", Trouble.TIMEOUT)


def stall():
    return TransferError("refused", Trouble.STALL)


def unplugged():
    return TransferError("the stick was unplugged", Trouble.UNPLUGGED)


def make(*faults, profile="openffboard", **settings):
    """Return a driver and its emulated stick, without a hand."""
    backend = emulated_stick(profile, hand=STILL, faults=faults)
    device = EmulatedPidJoystick({"emulated": True, "emulator": profile, **settings}, backend=backend)
    return device, backend.units[0]
