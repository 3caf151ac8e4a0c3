"""Real-time execution of a procedure in a servo process.

The procedure runs in a separate thread, so that it may compute or wait for user input while the servo receives its
heartbeats. Until the procedure yields the next motion, the present motion holds its final position.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from calibration.motions.stage import Stage
from devices.common.log import DEVICE_LOG
from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import DeviceFault
from haptics.records import Rows
from haptics.servo.control import Job, SharedFiles
from haptics.servo.kernels import HEARTBEAT_TIMEOUT
from haptics.servo.run import HEARTBEAT_INTERVAL, ExtraConnections, Run, ServoWatchdog
from haptics.servo.servo import EndReason

PROCEDURE = "haptics procedure"
"""Name of the thread in which a procedure runs."""


class Live(Run):
    """Procedure in a servo process.

    Parameters
    ----------
    stage : Stage
        Procedure, device and recording.
    """

    def __init__(self, stage: Stage) -> None:
        mover, folder = stage.mover, stage.recorder.folder
        more = {"log": str(folder / DEVICE_LOG)} if mover.logs else {}
        job = Job(
            factory=functools.partial(_make, mover.factory, more),
            element=stage.course.motion,
            limits=stage.limits,
            duration=None,
            recording=folder,
            paths=SharedFiles.unique(),
            real_time=mover.real_time,
        )
        super().__init__(stage.recorder, job, stage.spec.name, stage.warn)
        self._stage = stage
        stage.present.trace = self.servo.trace
        self._thinking: threading.Thread | None = None
        self._published = 0.0
        self._saying, self._over = threading.Lock(), False

    def run(self) -> None:
        """Run to the end and raise errors."""
        self.follow()
        self._stage.certify(self.ending, used=self.servo.used, granted=self.granted)

    def wait_and_handle(self, watch: ServoWatchdog, listen: ExtraConnections) -> EndReason | None:
        """Poll once; Ctrl-C ends the run in order."""
        try:
            return super().wait_and_handle(watch, listen)
        except KeyboardInterrupt as interrupt:
            self._stage.error = self._stage.error or interrupt
            self.stop()
            return None

    def reason(self, end: EndReason) -> str:
        """Return the reason for the end of the procedure."""
        return self._stage.reason

    def run_periodic_tasks(self) -> None:
        """Report the progress; when the present motion has finished, request the next one."""
        if self.opened:
            self._stage.progress(max(self.servo.newest_tick, 0) * self._stage.mover.period)
            self._go_on()

    def _go_on(self) -> None:
        stage, trace = self._stage, self.servo.trace
        if self.stopping or (self._thinking is not None and self._thinking.is_alive()) or not trace.count:
            return
        row = trace.since(trace.count - 1)[-1]
        if row["settings_version"] != stage.course.number:
            if time.monotonic() - self._published > HEARTBEAT_TIMEOUT:
                raise DeviceFault(f"{stage.spec.name}: its servo did not take the next motion.")
        elif row["sticking"]:
            self._thinking = threading.Thread(target=self._think, args=(int(row["tick"]),), name=PROCEDURE, daemon=True)
            self._thinking.start()
        else:
            stage.course.require_progress(int(row["tick"]), int(row["permission"]))

    def _think(self, tick: int) -> None:
        """Send the procedure all rows up to `tick`, and the servo the resulting motion."""
        stage, more = self._stage, False
        error: BaseException | None = None
        try:
            more = stage.course.advance(self._rows_until(tick))
        except BaseException as raised:  # an error of the procedure, not of the device
            error = raised
        with self._saying:
            if self._over or self.stopping:  # the result is too late
                return
            if more:
                self._send_next_motion()
                return
            stage.error = stage.error or error
            self.stop()

    def _send_next_motion(self) -> None:
        """Record the next motion, and send it to the servo."""
        with self.writing():
            line = self._stage.course.save_motion(self._stage.recorder)
            self._published = time.monotonic()
            self.servo.send_program_entry(line)

    def hide_progress(self) -> None:
        """Mark the run as over, so that a procedure that is still computing has no effect."""
        with self._saying:
            self._over = True

    def _rows_until(self, tick: int) -> Rows:
        """Return all rows as soon as they include `tick`, or the run is over."""
        while True:
            rows = self._stage.recorder.rows()
            if self._over or (len(rows) and rows["tick"][-1] >= tick):
                return rows
            time.sleep(HEARTBEAT_INTERVAL)


def _make(factory: Callable[[Mapping[str, Any], Clock], Device], more: dict[str, Any], clock: Clock) -> Device:
    """Create the device inside the servo process."""
    return factory(more, clock)
