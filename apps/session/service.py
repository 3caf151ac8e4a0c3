"""Message service between front ends and the present session, with the mouse as the hand."""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd, FrontEnds
from apps.session.run import Session
from apps.settings.config import SessionConfig
from apps.settings.options import offers, sliders, values_in_force
from haptics.errors import ConfigurationError, DeviceFault
from haptics.shared import Mailbox, SharedFile

if TYPE_CHECKING:
    from haptics.scenes import Scene

CLICK = 0.02
"""Minimum duration of a click [s]: press and release may otherwise fall between two ticks."""


class Mouse:
    """Position and buttons of the mouse, for a virtual device in another process, through a small shared file.

    Attributes
    ----------
    path : str
        File that the simulated hand of the device reads; its setting ``hand.target``.
    """

    def __init__(self) -> None:
        from devices.virtual.hands.registry import HAND_TARGET

        self._file = SharedFile("mouse")
        self._lane = Mailbox(self._file.path, HAND_TARGET, create=True)
        self._value = np.zeros(1, HAND_TARGET)
        self._held: dict[object, int] = {}
        self._click, self._clicked = 0, 0.0
        self.path = str(self._file.path)

    def press(self, owner: object, buttons: int) -> None:
        """Set the buttons that the front end `owner` holds.

        The bits are defined in `devices.virtual.hands.mouse.HAND_TARGET`.
        """
        self._held[owner] = buttons
        held = functools.reduce(operator.or_, self._held.values())
        pressed = held & ~int(self._value["buttons"][0])
        if pressed:
            self._click, self._clicked = self._click | pressed, time.monotonic()
        self._publish(buttons=held | self._click)

    def refresh(self) -> None:
        """Release buttons that were only clicked. Must be called periodically."""
        if self._click and time.monotonic() - self._clicked > CLICK:
            self._click = 0
            self._publish(buttons=functools.reduce(operator.or_, self._held.values()))

    def move(self, x: float, y: float, grip: float = 1.0) -> None:
        """Move the target of the hand to (x, y) [m], with the relative grip strength `grip` from 0 to 1."""
        self._publish(position=(x, y), ease=1.0 - grip, engaged=1)

    def _publish(self, **fields: Any) -> None:
        for name, value in fields.items():
            self._value[name] = value
        self._lane.publish(self._value[0])

    def __enter__(self) -> Mouse:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class Service:
    """Forwards messages of the session to all front ends and executes their requests.

    Parameters
    ----------
    notify : callable
        Receives lines for the user at the terminal.

    Attributes
    ----------
    fronts : FrontEnds
        The front ends; more can be added at any time.
    controls : FrontEnds
        Front ends without a window, such as a remote control. The application does not wait for them.
    streams : FrontEnds
        Front ends that receive messages only; they do not influence the run.
    session : Session or None
        The present run.
    mouse : Mouse or None
        Mouse input, if the mouse acts as the hand.
    requested : Start or None
        Requested next run.
    """

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self.fronts, self.controls, self.streams = (FrontEnds(self._greeting) for _ in range(3))
        self.session: Session | None = None
        self.mouse: Mouse | None = None
        self.requested: say.Start | None = None
        self._requester: FrontEnd | None = None
        self._holder: FrontEnd | None = None
        self._scene: Scene | None = None
        self._law: tuple[str, ...] = ()

    def begin(self, session: Session) -> None:
        """Announce a run that is about to start to all front ends and serve it."""
        self.session, self._holder, self._scene = session, None, session.config.scene
        self._law = law_identity(session.config)
        self._broadcast(self._greeting())

    def end(self, message: say.SessionEnded) -> None:
        """Send the end of the run to all front ends."""
        self.session = None
        self._broadcast(message)

    def _broadcast(self, message: Any) -> None:
        for listeners in (self.fronts, self.controls, self.streams):
            listeners.broadcast(message)

    def refuse_start(self, reason: str) -> None:
        """Report to the front end that requested another session that it was refused."""
        if self._requester is not None:
            self._requester.send(say.Refused(reason))

    def connections(self) -> tuple[Any, ...]:
        """Return the connections to wait for."""
        return (*self.fronts.connections, *self.controls.connections)

    def stop(self) -> None:
        """End the present run in order."""
        if self.session is not None:
            self.session.stop()

    def run_periodic_tasks(self) -> None:
        """Execute the requests that have arrived. The run continues if a front end has died."""
        for front, message in (*self.fronts.messages(), *self.controls.messages()):
            self.execute(front, message)
        for front in self.fronts.remove_lost():
            self._release(front)
            self.handle_loss()
        for _ in self.controls.remove_lost():
            self._notify("the remote control ended unexpectedly; the run goes on without it.")
        self.streams.messages()
        for _ in self.streams.remove_lost():
            self._notify("a stream ended unexpectedly; the run goes on without it.")
        session = self.session
        if session is not None and session.config.scene is not self._scene:  # changed by a front end or a program
            self._scene = session.config.scene
            self.fronts.broadcast(say.ValuesInForce(values_in_force(session.config)))
            self.fronts.broadcast(say.SceneInForce(self._scene, session.version))
        if session is not None:
            self._announce_law(session.config)
        if self.mouse is not None:
            self.mouse.refresh()

    def _announce_law(self, config: SessionConfig) -> None:
        """Send the law and the model to all front ends if they have changed."""
        if law_identity(config) != self._law:
            self._law = law_identity(config)
            change = say.LawInForce(config.session.model, parameters=sliders(config), **law_of(config))
            for listeners in (self.fronts, self.controls):
                listeners.broadcast(change)

    def handle_loss(self) -> None:
        """Report a lost front end.

        The run fails if it needs the dead-man's key and no remaining front end can hold it.
        """
        if self.session is None:
            return
        if self._key_is_missing():
            self.session.fail(
                DeviceFault("the live view ended unexpectedly, and with it the dead-man's key: the run was stopped.")
            )
        elif self.fronts.open:
            self._notify("a window ended unexpectedly; the run goes on with the others.")
        else:
            self._notify("the live view ended unexpectedly; the run goes on without it.")

    def execute(self, front: FrontEnd, message: Any) -> None:
        """Execute a request of a front end."""
        session = self.session
        match message:
            case say.HandTarget(x, y, grip) if self.mouse is not None:
                self.mouse.move(x, y, grip)
            case say.HandButtons(buttons) if self.mouse is not None:
                self.mouse.press(front, buttons)
            case say.Key(name, down, at) if session is not None:
                session.handle_key(name, down, at)
            case say.SetParameter(key, value) if session is not None:
                self._change(front, session, key, value)
            case say.Request():
                front.send(self._reply(front, message))
            case say.HoldKey(held, at) if session is not None:
                self._hold(front, session, at if held else None)
            case say.Stop():
                self.stop()
            case say.Start():
                self.requested, self._requester = message, front
                self.stop()
            case say.Close():
                self._release(front)
                if not self.fronts.open or self._key_is_missing():
                    self.stop()

    def _reply(self, front: FrontEnd, request: say.Request) -> say.Reply:
        """Execute the request of a program; return its result, or the reason for its refusal."""
        session, arguments, result = self.session, request.arguments, {}
        try:
            if session is None:
                raise ConfigurationError("the run has ended.")
            match request.verb:
                case "configure":
                    session.configure(arguments["tables"])
                    result = {"version": session.version}
                    for listeners in (self.fronts, self.controls):
                        listeners.broadcast(say.ValuesInForce(values_in_force(session.config)))
                    self._announce_law(session.config)
                case "gate":
                    session.gate(not arguments["open"])
                case "mark":
                    session.mark(arguments["marker"])
                case "advance":
                    session.advance(arguments["ticks"])
                case "stop":
                    session.stop()
        except ConfigurationError as error:
            return say.Reply(request.number, error=str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return say.Reply(request.number, error=f"invalid settings ({type(error).__name__}: {error}).")
        return say.Reply(request.number, result)

    def _change(self, front: FrontEnd, session: Session, key: str, value: float) -> None:
        """Change a parameter and send the new values to all front ends."""
        try:
            session.change(key, value)
        except ConfigurationError as error:
            front.send(say.Refused(str(error), values_in_force(session.config)))
            return
        values = values_in_force(session.config)
        front.send(say.ValuesInForce(values, yours=True))
        for listeners in (self.fronts, self.controls):
            listeners.broadcast(say.ValuesInForce(values), but=front)

    def _hold(self, front: FrontEnd, session: Session, at: float | None) -> None:
        """Set or release the dead-man's key.

        The front end that pressed it last holds it; a release by any other front end is ignored.
        """
        if at is not None:
            self._holder = front
        elif front is self._holder:
            self._holder = None
        else:
            return
        session.hold_key(at)

    def _release(self, front: FrontEnd) -> None:
        """Release the buttons and the key that a lost or closed front end held."""
        if self.mouse is not None:
            self.mouse.press(front, 0)
        if self.session is not None:
            self._hold(front, self.session, None)

    def _key_is_missing(self) -> bool:
        """Return True if the present run needs the dead-man's key and no front end can hold it."""
        session = self.session
        return session is not None and session.started["dead_man"] == "key" and not self.fronts.can_hold_key

    def _greeting(self) -> say.SessionStarted | None:
        """Return the message that a front end needs about the present run."""
        if self.session is None:
            return None
        config: SessionConfig = self.session.config
        return say.SessionStarted(
            **self.session.started,
            parameters=sliders(config),
            **offers(config),
            **law_of(config),
            scene=config.scene,
        )


def law_of(config: SessionConfig) -> dict[str, Any]:
    """Return the name and the further settings of the law, as in `messages.SessionStarted`."""
    settings = dict(config.law)
    return {"law": settings.pop("name"), "law_settings": settings}


def law_identity(config: SessionConfig) -> tuple[str, ...]:
    """Return the model and the parts of the law that are no numbers: its name, and the source of a custom law."""
    return (config.session.model, *(value for value in config.law.values() if isinstance(value, str)))
