"""Saving of pictures and data to the clipboard or to a folder next to the recording.

There is no dialog, because it would take the keyboard focus from a session that the user may have to stop.
"""

from __future__ import annotations

from pathlib import Path

from PySide6 import QtSvg

from apps.export.table import Table
from apps.export.writers import write_csv
from apps.view.plots.plot import Plot
from apps.view.qt import QtCore, QtGui, QtWidgets


def shown_folder(recording: str) -> Path:
    """Return the folder for saved files: next to the recording of the run, or ``shown`` without one."""
    if not recording:
        return Path("shown")
    folder = Path(recording)
    return folder.with_name(f"{folder.name}-shown")


def save(what: QtWidgets.QWidget, action: str, folder: Path, time: float) -> str:
    """Execute one of `apps.view.plots.plot.ACTIONS` for a plot or the whole window.

    Parameters
    ----------
    what : QWidget
        A `Plot`, or any other widget.
    action : str
        ``copy``, ``png``, ``svg`` or ``csv``.
    folder : Path
        Folder of the file; created if it does not exist.
    time : float
        Time of the newest row shown [s], which is part of the file name.

    Returns
    -------
    str
        A message about the result.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if action == "copy":
        QtWidgets.QApplication.clipboard().setPixmap(what.grab())
        return "The picture is in the clipboard."
    folder.mkdir(parents=True, exist_ok=True)
    path = _free(folder, f"{what.name if isinstance(what, Plot) else 'window'}_{time:.3f}s", action)
    if action == "csv" and isinstance(what, Plot):
        write_csv(Table.of_columns(what.table(what.history)), path)
    elif action == "svg":
        _draw(what, path)
    elif not what.grab().save(str(path)):
        raise OSError(f"{path.name} cannot be written")
    return f"Saved {path}"


def _free(folder: Path, name: str, kind: str) -> Path:
    """Return an unused path."""
    path, number = folder / f"{name}.{kind}", 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}.{kind}"
    return path


def _draw(what: QtWidgets.QWidget, path: Path) -> None:
    """Write the widget as a vector drawing (SVG)."""
    generator = QtSvg.QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(what.size())
    generator.setViewBox(what.rect())
    generator.setTitle(what.title if isinstance(what, Plot) else what.windowTitle())
    painter = QtGui.QPainter()
    if not painter.begin(generator):
        raise OSError(f"{path.name} cannot be written")
    what.render(painter, QtCore.QPoint())
    painter.end()
