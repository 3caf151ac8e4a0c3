"""Dialog of a form: keys and mouse change the answer to one item at a time, which is drawn by the participant's screen.

Enter confirms an answer and shows the next item. Backspace deletes characters, and returns to the previous item if no
characters are left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from apps.experiment.forms.forms import AGREED, CONSENT, Form, ItemSettings, Value
from apps.experiment.screens.messages import Choice, FormItem
from apps.experiment.settings import TextSettings

NEXT, BACK = "return", "backspace"

_STEPS = {"left": -1, "down": -1, "right": 1, "up": 1}
_FINE = 100
"""Number of steps of a continuous scale by the keys."""

_FIRST_REPEAT, _REPEAT_EVERY = 0.4, 0.05
"""Time until a held key repeats, and its period [s]."""

_TYPED = ("number", "text")
_LONGEST_NUMBER = 12


class FormDialog:
    """State of a form that is being answered.

    Parameters
    ----------
    form : Form
        The form.
    items : sequence of ItemSettings
        Its items in the order of display.
    texts : TextSettings
        Texts of the experiment.
    answers : mapping
        Earlier answers by the name of the item; invalid ones are ignored.
    begin : int
        Index of the first item that is shown.

    Attributes
    ----------
    answers : dict
        Confirmed and present answers by the name of the item, None where it was left out.
    confirmed : list of str
        Names of the items that have been confirmed since the last call of `take_confirmed`.
    done : bool
        Whether the last item has been confirmed.
    """

    def __init__(
        self,
        form: Form,
        items: Sequence[ItemSettings],
        texts: TextSettings,
        answers: Mapping[str, Value],
        begin: int = 0,
    ) -> None:
        self._form, self._items, self._texts = form, tuple(items), texts
        self.answers: dict[str, Value] = {
            item.name: answers[item.name] for item in items if item.name in answers and item.fits(answers[item.name])
        }
        self.done = False
        self.confirmed: list[str] = []
        self._place = min(begin, len(self._items) - 1)
        self._alert = ""
        self._held: dict[str, float] = {}
        self._entry = ""
        self._enter()

    @property
    def item(self) -> ItemSettings:
        """The present item."""
        return self._items[self._place]

    def contents(self) -> dict[str, Any]:
        """Return the contents of the participant's screen (`Show`)."""
        item, value, texts = self.item, self.answers.get(self.item.name), self._texts
        options = list(item.options)
        chosen, share = None, None
        if item.kind == "choice" and value is not None:
            chosen = options.index(str(value))
        elif item.kind == "likert" and isinstance(value, int | float):
            chosen = int(value) - 1
        elif item.kind == "analogue" and isinstance(value, int | float):
            share = value / 100
        keys = {"likert": "← →", "analogue": "← →", "choice": "↑ ↓"}.get(item.kind, "")
        count = {"likert": item.points, "choice": len(options), "analogue": item.steps}.get(item.kind, 0)
        if item.kind in ("likert", "choice"):
            keys += f"   1 – {min(count, 9)}"
        optional = "" if item.required or item.kind == "page" else texts.form_optional
        shown = FormItem(
            item.kind,
            item.text,
            labels=tuple(item.options.values()),
            points=count,
            low=item.low,
            high=item.high,
            chosen=chosen,
            share=share,
            entry=self._entry,
            unit=item.unit,
            hint="   ·   ".join(filter(None, (keys, optional))),
            alert=self._alert,
        )
        caps = [Choice(NEXT, texts.go_on, texts.key(NEXT))]
        if self._place and not self._entry:
            caps.insert(0, Choice(BACK, texts.back, texts.key(BACK)))
        return {
            "kind": "form",
            "title": item.label or self._form.title,
            "item": shown,
            "keys": tuple(caps),
            "page": self._place + 1,
            "pages": len(self._items),
        }

    # --- input ---

    def press(self, key: str, now: float) -> None:
        """Handle a key press at the time `now` [s]."""
        if key in _STEPS or key == BACK:
            self._held[key] = now + _FIRST_REPEAT
        if key in (NEXT, "enter") or (key == "space" and self.item.kind == "page"):
            self._confirm()
        elif key == BACK:
            self._go_back()
        elif key in _STEPS:
            self._step(key)
        else:
            self._choose(key)

    def release(self, key: str) -> None:
        """Handle the release of a key."""
        self._held.pop(key, None)

    def repeat(self, now: float) -> bool:
        """Repeat the effect of held keys. Return True if there was one."""
        due = [key for key, at in self._held.items() if now >= at]
        for key in due:
            self._held[key] = now + _REPEAT_EVERY
            if key != BACK:
                self._step(key)
            elif self._entry:
                self._go_back()
        return bool(due)

    def pick(self, option: int) -> None:
        """Choose an option or a point by its index."""
        item = self.item
        if item.kind == "choice" and 0 <= option < len(item.options):
            self._set(list(item.options)[option])
        elif item.kind == "likert" and 0 <= option < item.points:
            self._set(option + 1)

    def place_at(self, share: float) -> None:
        """Set the position on an analogue scale, from 0 to 1."""
        if self.item.kind == "analogue" and math.isfinite(share):
            steps = self.item.steps or 1000
            self._set(round(100 * round(min(max(share, 0.0), 1.0) * steps) / steps, 3))

    def type(self, text: str) -> None:
        """Add typed characters to a number or a text.

        A typed digit chooses an option, also on keyboards whose digits need the shift key.
        """
        item = self.item
        if item.kind not in _TYPED:
            self._choose(text)
            return
        plain = "".join(one for one in text if one.isprintable())
        if item.kind == "number":
            plain = "".join(one for one in plain.replace(",", ".") if one in "0123456789.-")
        longest = item.longest if item.kind == "text" else _LONGEST_NUMBER
        self._entry, self._alert = (self._entry + plain)[:longest], ""
        self._read_entry()

    # --- effects ---

    def take_confirmed(self) -> list[str]:
        """Return the names of the items confirmed since the last call."""
        names, self.confirmed = self.confirmed, []
        return names

    def _choose(self, digit: str) -> None:
        """Choose an option or a point by its digit."""
        if len(digit) == 1 and digit in "123456789":
            self.pick(int(digit) - 1)

    def _set(self, value: Value) -> None:
        self.answers[self.item.name], self._alert = value, ""

    def _read_entry(self) -> None:
        """Take the typed text as the answer, None if it is no valid answer."""
        item, entry = self.item, self._entry.strip()
        value: Value = entry or None
        if item.kind == "number" and entry:
            try:
                number = float(entry)
                value = int(number) if number.is_integer() and abs(number) < 2**53 else number
            except (ValueError, OverflowError):
                value = None
        self.answers[item.name] = value if value is not None and item.fits(value) else None

    def _step(self, key: str) -> None:
        """Move the answer on a scale or in a list by one step."""
        item, value = self.item, self.answers.get(self.item.name)
        if item.kind == "analogue":
            steps = item.steps or _FINE
            now = round((steps // 2) if not isinstance(value, int | float) else steps * value / 100)
            moved = now if value is None else now + _STEPS[key]
            self.place_at(min(max(moved, 0), steps) / steps)
        elif item.kind == "likert":
            first = (item.points + 1) // 2
            now = int(value) if isinstance(value, int | float) else first - _STEPS[key]
            self.pick(min(max(now + _STEPS[key], 1), item.points) - 1)
        elif item.kind == "choice":
            options = list(item.options)
            down = key in ("down", "right")  # a list goes down
            last = len(options) - 1
            now = options.index(str(value)) + (1 if down else -1) if value is not None else 0 if down else last
            self.pick(min(max(now, 0), last))

    def _confirm(self) -> None:
        item = self.item
        value = self.answers.get(item.name)
        if item.kind in _TYPED and self._entry.strip() and value is None:
            words = self._texts.form_whole if item.whole else self._texts.form_number
            range_ = item.range or (0.0, 0.0)
            self._alert = words.replace("{minimum}", f"{range_[0]:g}").replace("{maximum}", f"{range_[1]:g}")
            return
        if not item.fits(value):
            self._alert = self._texts.form_required
            return
        if item.kind != "page":
            self.answers[item.name] = value
            self.confirmed.append(item.name)
        refused = self._form.name == CONSENT and item.name == AGREED and value != "yes"
        if refused or self._place + 1 == len(self._items):
            self.done = True
            return
        self._place += 1
        self._enter()

    def _go_back(self) -> None:
        if self._entry:
            self._entry, self._alert = self._entry[:-1], ""
            self._read_entry()
        elif self._place:
            self._place -= 1
            self._enter()

    def _enter(self) -> None:
        """Show the answer to the present item."""
        self._alert = ""
        self._held.clear()
        value = self.answers.get(self.item.name)
        self._entry = "" if self.item.kind not in _TYPED or value is None else str(value)
