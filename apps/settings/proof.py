"""Validation of a session by building all of its parts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.settings.config import SessionConfig


def _require_clock(config: SessionConfig) -> None:
    """Raise `ConfigurationError` if a session cannot run without a clock.

    It needs a duration, a virtual device, and a hand other than the mouse.
    """
    from devices import is_virtual

    if config.session.clock == "wall":
        return
    others = "" if is_virtual(config.device) else f"{config.device} has a clock of its own: use a virtual device"
    others = others or ("the mouse moves by the clock: choose another hand" if config.hand == "mouse" else "")
    endless = "there is nothing that would end it: give session.duration (--duration)"
    others = others or ("" if config.session.duration is not None else endless)
    if others:
        raise ConfigurationError(f"session.clock = 'off': {others}.")


def prove(config: SessionConfig) -> None:
    """Build all parts of a session once, so that configuration errors are raised before the run."""
    from haptics.rendering.rendering import require_pair

    _require_clock(config)
    program, _ = config.program, config.limits
    require_pair(program, config.spec)
