"""The driver of a stick in step with an emulated bus: no threads, and independent of the speed of the machine.

Time advances in frames of the bus, in which a report travels each way if the endpoints allow.
"""

import math
from types import SimpleNamespace

from devices.common import driver
from devices.common.latch import Wake
from devices.joystick import device, streaming
from devices.joystick.streaming import Streaming
from haptics.clock import Clock

FRAME = 1e-3

# Fraction of a frame at which the driver acts.
MIDST = 0.4

# Those of the driver that look at the clock.
MODULES = (driver, streaming)


def next_frame(now):
    """Return the middle of the next frame [s]."""
    return (math.floor(now / FRAME + 1e-6) + 1.0 + MIDST) * FRAME


class BusClock(Clock):
    """A clock that advances with the frames of the bus, with a tick in the middle of each."""

    def __init__(self, period, bus):
        super().__init__(period)
        self._bus = bus
        self.start()

    def start(self):
        super().start()
        self._origin = next_frame(self._bus.now())
        self._bus.wait_until(self._origin)
        self.origin_ns = round(1e9 * self._origin), self.origin_ns[1]

    def elapsed(self):
        return self._bus.now() - self._origin

    def wait(self, tick):
        self._bus.wait_until(self._origin + tick * self.period)
        self.tick = tick
        return max(self.elapsed() - self.time, 0.0)


class InStep(Streaming):
    """Streaming without threads: a frame carries one report out, chosen after the last one was sent, and one in."""

    def start(self, patience):
        self.sample = self._watch.begin()
        self._process(None, streaming.time.perf_counter(), True)  # as the reader has, when the tick begins
        self.wake = Stepping(self)
        self._frames = round(self._transport.link.out_interval / FRAME)
        self._begin()

    def stop(self):
        pass

    def step(self):
        now = streaming.time.perf_counter()
        if self._next is not None and math.floor(now / FRAME + 1.0) % self._frames == 0:
            self._session.write(self._next)
            self._choose()
            streaming.time.go_back(now)  # to read in the same frame
        self._process(self._transport.read(FRAME), streaming.time.perf_counter(), True)

    def _choose(self):
        try:
            self._next = self._reports.send(True)
        except StopIteration:
            self._begin()

    def _begin(self):
        self._reports = self._forces.reports()
        self._next = next(self._reports, None)

    def take_up(self):
        """Start a new command if no report was pending."""
        if self._next is None:
            self._begin()


class Stepping(Wake):
    """Wakes streams that have no threads."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream

    def call(self):
        self._stream.take_up()


def put_in_step(bus, patch, *others):
    """Run the driver and `others`, modules that use it, in the time of the bus; return its sleep function.

    The streams advance during a sleep.
    """
    streams = []

    class Noted(InStep):
        def start(self, patience):
            super().start(patience)
            streams.append(self)

        def stop(self):
            streams.remove(self)

    def sleep(seconds):
        end = bus.now() + seconds
        while bus.now() < end:
            frame = next_frame(bus.now())
            for stream in streams:
                stream.step()
            bus.wait_until(frame)

    time = SimpleNamespace(
        perf_counter=bus.now,
        sleep=sleep,
        go_back=lambda instant: setattr(bus, "_now", instant),
        clock_gettime=lambda clock: 0.0,
        CLOCK_BOOTTIME=0,
        CLOCK_MONOTONIC=0,
    )
    for module in (*MODULES, *others):
        patch.setattr(module, "time", time)
    patch.setattr(device, "Streaming", Noted)
    return sleep
