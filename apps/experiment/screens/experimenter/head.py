"""Head of the experimenter's screen: participant, trial number, phase and remaining time."""

from __future__ import annotations

from apps.experiment.screens.messages import Progress, SessionOutline
from apps.shared.theme import Theme
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label


def about(seconds: float | None) -> str:
    """Return a remaining time as text."""
    if seconds is None:
        return ""
    return f"about {max(round(seconds / 60), 1)} min left" if seconds >= 45 else "less than a minute left"


class HeadPanel(Panel):
    """Session, block, trial, condition and phase, with a progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.session = label("waiting for the experiment", 12, bold=True)
        self.phase = label("", 16, bold=True)
        self.trial = label("", 12)
        self.level = label("", 12, faint=True)
        self.left = label("", 12)
        self.theme_button = QtWidgets.QPushButton("Light / dark")
        self.theme_button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.bar = QtWidgets.QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.head.addWidget(self.session)
        self.head.addStretch(1)
        self.head.addWidget(self.left)
        self.head.addSpacing(12)
        self.head.addWidget(self.theme_button)
        row = QtWidgets.QHBoxLayout()
        row.setSpacing(24)
        row.addWidget(self.phase)
        row.addStretch(1)
        row.addWidget(self.trial)
        row.addWidget(self.level)
        self.body.addLayout(row)
        self.body.addWidget(self.bar)
        self._plan = SessionOutline("", "", 1, 1, None)

    def configure(self, plan: SessionOutline) -> None:
        """Reset the panel for a new session."""
        self._plan = plan
        blind = "   (blind)" if plan.blind else ""
        self.session.setText(f"{plan.experiment}   ·   {plan.participant}   ·   session {plan.session}{blind}")
        self.show_progress(Progress("before the first trial"))

    def show_progress(self, progress: Progress) -> None:
        """Show the progress of the session."""
        plan, of = self._plan, progress.of or self._plan.trials
        words = [f"block {progress.block} of {plan.blocks}"] if progress.block else []
        if progress.trial:
            words.append(f"trial {progress.trial}" + (f" of {of}" if of else ""))
        if progress.attempt > 1:
            words.append(f"attempt {progress.attempt}")
        self.trial.setText("   ·   ".join(words))
        self.phase.setText(progress.phase)
        self.left.setText(about(progress.remaining))
        self.level.setText("   ".join(self._stimulus(progress)))
        self.bar.setRange(0, of or 1)
        self.bar.setValue(min(max(progress.trial - 1, 0), of) if of else 0)

    def _stimulus(self, progress: Progress) -> list[str]:
        words = [progress.kind, progress.track or progress.condition]
        if progress.level is not None:
            words.append(f"level {progress.level:.4g} {self._plan.unit}".strip())
        return [word for word in words if word]

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        chunk = f"background: {theme.motion}; border-radius: 4px;"
        self.bar.setStyleSheet(
            f"QProgressBar {{ background: {theme.ground}; border: none; border-radius: 4px; }}"
            f"QProgressBar::chunk {{ {chunk} }}"
        )
