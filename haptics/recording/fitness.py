"""Fitness of a run: comparison of its timing with limits that were fixed before it started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from haptics.settings import bounded, check, documented


@documented
@dataclass(frozen=True)
class Fitness:
    """The table ``fitness``: limits of the timing of a fit run."""

    late_share: float = bounded(0.05, minimum=0.0, maximum=1.0, doc="largest share of ticks that started or ended late")
    skipped_share: float = bounded(0.01, minimum=0.0, maximum=1.0, doc="largest share of deadlines missed whole")
    unusable_share: float = bounded(
        0.01, minimum=0.0, maximum=1.0, doc="largest share of ticks without a sample that could be trusted"
    )
    longest_gap: float = bounded(0.1, above=0.0, unit="s", doc="longest time between two ticks")
    lost_ticks: float = bounded(0.0, minimum=0.0, doc="largest number of ticks executed but not recorded")

    def __post_init__(self) -> None:
        check(self, "fitness")

    def judge(self, timing: dict[str, Any], fault: str | None = None) -> list[str]:
        """Return the reasons why a run with the certificate `timing` is not fit; empty if it is fit.

        Each reason is a sentence. See `haptics.recording.certificate` for the entries of `timing`. A run that ended
        with a `fault` is never fit.
        """
        executed, deadlines = max(timing["ticks"], 1), max(timing["ticks"] + timing["skipped"], 1)
        gap = timing["longest_gap_us"]
        found = (
            ("late_share", timing["overruns"] / executed, "of the ticks started or ended late"),
            ("skipped_share", timing["skipped"] / deadlines, "of the deadlines were missed whole"),
            ("unusable_share", timing["unusable_ticks"] / executed, "of the ticks had no usable sample"),
        )
        reasons = [
            f"{100 * share:.3g} % {what}; fitness.{name} allows {100 * getattr(self, name):g} %"
            for name, share, what in found
            if share > getattr(self, name)
        ]
        if gap is not None and gap * 1e-6 > self.longest_gap:
            reasons.append(f"{gap * 1e-3:.4g} ms passed between two ticks; {self._allows('longest_gap', 1e3, 'ms')}")
        if timing["lost_ticks"] > self.lost_ticks:
            reasons.append(f"{timing['lost_ticks']} ticks were not recorded; {self._allows('lost_ticks', 1.0, '')}")
        if fault:
            reasons.append(f"the run ended with a fault: {fault}")
        return reasons

    def _allows(self, name: str, scale: float, unit: str) -> str:
        return f"fitness.{name} allows {getattr(self, name) * scale:g} {unit}".rstrip()
