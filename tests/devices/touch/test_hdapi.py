"""Declarations of HDAPI for ctypes: a C compiler compares them with a header, and calls agree with those of C."""

import ctypes
import subprocess

import pytest

from devices.emulators.native.compiler import FOLDER, find_compiler
from devices.emulators.touch import MAKER
from devices.touch import callback, hdapi
from devices.touch.hdapi import PROTOTYPES, ErrorInfo

pytestmark = pytest.mark.skipif(not find_compiler(), reason="no C compiler")

C_NAMES = {
    None: "void",
    ctypes.c_char_p: "const char *",
    ctypes.c_void_p: "void *",
    ctypes.c_ubyte: "unsigned char",
    ctypes.c_ushort: "unsigned short",
    ctypes.c_uint: "unsigned int",
    ctypes.c_ulong: "unsigned long",
    ctypes.POINTER(ctypes.c_double): "double *",
    ctypes.POINTER(ctypes.c_int): "int *",
    ErrorInfo: "HDErrorInfo",
    hdapi.CALLBACK: "HDSchedulerCallback",
}


def checks(prototypes=PROTOTYPES):
    """Return a C program in which every declaration for ctypes is asserted to be that of the header."""
    lines = ['#include "openhaptics.h"', "#include <stddef.h>"]
    lines.append(f'_Static_assert(sizeof(HDErrorInfo) == {ctypes.sizeof(ErrorInfo)}, "size");')
    for own, theirs in (("code", "errorCode"), ("internal", "internalErrorCode"), ("handle", "hHD")):
        lines.append(f'_Static_assert(offsetof(HDErrorInfo, {theirs}) == {getattr(ErrorInfo, own).offset}, "place");')
    for name, (result, arguments) in prototypes.items():
        own = ", ".join(C_NAMES[one] for one in arguments) or "void"
        if name.startswith("hdSet"):
            own = own.replace("double *", "const double *")
        lines.append(
            f'_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {C_NAMES[result]}({own})), "{name}");'
        )
    return "\n".join([*lines, "int main(void) { return 0; }\n"])


def compiles(folder, program):
    source = folder / "check.c"
    source.write_text(program)
    command = [*find_compiler(), "-std=gnu11", "-Wall", "-Werror", f"-I{FOLDER}", "-fsyntax-only", str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_declarations_are_those_of_the_header(tmp_path):
    done = compiles(tmp_path, checks())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("hdIsEnabled", (ctypes.c_uint, (ctypes.c_uint,))),
        ("hdUnschedule", (None, (ctypes.c_uint,))),
        ("hdGetError", (ctypes.c_uint, ())),
        ("hdGetIntegerv", (None, (ctypes.c_uint, ctypes.POINTER(ctypes.c_double)))),
    ],
)
def test_wrong_declaration_is_an_error_of_the_compiler(tmp_path, name, wrong):
    done = compiles(tmp_path, checks({**PROTOTYPES, name: wrong}))
    assert done.returncode != 0 and name in done.stderr


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
    program = tmp_path / "errors"
    command = [*find_compiler(), f"-I{FOLDER}", "-o", str(program), str(tmp_path / "errors.c"), str(library)]
    subprocess.run([*command, f"-Wl,-rpath,{library.parent}"], check=True)
    lines = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
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


def _fields(error):
    return error.code, error.internal, error.handle
