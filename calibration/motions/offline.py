"""Execution of a procedure on a virtual device as fast as possible, in this process."""

from __future__ import annotations

import shutil

from calibration.motions.stage import Stage
from haptics.clock import Clock
from haptics.errors import HapticError
from haptics.recording.recorder import RunCloser
from haptics.rendering.rendering import Rendering
from haptics.servo.servo import Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

_DRAIN = 100
"""Number of ticks after which the recorder writes to the disk."""


def run_offline(stage: Stage) -> None:
    """Run to the end and raise errors. The next motion begins without a gap in ticks."""
    shared = SharedFile("trace")
    try:
        trace = Trace.create(shared.path)
        stage.recorder.attach(Reader(trace))
        stage.present.trace = trace
        ending = RunCloser(stage.recorder, trace, stage.warn)
        opened = _run(stage, trace, ending)
        stage.recorder.drain()
        ending.close(stage.reason, complete=opened)
        try:
            stage.certify(ending)
        finally:
            if not opened:
                shutil.rmtree(stage.recorder.folder, ignore_errors=True)
    finally:
        shared.close()


def _run(stage: Stage, trace: Trace, ending: RunCloser) -> bool:
    """Run to the end; return True if the device was opened."""
    opened = False
    mover, clock = stage.mover, Clock(stage.mover.period)
    device = mover.factory({}, clock)
    if mover.clock_of is not None:
        clock = mover.clock_of(device)

    def ready() -> None:
        nonlocal opened
        opened = True

    def before_tick(rendering: Rendering) -> None:
        if clock.tick % _DRAIN == 0:
            stage.recorder.drain()
            stage.progress(clock.time)
            stage.course.require_progress(clock.tick, 0)
        if rendering.arrived and stage.error is None:
            go_on(rendering)

    def go_on(rendering: Rendering) -> None:
        course = stage.course
        stage.recorder.drain()
        try:
            if course.advance(stage.recorder.rows()):
                course.save_motion(stage.recorder)
                rendering.switch_program(course.motion, course.number, course.number)
                return
        except Exception as error:  # an error of the procedure, not of the device
            stage.error = error
        servo.stop()

    servo = Servo(device, stage.course.motion, trace, clock=clock, limits=stage.limits, before_tick=before_tick)
    try:
        servo.run(None, ready)
    except HapticError as error:
        ending.fail(error)
    except BaseException as error:
        stage.error = error
    return opened
