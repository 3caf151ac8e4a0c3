"""The application around sessions: one after the other on the same window, until the person has had enough."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from apps.session import messages as say
from apps.session.config import SessionConfig, complete
from apps.session.models import Table, causality_of, fitting
from apps.session.mouse import Mouse
from apps.session.outcome import Outcome
from apps.session.picture import draw
from apps.session.run import Session
from apps.session.sliders import sliders
from apps.session.view_link import ViewLink, why_no_window
from apps.words import wrapped
from devices import is_virtual
from haptics.errors import ConfigurationError, DeviceFault, HapticError, RecordingError
from haptics.loop import End
from haptics.recording import Recording
from haptics.run import HEARTBEAT_EVERY, NeverStarted

MOUSE = "mouse"

_HANDS_WITH_FILES = ("recorded", "scripted-force")

WINDOW_PATIENCE = 60.0
"""A session that cannot do without a window waits for it this long [s]."""

LINGER = 5.0
"""How long the window shows the result of a run that ended by itself before it closes [s]."""


def tell_stderr(line: str) -> None:
    """Say one line to the person; standard output belongs to results."""
    with contextlib.suppress(OSError):  # a closed or full stream is no reason to disturb a run
        print(wrapped(line, 2) if sys.stderr.isatty() else line, file=sys.stderr, flush=True)


class Application:
    """Runs sessions, with or without a window.

    Parameters
    ----------
    tables : dict
        The tables of the first session; see `apps.session.config`.
    window : bool
        Whether a live view is wanted; where none can be shown, the person is told why and the run goes on without.
    theme : str
        ``dark``, ``light`` or ``auto``.
    tell : callable
        Takes lines for the person.
    """

    def __init__(
        self, tables: dict[str, Table], *, window: bool, theme: str = "auto", tell: Callable[[str], None] = tell_stderr
    ) -> None:
        self._tables = tables
        self._obstacle = why_no_window() if window else "--headless was given"
        self._window = self._obstacle is None
        self._asked_for_window = window
        self._theme = theme
        self._tell = tell
        self._view: ViewLink | None = None
        self._mouse: Mouse | None = None
        self._session: Session | None = None
        self._wish: say.Start | say.Close | None = None
        self._interrupted = False

    def run(self) -> Outcome:
        """Run until the first session has ended in order, or the window was closed; return the last outcome."""
        if self._tables.get("hand", {}).get("name") == MOUSE and not self._window:
            raise ConfigurationError(f"hand.name = 'mouse': needs the live view, but there is none: {self._obstacle}.")
        with ExitStack() as stack:
            if self._window:
                self._mouse = stack.enter_context(Mouse())
            config = self._configure(self._tables)
            demands_key = config.limits.dead_man == "key"
            if self._obstacle is not None and demands_key:
                raise _no_key(config, f"there is none: {self._obstacle}")
            stack.enter_context(_signals(self._interrupt))
            if self._obstacle is None:
                self._view = ViewLink(self._theme)
                stack.callback(self._view.close)
                if demands_key:
                    self._require_window(self._view, config)
            return self._sessions(config)

    def _require_window(self, view: ViewLink, config: SessionConfig) -> None:
        """Wait until the window is there whose key will have to be held.

        Raises
        ------
        ConfigurationError
            If none comes.
        """
        if view.await_window(WINDOW_PATIENCE, lambda: self._interrupted):
            return
        if self._interrupted:
            raise KeyboardInterrupt
        display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        raise _no_key(config, f"no window could be opened (on the display {display})")

    def _sessions(self, config: SessionConfig) -> Outcome:
        while True:
            self._wish = None
            try:
                outcome, config = self._one(config)
            except NeverStarted:
                config = self._after_none(config)
                continue
            # A run that was stopped by hand leaves the window to the person; any other end is shown for a moment.
            patience = math.inf if outcome.reason == End.STOPPED else LINGER
            following = None if self._interrupted else self._next(config, patience)
            if following is None:
                return outcome
            config = following

    def _after_none(self, config: SessionConfig) -> SessionConfig:
        """Return the session that follows one which was called off before it began.

        Raises
        ------
        KeyboardInterrupt
            If none does.
        """
        self._session = None
        self._send(say.SessionEnded("called off before it began"))
        following = None if self._interrupted else self._next(config, math.inf)
        if following is None:
            raise KeyboardInterrupt
        return following

    def _one(self, config: SessionConfig) -> tuple[Outcome, SessionConfig]:
        """Run one session; return how it went and its configuration as it was at the end."""
        self._session = session = Session(
            config, self._tell, self._warn, prepare=lambda words: self._send(say.Preparing(words))
        )
        if self._obstacle and self._asked_for_window:
            self._tell(f"no live view: {self._obstacle}.")
        self._send(
            say.SessionStarted(
                **session.started,
                parameters=sliders(config),
                choices={name: fit for name, fit in fitting().items() if is_virtual(name) or name == config.device},
                hands=_hands(config.hand),
            )
        )
        if self._interrupted:
            session.interrupt()
        outcome = session.run(self._attend, self._connections)
        self._session = None
        self._send(say.SessionEnded(outcome.reason, outcome.summary, str(outcome.fault or "")))
        if config.session.picture:
            outcome.summary["picture"] = self._draw(outcome)
        return outcome, session.config

    def _connections(self) -> tuple[Any, ...]:
        return (self._view.connection,) if self._view is not None and self._view.open else ()

    def _draw(self, outcome: Outcome) -> str | None:
        try:
            return draw(Recording(Path(outcome.summary["recording"])))
        except (OSError, RecordingError) as error:
            self._tell(f"no picture: {error}")
            return None

    def _next(self, config: SessionConfig, patience: float) -> SessionConfig | None:
        """Wait until the person starts another session; None if they leave, or for `patience` [s] do nothing."""
        until = time.monotonic() + patience
        while not self._interrupted and time.monotonic() < until:
            if self._view is None or not self._view.open or isinstance(self._wish, say.Close):
                return None
            if isinstance(self._wish, say.Start):
                try:
                    return self._configure(_retabled(config, self._wish))
                except HapticError as error:
                    self._send(say.Refused(str(error)))
            self._wish = None
            wait([self._view.connection], HEARTBEAT_EVERY)
            self._attend()
        return None

    def _configure(self, tables: dict[str, Table]) -> SessionConfig:
        hand = tables.get("hand", {})
        if hand.get("name") == MOUSE and self._mouse is not None:
            tables = {**tables, "hand": {**hand, "target": self._mouse.path}}
        return complete(tables)

    def _attend(self) -> None:
        """Serve the view; one that died is missed, but the run goes on."""
        if self._view is None or not self._view.open:
            return
        for message in self._view.messages():
            match message:
                case say.HandTarget(x, y) if self._mouse is not None:
                    self._mouse.move(x, y)
                case say.SetParameter(key, value):
                    self._change(key, value)
                case say.HoldKey(held, at) if self._session is not None:
                    self._session.hold_key(at if held else None)
                case say.Stop():
                    self._stop()
                case say.Start() | say.Close():
                    self._wish = message
                    self._stop()
        if self._view.gone and not isinstance(self._wish, say.Close):
            self._go_on_without_view()

    def _go_on_without_view(self) -> None:
        """Go on without a window, unless its key had to be held: nobody could feel anything any more."""
        if self._session is not None and self._session.started["dead_man"] == "key":
            self._session.fail(
                DeviceFault("the live view is gone, and with it the key that must be held: the run was stopped.")
            )
        else:
            self._tell("the live view is gone; the run goes on without it.")

    def _change(self, key: str, value: float) -> None:
        if self._session is not None:
            try:
                self._session.change(key, value)
            except ConfigurationError as error:
                in_force = {parameter.key: parameter.value for parameter in sliders(self._session.config)}
                self._send(say.Refused(str(error), in_force))

    def _warn(self, line: str) -> None:
        """Say to whoever looks at the terminal or the window that parameters do not suit the device."""
        self._tell(f"advice: {line}")
        self._send(say.Advised(line))

    def _stop(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _interrupt(self) -> None:
        self._interrupted = True
        if self._session is not None:
            self._session.interrupt()

    def _send(self, message: Any) -> None:
        if self._view is not None:
            self._view.send(message)


def _no_key(config: SessionConfig, obstacle: str) -> ConfigurationError:
    """Return the error of a session with a key to be held in a window that is not there."""
    remedy = "leave --headless out" if "--headless" in obstacle else "start it where a window can be shown"
    demanded = config.spec.dead_man == "key"
    otherwise = "" if demanded else ", or choose 'button' (where the device has one) or 'none'"
    return ConfigurationError(
        f"envelope.dead_man = 'key': the space bar of the live view must be held, but {obstacle}; {remedy}{otherwise}."
    )


def _hands(present: str) -> tuple[str, ...]:
    """Return the hands that can be chosen in the window: those that need no file, and the present one."""
    from devices.virtual.hands import HANDS

    return tuple(name for name in HANDS if name == present or name not in _HANDS_WITH_FILES)


def _retabled(config: SessionConfig, wish: say.Start) -> dict[str, Table]:
    """Return the tables of the session that `wish` asks for, keeping what still applies of `config`."""
    tables = config.as_dict()
    tables["session"] |= {"model": wish.model, "record": config.session.record}
    tables["hand"] = config.device_settings["hand"] if wish.hand == config.hand else {"name": wish.hand}
    same_device = wish.device == config.device
    kept = {name: value for name, value in config.device_settings.items() if name != "hand"} if same_device else {}
    tables["device"] = {"name": wish.device, **kept}
    same_causality = causality_of(wish.device) is config.causality
    if wish.model != config.session.model or not same_causality:
        tables["element"] = {}
    if not same_causality:
        tables["envelope"] = {}
        if config.law["name"] != "custom":
            tables["law"] = {"name": config.law["name"]}
    return tables


@contextmanager
def _signals(interrupt: Callable[[], None]) -> Iterator[None]:
    """Turn Ctrl-C, a request to terminate and a closed terminal into an orderly end of the run."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda *_: interrupt()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
