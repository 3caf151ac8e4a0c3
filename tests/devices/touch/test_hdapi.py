"""Declarations of HDAPI for ctypes: a C compiler compares them with a header, and calls give the same results."""

import ctypes
import subprocess

import pytest

from devices.common.exchange import ExchangeSettings
from devices.emulators.native.compiler import FOLDER, find_compiler
from devices.emulators.touch import MAKER
from devices.touch import callback, hdapi
from devices.touch.hdapi import PROTOTYPES, ErrorInfo
from devices.touch.link import Library
from haptics.errors import DeviceOpenError
from tests.c_types import compile_check, needs_compiler, program

pytestmark = needs_compiler

NAMES = {ErrorInfo: "HDErrorInfo", hdapi.CALLBACK: "HDSchedulerCallback"}
FIELDS = {"code": "errorCode", "internal": "internalErrorCode", "handle": "hHD"}


def check(folder, symbols):
    return compile_check(folder, program("openhaptics.h", symbols, NAMES, FIELDS), FOLDER)


def test_declarations_agree_with_the_header(tmp_path):
    assert check(tmp_path, PROTOTYPES) == ""


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("hdIsEnabled", (ctypes.c_uint, (ctypes.c_uint,))),
        ("hdUnschedule", (None, (ctypes.c_uint,))),
        ("hdGetError", (ctypes.c_uint, ())),
        ("hdGetIntegerv", (None, (ctypes.c_uint, ctypes.POINTER(ctypes.c_double)))),
    ],
)
def test_wrong_declaration_is_found(tmp_path, name, wrong):
    assert f"{name} is declared as" in check(tmp_path, {name: wrong})


def test_wrong_structure_is_found(tmp_path):
    class Wrong(ctypes.Structure):
        _fields_ = (("code", ctypes.c_uint), ("internal", ctypes.c_long))

    messages = compile_check(tmp_path, program("openhaptics.h", {}, {Wrong: "HDErrorInfo"}, FIELDS), FOLDER)
    assert "size of HDErrorInfo" in messages and "HDErrorInfo.internal" in messages


PROGRAM = r"""
#include "openhaptics.h"
#include <stdio.h>
int main(void)
{
    hdInitDevice("nobody");
    hdUnschedule(7);
    for (int i = 0; i < 3; i++) {
        HDErrorInfo error = hdGetError();
        printf("%u %d %u\n", error.errorCode, error.internalErrorCode, error.hHD);
    }
    return 0;
}
"""


def test_error_by_value_is_the_same_in_c_with_ctypes_and_in_the_compiled_callback(tmp_path):
    library = MAKER.library()
    (tmp_path / "errors.c").write_text(PROGRAM)
    executable = tmp_path / "errors"
    command = [*find_compiler(), f"-I{FOLDER}", "-o", str(executable), str(tmp_path / "errors.c"), str(library)]
    subprocess.run([*command, f"-Wl,-rpath,{library.parent}"], check=True)
    lines = subprocess.run([str(executable)], capture_output=True, text=True, check=True).stdout.splitlines()
    in_c = [tuple(map(int, line.split())) for line in lines]
    assert in_c == [(0x0102, 0, hdapi.INVALID_HANDLE), (0x0300, -1, hdapi.INVALID_HANDLE), (0, 0, hdapi.INVALID_HANDLE)]

    loaded = ctypes.CDLL(str(library))
    for name, (result, arguments) in PROTOTYPES.items():
        getattr(loaded, name).restype, getattr(loaded, name).argtypes = result, arguments
    address = ctypes.cast(loaded.hdGetError, ctypes.c_void_p).value

    @callback.kernel
    def popped(function):
        return callback.pop_error(function)

    for pop in (lambda: _fields(loaded.hdGetError()), lambda: popped(address)):
        loaded.hdInitDevice(b"nobody")
        loaded.hdUnschedule(7)
        assert [pop() for _ in range(3)] == in_c


class Functions:
    """HDAPI in Python that opens a device although it reports an error."""

    def __init__(self):
        self.errors, self.opened = [], []

    def hdInitDevice(self, name):
        self.opened.append(5)
        self.errors.append(ErrorInfo(0x0600, -3, 5))
        return 5

    def hdDisableDevice(self, handle):
        self.opened.remove(handle)
        self.errors.append(ErrorInfo(0x0104, 0, handle))

    def hdGetError(self):
        return self.errors.pop() if self.errors else ErrorInfo()


def test_device_that_opens_with_an_error_is_released():
    functions = Functions()
    with pytest.raises(DeviceOpenError, match=r"the OpenHaptics licence is missing or invalid: .*OH_SDK"):
        Library(functions).open("", ExchangeSettings(), False)
    assert not functions.opened
    assert not functions.errors, "an error on the stack would be attributed to another device"


def _fields(error):
    return error.code, error.internal, error.handle
