"""The window of the stage: it handles messages, keys, and the hand, and draws the rows of the trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.front_ends import messages as say
from apps.front_ends.link import Link
from apps.front_ends.run import RunInfo, from_message
from apps.opengl.dead_man import KEY, DeadMansKey
from apps.opengl.hand import Hand
from apps.opengl.keys import Keyboard
from apps.shared.theme import Theme, other
from apps.stage.drawing.notes import keys
from apps.stage.drawing.picture import Picture
from apps.stage.material import law_words, words_here
from apps.stage.motion import Motion
from apps.stage.pointing import Pointers
from haptics.errors import ConfigurationError
from haptics.trace import Reader, Ring

if TYPE_CHECKING:
    from haptics.scenes import Scene

LOOK = 0.004
"""Polling interval for messages, keys, and the hand [s]."""

FRAME = 1 / 60
"""Minimum time between two pictures [s]."""

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
        self._scene: Scene | None = None
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
        window.push_handlers(on_close=self._close, on_resize=self._resized, on_expose=self._exposed)
        self.picture.warm_up()

    def run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Show the session until it sends `Quit`, its pipe is closed, or the user closes the window.

        Parameters
        ----------
        meanwhile : callable
            Called in every polling cycle.
        """
        while not self._closed:
            wait(self._link.waitable, LOOK) if self._link.waitable else time.sleep(LOOK)
            self.step()
            meanwhile()
        self._keyboard.release_all()
        self._window.close()

    def step(self) -> None:
        """Handle pending events and messages, and draw a picture if something has changed and one is due."""
        self._window.dispatch_events()
        self._pointers.poll()
        for message in self._link.receive():
            self._take(message)
        now = time.monotonic()
        self._dead_man.repeat(now)
        if self._link.gone and not self._closed:
            self._announce_loss(now)
        if now >= self._due and not self._closed:
            self._draw(now)
            if self._asked and not self._dirty:  # everything received before the request is on the screen
                self._asked = False
                self._link.send(say.Shown())

    # --- input

    def _take(self, message: Any) -> None:
        match message:
            case say.SessionStarted():
                self._begin(message)
            case say.Preparing(words):
                self._tell(f"{words[0].upper()}{words[1:]}." if words else self._advice, _ADVICE)
            case say.SessionEnded():
                self._end(message)
            case say.Refused(words) | say.Advised(words) | say.Captioned(words):
                self._advice = words
                self._tell(words, _ADVICE)
            case say.ValuesInForce(values):
                self._values |= values
                self._dirty = True
            case say.SceneInForce():
                self._coming.append(message)
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
            self._tell(f"The run cannot be shown: {error}", 600.0)
        self._window.set_caption(f"haptics: {info.title} (stage)")
        self._values = {one.key: one.value for one in info.parameters}
        self._scene, self._coming = message.scene, []
        self.picture.show_run(info, message.scene)
        self._show_keys()
        self._place_hand()
        self._dirty = True

    def _change_scene(self) -> None:
        """Show the scene of the newest row. Scenes are announced before the servo uses them."""
        reached = [one for one in self._coming if one.version <= self.motion.version]
        if reached:
            self._scene, self._coming = reached[-1].scene, self._coming[len(reached) :]
            self.picture.show_scene(self._scene)
            self._dirty = True

    def _end(self, message: say.SessionEnded) -> None:
        self._pull()
        self._reader, self.running = None, False
        self._dead_man.set_required(False)
        self._place_hand()
        error = f" {message.error}" if message.error else ""
        self._tell(f"Run ended: {message.reason}.{error} Enter starts it again.", 600.0)

    def _announce_loss(self, now: float) -> None:
        """Report that the application has ended; close the window after a short time."""
        if not self._farewell_at:
            self._farewell_at = now + _FAREWELL
            self._tell("The session's application has gone; this window closes.", 60.0)
        self._closed = now > self._farewell_at

    def _tell(self, words: str, seconds: float) -> None:
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
        if name == KEY and self._dead_man.wanted:
            return
        if name == ("escape" if self._dead_man.wanted else KEY):
            if down:
                self._link.send(say.Stop())
        elif name in _OWN or (name == "return" and not self.running):
            if down:
                self._do(name)
        else:
            self._link.send(say.Key(name, down, at))

    def _do(self, name: str) -> None:
        """Execute the function of one of the window's own keys."""
        match name:
            case "f1":
                self.picture.toggle_help()
            case "f11":
                self._full_screen(not self._window.fullscreen)
            case "escape" if self._window.fullscreen:
                self._full_screen(False)
            case "f7":
                self.picture.apply(other(self.picture.theme))
            case "f8":
                self.picture.toggle_panel()
                self._place_hand()
            case "f2" if self.running:
                self._frozen = not self._frozen
            case "return" if self._started is not None:
                self._link.send(say.Start(self._started.device, self._started.model, self._started.hand))
        self._dirty = True

    def _full_screen(self, wanted: bool) -> None:
        try:
            self._window.set_fullscreen(wanted)
        except Exception as error:  # the window system raises various exceptions; the run continues in the window
            self._tell(f"The window cannot fill the screen: {error}.", _ADVICE)

    def _close(self) -> bool:
        self._link.send(say.Close())
        self._closed = True
        return True

    # --- drawing

    def _resized(self, width: int, height: int) -> None:
        self.picture.resize()
        self._place_hand()
        self._dirty = True

    def _exposed(self) -> None:
        self._dirty = True

    def _place_hand(self) -> None:
        """Connect the mouse to the plane at its present position if it is the hand, else disconnect it."""
        mouse = self.running and self._started is not None and self._started.mouse
        cursor = self._window.CURSOR_CROSSHAIR if mouse else self._window.CURSOR_DEFAULT
        self._window.set_mouse_cursor(self._window.get_system_mouse_cursor(cursor))
        plane = self.picture.plane if mouse else None
        self._hand.set_plane(plane)
        self._pointers.set_plane(plane)

    def _show_keys(self) -> None:
        started = self._started
        if started is not None:
            self.picture.explain(keys(self._dead_man.wanted, started.mouse, self._pointers.names))

    def frame(self) -> None:
        """Draw a picture immediately."""
        self._draw(time.monotonic())

    def _draw(self, now: float) -> None:
        rows = self._pull()
        self._change_scene()
        if not (rows and not self._frozen) and not self._dirty:
            return
        self.picture.announce(*self._message(now))
        self._dirty = not self.picture.draw(self.motion, now, self._material())
        self.frames += 1
        done = time.monotonic()
        # Software OpenGL pauses for as long as it has drawn, to limit the processor load.
        self._due = max(now + FRAME, done + (done - now))

    def _material(self) -> tuple[str, str]:
        """Return the name of the material under the contact, and a description of its law."""
        scene = self._scene
        return law_words(self._values) if scene is None or not self.motion.ticks else words_here(scene, self.motion)

    def _message(self, now: float) -> tuple[str, bool]:
        """Return the message at the top, and whether it is highlighted."""
        if self._dead_man.wanted and self.motion.released:
            return "HOLD THE SPACE BAR: without it there is no force", True
        if self._words and now < self._words_until:
            return self._words, False
        return ("Frozen: the run goes on (F2)", True) if self._frozen else ("", False)


_OWN = ("f1", "f2", "f7", "f8", "f11", "escape")
"""Keys with a function in the window; they are not sent to the session."""
