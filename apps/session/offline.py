"""Sessions without a clock in this process, recorded like any other session."""

from __future__ import annotations

from pathlib import Path

from apps.session.advice import ParameterAdvice
from apps.session.record import new_recorder
from apps.settings.config import SessionConfig
from devices.faults import create_faulty, parse_fault
from haptics.clock import Clock
from haptics.errors import ConfigurationError, HapticError
from haptics.recording.recorder import Recorder, RunCloser, not_written
from haptics.recording.recording import Recording
from haptics.servo.servo import MAX_TICKS_PER_CALL, Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

_CAPACITY = 4 * MAX_TICKS_PER_CALL


def record_offline(config: SessionConfig, folder: Path) -> Recording:
    """Run a session as fast as possible and record it.

    Parameters
    ----------
    config : SessionConfig
        Configuration with ``session.clock = "off"`` and a duration.
    folder : Path
        Folder of the recording; a number is appended if it exists.

    Raises
    ------
    ConfigurationError
        If the session runs in real time, or the recording cannot be written.
    HapticError
        If the session failed; the recording is closed and contains the error.
    """
    session = config.session
    if session.clock != "off" or session.duration is None:
        raise ConfigurationError("session.clock: must be 'off', with session.duration, for a session in this process.")
    advice = ParameterAdvice(config.spec)
    advice.consider(config.strongest_element, 0, config.scene)
    clock, file = Clock(1.0 / session.rate), SharedFile("trace")
    try:
        trace = Trace.create(file.path, capacity=_CAPACITY)
        faults = tuple(parse_fault(text) for text in session.faults)
        device = create_faulty(config.device, config.device_settings, faults, session.seed, clock)
        servo = Servo(device, config.program, trace, clock=clock, limits=config.limits)
        recorder = new_recorder(config, advice.record, folder)
        recorder.attach(Reader(trace))
        ending = RunCloser(recorder, trace, lambda words: None)
        try:
            _run(servo, recorder, session.duration)
        except HapticError as error:
            ending.fail(error)
        ending.close("completed", complete=True)
        planned = round(session.duration * session.rate)
        ending.certify(config.causality, fitness=config.fitness, planned=planned)
    finally:
        file.close()
    if ending.fault is not None:
        raise ending.fault
    return Recording(recorder.folder)


def _run(servo: Servo, recorder: Recorder, duration: float) -> None:
    """Run to the end, including an end by an error, and write all remaining rows."""

    def drain() -> None:
        try:
            recorder.drain()
        except OSError as error:
            raise not_written(error, "the session was stopped") from error

    try:
        servo.run(duration, between=drain)
    finally:
        drain()
