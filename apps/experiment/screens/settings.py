"""Settings of the participant's screen: the table ``screen`` of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from haptics.settings import bounded, check, choice, documented, flag


@documented
@dataclass(frozen=True)
class ScreenSettings:
    """Table ``screen``: display and sound of the participant's screen."""

    full_screen: bool = flag(True, doc="the whole screen, or else a window of `width` times `height`")
    screen: int = bounded(0, minimum=0, maximum=15, doc="which screen, the first is 0")
    width: int = bounded(1280, minimum=640, maximum=7680, unit="pixel", doc="width of the window")
    height: int = bounded(720, minimum=480, maximum=4320, unit="pixel", doc="height of the window")
    theme: str = choice("dark", ("dark", "light"), doc="colours")
    text_scale: float = bounded(1.0, minimum=0.5, maximum=2.0, doc="size of all text, as a multiple of the usual one")
    noise_level: float = bounded(
        0.0, minimum=0.0, maximum=1.0, doc="amplitude of the masking pink noise, as a share of full scale; 0: none"
    )
    tone_level: float = bounded(0.2, minimum=0.0, maximum=1.0, doc="amplitude of tones, as a share of full scale")

    def __post_init__(self) -> None:
        check(self, "screen")
