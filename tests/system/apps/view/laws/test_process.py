"""What laws say is worked out beside the window: nothing of it is loaded there, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from apps.view.laws.curves import Wanted
from apps.view.laws.process import LawCurves, LawProcess
from tests.processes import until

COULOMB = Wanted((("force", 3.0), ("name", "coulomb")), 100.0)

ASKING = """
import sys, time
from apps.view.laws.curves import Wanted
from apps.view.laws.process import LawCurves
law = LawCurves()
law.ask(Wanted((("force", 3.0), ("name", "coulomb")), 100.0))
law.wait()
print(len(law.found), "numba" in sys.modules, law._process._process.pid, flush=True)
time.sleep(60)
"""


def test_the_window_loads_no_numba_and_its_helper_ends_with_it_even_if_it_is_killed() -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{ASKING}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as window:
        assert window.stdout is not None
        curves, numba, helper = window.stdout.readline().split()
        window.kill()
    assert (curves, numba) == ("1", "False")
    until(lambda: not alive(int(helper)), "the process of the laws lives on")


def alive(number: int) -> bool:
    """Return whether there is a process with this number that has not ended."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_dies_costs_one_answer() -> None:
    process = LawProcess()
    assert process.curves(COULOMB)[0].forces == pytest.approx(np.full(160, 3.0))
    os.kill(process._process.pid, signal.SIGKILL)
    assert process.curves(COULOMB) == []
    assert len(process.curves(COULOMB)) == 1
    process._end()


def test_where_no_process_can_be_had_there_is_no_curve(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert LawProcess().curves(COULOMB) == []


def test_what_was_asked_for_last_is_found_and_what_was_forgotten_is_not(monkeypatch) -> None:
    answered = []

    def curves(wanted: Wanted) -> list[object]:
        answered.append(wanted)
        if wanted.fastest == 1.0:  # meanwhile others are asked for
            law.ask(Wanted(COULOMB.law, 2.0))
            law.ask(Wanted(COULOMB.law, 3.0))
        if wanted.fastest == 4.0:
            law.forget()
        return [wanted.fastest]

    law = LawCurves()
    monkeypatch.setattr(law._process, "curves", curves)
    law.ask(Wanted(COULOMB.law, 1.0))
    law.wait()
    assert ([wanted.fastest for wanted in answered], law.found) == ([1.0, 3.0], [3.0])
    law.ask(Wanted(COULOMB.law, 3.0))
    law.wait()
    assert len(answered) == 2, "nothing has changed"
    law.ask(Wanted(COULOMB.law, 4.0))
    law.wait()
    assert law.found == []
