"""The window of the stage: it handles messages, keys, and the hand, and draws the rows of the trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.front_ends import messages as say
from apps.front_ends.front_end import Link
from apps.front_ends.run import RunInfo, from_message, levels, region_name
from apps.opengl.window import KEY, DeadMansKey, Hand, Keyboard
from apps.shared.theme import Theme, other
from apps.stage.motion import Motion
from apps.stage.picture import Picture, keys
from apps.stage.pointing import Pointers
from haptics.errors import ConfigurationError
from haptics.trace import Reader, Ring

if TYPE_CHECKING:
    pass

POLL_EVERY = 0.004
"""Polling interval for messages, keys, and the hand [s]."""

FRAME = 1 / 60
"""Minimum time between two pictures [s]."""

_OWN = ("f1", "f2", "f7", "f8", "f11", "escape")
"""Keys with a function in the window; they are not sent to the session."""

_FAREWELL, _ADVICE = 2.5, 20.0
_LEAST_SIZE = (640, 480)


class StageWindow:
    """The window of the stage with its display and input.

    Parameters
    ----------
    link : Link
        Link to the session.
    window : pyglet Window
        An open window.
    theme : Theme
        Initial colours.

    Attributes
    ----------
    picture : Picture
        The picture drawn.
    motion : Motion
        Displayed quantities of the run.
    frames : int
        Number of pictures drawn.
    """

    def __init__(self, link: Link, window: Any, theme: Theme) -> None:
        self._link, self._window = link, window
        self._started: say.SessionStarted | None = None
        self._reader: Reader | None = None
        self._values: dict[str, float] = {}
        self._coming: list[say.SceneInForce] = []
        self._words, self._words_until = "", 0.0
        self._advice = ""
        self._farewell_at = 0.0
        self._closed = self._frozen = False
        self._dirty, self._asked = True, False
        self._due = 0.0
        self.running = False
        self.frames = 0
        self.picture = Picture(window, theme)
        self.motion = Motion(RunInfo.rate, RunInfo.causality)
        self._hand = Hand(window, link.send)
        self._pointers = Pointers(window, self._hand, link.send)
        self._dead_man = DeadMansKey(link.send)
        self._keyboard = Keyboard(window, self._key)
        window.set_minimum_size(*_LEAST_SIZE)
        window.push_handlers(on_close=self._close, on_resize=self._resized, on_expose=self._set_dirty)
        self.picture.warm_up()

    def run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Show the session until it sends `Quit`, its pipe is closed, or the user closes the window.

        Parameters
        ----------
        meanwhile : callable
            Called in every polling cycle.
        """
        while not self._closed:
            wait(self._link.waitable, POLL_EVERY) if self._link.waitable else time.sleep(POLL_EVERY)
            self.step()
            meanwhile()
        self._keyboard.release_all()
        self._window.close()

    def step(self) -> None:
        """Handle pending events and messages, and draw a picture if something has changed and one is due."""
        self._window.dispatch_events()
        self._pointers.poll()
        for message in self._link.receive():
            self._handle(message)
        now = time.monotonic()
        self._dead_man.repeat(now)
        if self._link.gone and not self._closed:
            if not self._farewell_at:
                self._farewell_at = now + _FAREWELL
                self._announce("The session's application has gone; this window closes.", 60.0)
            self._closed = now > self._farewell_at
        if now >= self._due and not self._closed:
            self.draw(now)
            if self._asked and not self._dirty:  # everything received before the request is on the screen
                self._asked = False
                self._link.send(say.Shown())

    # --- input

    def _handle(self, message: Any) -> None:
        match message:
            case say.SessionStarted():
                self._begin(message)
            case say.Preparing(words):
                self._announce(f"{words[0].upper()}{words[1:]}." if words else self._advice, _ADVICE)
            case say.SessionEnded(reason, _, error):
                self._pull()
                self._reader, self.running = None, False
                self._dead_man.set_required(False)
                self._place_hand()
                self._announce(f"Run ended: {reason}.{error and f' {error}'} Enter starts it again.", 600.0)
            case say.Refused(words) | say.Advised(words) | say.Captioned(words):
                self._advice = words
                self._announce(words, _ADVICE)
            case say.ValuesInForce(values):
                self._values |= values
                self._dirty = True
            case say.SceneInForce():
                self._coming.append(message)
            case say.LawInForce(model, _, _, parameters):
                self._values = {one.key: one.value for one in parameters}
                if self._started is not None:
                    self._started = replace(self._started, model=model)
                    info = from_message(self._started)
                    self._window.set_caption(f"haptics: {info.title} (stage)")
                    self.picture.info = replace(self.picture.info, model=model)
                    self.picture.lay_out()
                self._dirty = True
            case say.AskShown():
                self._asked = True
            case say.Quit():
                self._closed = True

    def _begin(self, message: say.SessionStarted) -> None:
        info = from_message(message)
        self._started, self._frozen, self._advice = message, False, ""
        self._words = ""
        self.motion = Motion(info.rate, info.causality)
        self.running = True
        self._dead_man.set_required(info.dead_man == "key", require_release=True)
        try:
            self._reader = Reader(Ring.attach(Path(message.trace)))
        except ConfigurationError as error:
            self._reader = None
            self._announce(f"The run cannot be shown: {error}", 600.0)
        self._window.set_caption(f"haptics: {info.title} (stage)")
        self._values = {one.key: one.value for one in info.parameters}
        self._coming = []
        self.picture.show_run(info, message.scene)
        self.picture.explain(keys(self._dead_man.required, message.mouse, self._pointers.names))
        self._place_hand()
        self._dirty = True

    def _announce(self, words: str, seconds: float) -> None:
        self._words, self._words_until = words, time.monotonic() + seconds
        self._dirty = True

    def _pull(self) -> int:
        """Read new rows from the trace; return their number."""
        if self._reader is None:
            return 0
        rows = self._reader.read()
        if not self._frozen:
            self.motion.add_rows(rows)
        return len(rows)

    # --- keys and requests

    def _key(self, name: str, down: bool, at: float) -> None:
        if name == KEY:
            self._dead_man.press(down, at)
            self._dirty = True
        if name == KEY and self._dead_man.required:
            return
        if name == ("escape" if self._dead_man.required else KEY):
            if down:
                self._link.send(say.Stop())
        elif name in _OWN or (name == "return" and not self.running):
            if down:
                self._dirty = True
                self._do(name)
        else:
            self._link.send(say.Key(name, down, at))

    def _do(self, name: str) -> None:
        """Execute the function of one of the window's own keys."""
        match name:
            case "f1":
                self.picture.helping = not self.picture.helping
            case "f11" | "escape" if name == "f11" or self._window.fullscreen:
                try:
                    self._window.set_fullscreen(not self._window.fullscreen)
                except Exception as error:  # the window system raises various exceptions; the run continues
                    self._announce(f"The window cannot fill the screen: {error}.", _ADVICE)
            case "f7":
                self.picture.theme = other(self.picture.theme)
                self.picture.lay_out()
            case "f8":
                self.picture.panel = not self.picture.panel
                self.picture.lay_out()
                self._place_hand()
            case "f2" if self.running:
                self._frozen = not self._frozen
            case "return" if self._started is not None:
                self._link.send(say.Start(self._started.device, self._started.model, self._started.hand))

    def _close(self) -> bool:
        self._link.send(say.Close())
        self._closed = True
        return True

    # --- drawing

    def _resized(self, width: int, height: int) -> None:
        self.picture.lay_out()
        self._place_hand()
        self._dirty = True

    def _set_dirty(self) -> None:
        self._dirty = True

    def _place_hand(self) -> None:
        """Connect the mouse to the plane at its present position if it is the hand, else disconnect it."""
        mouse = self.running and self._started is not None and self._started.mouse
        cursor = self._window.CURSOR_CROSSHAIR if mouse else self._window.CURSOR_DEFAULT
        self._window.set_mouse_cursor(self._window.get_system_mouse_cursor(cursor))
        plane = self.picture.scenery.plane if mouse else None
        self._hand.set_plane(plane)
        self._pointers.set_plane(plane)

    def draw(self, now: float) -> None:
        """Draw a picture at the monotonic time `now` [s] if there is anything new."""
        rows = self._pull()
        # Scenes are announced before the servo uses them: show the scene of the newest row.
        reached = [one for one in self._coming if one.version <= self.motion.version]
        if reached:
            self.picture.scene, self._coming = reached[-1].scene, self._coming[len(reached) :]
            self.picture.lay_out()
            self._dirty = True
        if not (rows and not self._frozen) and not self._dirty:
            return
        message, loud = "", False
        if self._dead_man.required and self.motion.released:
            message, loud = "HOLD THE SPACE BAR: without it there is no force", True
        elif self._words and now < self._words_until:
            message = self._words
        elif self._frozen:
            message, loud = "Frozen: the run goes on (F2)", True
        self.picture.announce(message, loud)
        scene, motion = self.picture.scene, self.motion
        material, law = "", ""  # under the contact
        if scene is None or not motion.ticks:
            found = " / ".join(f"{level:.3g}" for level in levels(self._values))
            law = f"friction {found} N" if found else ""
        elif motion.region <= len(scene.regions):
            level = float(scene.numbers_at(motion.contact)[0, 0])
            material, law = region_name(scene, motion.region), f"breaks away at {level:.2f} N here"
        self._dirty = not self.picture.draw(motion, now, (material, law))
        self.frames += 1
        done = time.monotonic()
        # Software OpenGL pauses for as long as it has drawn, to limit the processor load.
        self._due = max(now + FRAME, done + (done - now))
