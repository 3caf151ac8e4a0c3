"""The helper process of the view that computes friction laws."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from apps.view.laws import CurveRequest, LawCurves, LawProcess
from tests.processes import ended, until

COULOMB = CurveRequest((("force", 3.0), ("name", "coulomb")), 100.0)
ASKING = """
import sys, time
from apps.view.laws import CurveRequest
from apps.view.laws import LawCurves
law = LawCurves()
law.request(CurveRequest((("force", 3.0), ("name", "coulomb")), 100.0))
law.wait()
print(len(law.found), "numba" in sys.modules, law._process._process.pid, flush=True)
time.sleep(60)
"""


def test_window_loads_no_numba_and_its_helper_ends_with_the_killed_window():
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{ASKING}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as window:
        assert window.stdout is not None
        curves, numba, helper = window.stdout.readline().split()
        window.kill()
    assert (curves, numba) == ("1", "False")
    until(lambda: ended(int(helper)), "the helper process remains")


def test_killed_helper_costs_one_answer():
    process = LawProcess()
    assert process.curves(COULOMB)[0].forces == pytest.approx(np.full(160, 3.0))
    os.kill(process._process.pid, signal.SIGKILL)
    assert process.curves(COULOMB) == []
    assert len(process.curves(COULOMB)) == 1
    process.close()


def test_last_request_is_answered_and_a_cancelled_one_is_not(monkeypatch):
    answered = []

    def curves(wanted):
        answered.append(wanted)
        if wanted.fastest == 1.0:  # other laws are requested during the computation
            law.request(CurveRequest(COULOMB.law, 2.0))
            law.request(CurveRequest(COULOMB.law, 3.0))
        if wanted.fastest == 4.0:
            law.clear()
        return [wanted.fastest]

    law = LawCurves()
    monkeypatch.setattr(law._process, "curves", curves)
    law.request(CurveRequest(COULOMB.law, 1.0))
    law.wait()
    assert ([wanted.fastest for wanted in answered], law.found) == ([1.0, 3.0], [3.0])
    law.request(CurveRequest(COULOMB.law, 3.0))
    law.wait()
    assert len(answered) == 2, "nothing has changed"
    law.request(CurveRequest(COULOMB.law, 4.0))
    law.wait()
    assert law.found == []
