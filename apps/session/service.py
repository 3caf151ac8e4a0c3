"""What front ends ask of the present session, and what it tells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd
from apps.front_ends.several import FrontEnds
from apps.session.mouse import Mouse
from apps.session.run import Session
from apps.settings.about import about, choices, hands_to_choose, laws_to_choose
from apps.settings.config import SessionConfig
from apps.settings.sliders import sliders, values_in_force
from haptics.errors import ConfigurationError, DeviceFault

if TYPE_CHECKING:
    from haptics.scenes import Scene


class Service:
    """Serves front ends: passes on what the session says to all, and does what each asks for.

    Parameters
    ----------
    tell : callable
        Takes lines for the person at the terminal.

    Attributes
    ----------
    fronts : FrontEnds
        Those that are there; add others at any time.
    streams : FrontEnds
        Those that only listen: no run goes on or ends because of them.
    session : Session or None
        The present run.
    mouse : Mouse or None
        Where the mouse is put that is the hand.
    wish : Start or None
        The run that somebody wants after the present one.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.fronts, self.streams = FrontEnds(self._greeting), FrontEnds(self._greeting)
        self.session: Session | None = None
        self.mouse: Mouse | None = None
        self.wish: say.Start | None = None
        self._asker: FrontEnd | None = None
        self._holder: FrontEnd | None = None
        self._scene: Scene | None = None

    def begin(self, session: Session) -> None:
        """Let the front ends know of a run that is about to begin, and serve them for it."""
        self.session, self._holder, self._scene = session, None, session.config.scene
        for listeners in (self.fronts, self.streams):
            listeners.tell(self._greeting())

    def end(self, message: say.SessionEnded) -> None:
        """Let them know that it is over."""
        self.session = None
        for listeners in (self.fronts, self.streams):
            listeners.tell(message)

    def refuse_start(self, why: str) -> None:
        """Tell whoever wished for another session that there will be none."""
        if self._asker is not None:
            self._asker.send(say.Refused(why))

    def connections(self) -> tuple[Any, ...]:
        """Return what to wait for."""
        return self.fronts.connections

    def attend(self) -> None:
        """Do what has been asked for; a front end that died is missed, but the run goes on."""
        for front, message in self.fronts.messages():
            self._do(front, message)
        for front in self.fronts.lost():
            self._without(front)
            self._go_on_after_loss()
        self.streams.messages()
        for _ in self.streams.lost():
            self._tell("a stream ended unexpectedly; the run goes on without it.")
        self._tell_of_scene()
        if self.mouse is not None:
            self.mouse.refresh()

    def _do(self, front: FrontEnd, message: Any) -> None:
        session = self.session
        match message:
            case say.HandTarget(x, y, grip) if self.mouse is not None:
                self.mouse.move(x, y, grip)
            case say.HandButtons(buttons) if self.mouse is not None:
                self.mouse.press(front, buttons)
            case say.Key(name, down, at) if session is not None:
                session.take_key(name, down, at)
            case say.SetParameter(key, value) if session is not None:
                self._change(front, session, key, value)
            case say.HoldKey(held, at) if session is not None:
                self._hold(front, session, at if held else None)
            case say.Stop():
                self.stop()
            case say.Start():
                self.wish, self._asker = message, front
                self.stop()
            case say.Close():
                self._without(front)
                self._go_on_after_close()

    def _change(self, front: FrontEnd, session: Session, key: str, value: float) -> None:
        """Change a parameter; all others see it, too."""
        try:
            session.change(key, value)
        except ConfigurationError as error:
            front.send(say.Refused(str(error), values_in_force(session.config)))
            return
        values = values_in_force(session.config)
        front.send(say.ValuesInForce(values, yours=True))
        self.fronts.tell(say.ValuesInForce(values), but=front)

    def _tell_of_scene(self) -> None:
        """Let the front ends know of another scene and its numbers, whoever has put it in force."""
        session = self.session
        if session is not None and session.config.scene is not self._scene:
            self._scene = session.config.scene
            self.fronts.tell(say.ValuesInForce(values_in_force(session.config)))
            self.fronts.tell(say.SceneInForce(self._scene, session.version))

    def _hold(self, front: FrontEnd, session: Session, at: float | None) -> None:
        """Let the dead-man's key be held by who said so last; another that lets go had not held it any more."""
        if at is not None:
            self._holder = front
        elif front is self._holder:
            self._holder = None
        else:
            return
        session.hold_key(at)

    def _without(self, front: FrontEnd) -> None:
        """Go on without one: what it held is let go."""
        if self.mouse is not None:
            self.mouse.press(front, 0)
        if self.session is not None:
            self._hold(front, self.session, None)

    def _go_on_after_close(self) -> None:
        """Let the others go on, if there are any, and if one of them can hold the key that must be held."""
        if not self.fronts.open or self._key_is_missing():
            self.stop()

    def _go_on_after_loss(self) -> None:
        """Go on without one that died, unless its key had to be held: nobody could feel anything any more."""
        if self.session is not None and self._key_is_missing():
            self.session.fail(
                DeviceFault("the live view ended unexpectedly, and with it the dead-man's key: the run was stopped.")
            )
        elif self.session is not None:
            others = "a window ended unexpectedly; the run goes on with the others."
            self._tell(others if self.fronts.open else "the live view ended unexpectedly; the run goes on without it.")

    def _key_is_missing(self) -> bool:
        """Tell whether there is a run whose key must be held, and nobody who could."""
        session = self.session
        return session is not None and session.started["dead_man"] == "key" and not self.fronts.can_hold_key

    def stop(self) -> None:
        """End the present run in order."""
        if self.session is not None:
            self.session.stop()

    def _greeting(self) -> say.SessionStarted | None:
        """Return what a front end must know of the present run."""
        if self.session is None:
            return None
        config: SessionConfig = self.session.config
        return say.SessionStarted(
            **self.session.started,
            parameters=sliders(config),
            choices=choices(config),
            hands=hands_to_choose(config.hand),
            law=config.law["name"],
            law_settings={name: value for name, value in config.law.items() if name != "name"},
            laws=laws_to_choose(config.law["name"]),
            about=about(config.causality),
            scene=config.scene,
        )
