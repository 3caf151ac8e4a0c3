"""Types of the functions of the Force Dimension SDK, as a C compiler judges them, and words for its results."""

import ctypes

import pytest

from devices.emulators.forcedimension import MAKER
from devices.emulators.native.compiler import FOLDER, fault_flags
from devices.forcedimension.library import CAUSES, OPTIONAL, SYMBOLS, trouble
from tests.c_types import compile_check, needs_compiler, program
from tests.processes import ROOT

HEADERS = ROOT / "tests" / "devices" / "forcedimension"
ALL = {**SYMBOLS, **OPTIONAL}


@needs_compiler
def test_declarations_agree_with_the_makers_prototypes(tmp_path):
    assert compile_check(tmp_path, program("dhd.h", ALL), HEADERS) == ""


@needs_compiler
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dhdSetForce", (ctypes.c_int, (ctypes.c_float, ctypes.c_double, ctypes.c_double, ctypes.c_byte))),
        ("dhdSetWatchdog", (ctypes.c_int, (ctypes.c_ushort, ctypes.c_byte))),
        ("dhdGetSerialNumber", (ctypes.c_int, (ctypes.POINTER(ctypes.c_int), ctypes.c_byte))),
        ("dhdGetComFreq", (ctypes.c_int, (ctypes.c_byte,))),
    ],
)
def test_wrong_declaration_is_found(tmp_path, name, wrong):
    assert f"{name} is declared as" in compile_check(tmp_path, program("dhd.h", {name: wrong}), HEADERS)


@needs_compiler
def test_emulated_library_has_the_makers_prototypes(tmp_path):
    """The source defines every function, with the types of the header."""
    source = (FOLDER / MAKER.source).read_text()
    assert [name for name in ALL if f" {name}(" not in source and f"*{name}(" not in source] == []
    defined = "".join(f"#define {flag[2:].replace('=', ' ')}\n" for flag in fault_flags(MAKER.faults))
    text = f'{defined}#include "{HEADERS / "dhd.h"}"\n#include "{FOLDER / MAKER.source}"\n'
    assert compile_check(tmp_path, text, FOLDER) == ""


def status(**values):
    vector = [0] * 17
    vector[0] = vector[1] = vector[5] = 1
    for name, value in values.items():
        vector[{"power": 0, "connected": 1, "reset": 3, "force": 5, "cause": 14}[name]] = value
    return vector


def test_device_that_is_ready_has_no_trouble():
    assert trouble(status()) == ""
    assert trouble(status(cause=2)) == "", "the cause of an earlier switch-off"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"power": 0}, "no power"),
        ({"connected": 0}, "not connected"),
        ({"reset": 1}, "not initialised any more"),
        ({"force": 0, "cause": 1}, "its force button was pressed"),
        ({"force": 0, "cause": 2}, "its velocity threshold was exceeded"),
        ({"force": 0, "cause": 3}, "its watchdog received no force"),
        ({"force": 0, "cause": 4}, "another command"),
        ({"force": 0, "cause": 5}, "its USB connection was lost"),
        ({"force": 0, "cause": 6}, "its dead-man's switch was released"),
        ({"force": 0}, "states no cause"),
    ],
)
def test_trouble_is_said_in_words(values, words):
    assert words in trouble(status(**values))


def test_all_six_causes_have_words():
    assert list(CAUSES) == [1, 2, 3, 4, 5, 6]
    assert set(MAKER.causes.values()) == set(CAUSES)
