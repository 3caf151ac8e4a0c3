"""Compiled callback that the manufacturer's scheduler thread calls in every tick of its servo loop.

Only this thread may begin frames and read or set the state of the device. The callback exchanges the newest command
for a sample through two latches, and never needs the interpreter: a callback in Python would wait for the interpreter
lock inside the manufacturer's real-time thread. It calls the library by addresses in its record `LOOP`.

The callback itself reaches the safe output: it sends a zero force when the command has expired, while ``hold`` is set,
and after every error, when it also switches the motors off.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from devices.common.latch import copy_latest, publish_to
from devices.touch.hdapi import CONTINUE, FORCE_ERRORS, FORCE_OUTPUT, ErrorInfo, Parameter
from haptics.jit import COMPILED, fence, float_at, kernel, merged_kernel, record_at
from haptics.records import fields
from haptics.servo.kernels import SCRATCH, monotonic_ns

SAMPLE_SIZE, COMMAND_SIZE = 5, 3
"""Numbers in a sample: position [m], buttons, highest motor temperature (0 to 1); in a command: force [N]."""

FUNCTIONS: dict[str, str] = {
    "begin": "hdBeginFrame",
    "end": "hdEndFrame",
    "get_numbers": "hdGetDoublev",
    "get_integers": "hdGetIntegerv",
    "set_numbers": "hdSetDoublev",
    "pop_error": "hdGetError",
    "enable": "hdEnable",
    "disable": "hdDisable",
    "is_enabled": "hdIsEnabled",
    "check": "hdCheckCalibration",
    "update": "hdUpdateCalibration",
}
"""Functions of the library by their fields in `LOOP`."""

CHECK, UPDATE, ENABLE, DISABLE = 1, 2, 3, 4
"""Requests: check and update the calibration, switch the motors on and off."""

LOOP = np.dtype(
    [
        *fields("<i8", " ".join(FUNCTIONS)),
        *fields("<i8", "handle samples commands lost next motors"),
        ("hold", "<i8", (2,)),
        *fields("<i8", "request argument answer"),
        *fields("<i8", "rounds rested error internal failures"),
        ("watchdog", "<f8"),
        ("scratch", "<i8", (SCRATCH,)),
        ("numbers", "<f8", (6,)),
        ("integer", "<i4"),
        ("unused", "<i4"),
        ("sample", "<f8", (1 + SAMPLE_SIZE,)),
        ("command", "<f8", (COMMAND_SIZE + 1,)),
    ]
)
"""Record of one device in the servo loop.

``samples``, ``commands`` and ``lost`` are addresses of memory that is shared with the tick (`devices.common.latch`).
``next`` is the address of another device's record in a ring, because the error stack is common to all devices.
``motors`` is the number of motors that report a temperature. Other threads write ``hold`` (two reasons for a zero
force) and ``request``, which the callback sets to 0 after it has written ``answer``. The callback counts frames in
``rounds``, and in ``rested`` the consecutive frames in which the device accepted a zero force.
``error`` and ``internal`` are the first error of the device, ``failures`` counts its errors that are not among
`FORCE_ERRORS`, after which the device may not receive commands.
"""

_NUMBERS, _INTEGER = (LOOP.fields[name][1] for name in ("numbers", "integer"))  # type: ignore[index]

_MOST_ERRORS = 32
_MILLIMETRE = 1e-3
_FLAG = np.dtype([("value", "<f8")])
_FIRST_FORCE_ERROR, _LAST_FORCE_ERROR = FORCE_ERRORS[0], FORCE_ERRORS[-1]
_POSITION, _BUTTONS, _FORCE = int(Parameter.POSITION), int(Parameter.BUTTONS), int(Parameter.FORCE)
_TEMPERATURE = int(Parameter.MOTOR_TEMPERATURE)

# --- calls of C functions by address ----------------------------------------------------------------------------------

if COMPILED:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def _call(builder: Any, result: Any, place: Any, arguments: list[Any]) -> Any:
        """Generate the call of the C function at `place`."""
        function = ir.FunctionType(result, [value.type for value in arguments])
        return builder.call(builder.inttoptr(place, function.as_pointer()), arguments)

    @intrinsic  # type: ignore[untyped-decorator]
    def call_number(typing: Any, function: Any, number: Any) -> Any:
        """Call ``void f(unsigned)``."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            _call(builder, ir.VoidType(), values[0], [builder.trunc(values[1], ir.IntType(32))])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def call_vector(typing: Any, function: Any, number: Any, place: Any) -> Any:
        """Call ``void f(unsigned, T *)``."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            _call(builder, ir.VoidType(), values[0], [builder.trunc(values[1], ir.IntType(32)), values[2]])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def call_check(typing: Any, function: Any) -> Any:
        """Call ``unsigned f(void)``."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.zext(_call(builder, ir.IntType(32), values[0], []), ir.IntType(64))

        return types.int64(types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def call_flag(typing: Any, function: Any, number: Any) -> Any:
        """Call ``unsigned char f(unsigned)``."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = _call(builder, ir.IntType(8), values[0], [builder.trunc(values[1], ir.IntType(32))])
            return builder.zext(found, ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def pop_error(typing: Any, function: Any) -> Any:
        """Call ``HDErrorInfo f(void)``; return error code, internal code and handle.

        The calling conventions of x86-64 (System V) and AArch64 return a structure of 12 bytes in two integer
        registers, like this pair.
        """

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = _call(builder, ir.LiteralStructType([ir.IntType(64), ir.IntType(32)]), values[0], [])
            first = builder.extract_value(found, 0)
            code = builder.zext(builder.trunc(first, ir.IntType(32)), ir.IntType(64))
            internal = builder.ashr(first, ir.Constant(ir.IntType(64), 32))
            handle = builder.zext(builder.extract_value(found, 1), ir.IntType(64))
            return context.make_tuple(builder, signature.return_type, [code, internal, handle])

        return types.UniTuple(types.int64, 3)(types.int64), generate

else:

    def call_number(function: int, number: int) -> None:
        """Call ``void f(unsigned)``."""
        ctypes.CFUNCTYPE(None, ctypes.c_uint)(int(function))(int(number))

    def call_vector(function: int, number: int, place: int) -> None:
        """Call ``void f(unsigned, T *)``."""
        ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_void_p)(int(function))(int(number), int(place))

    def call_check(function: int) -> int:
        """Call ``unsigned f(void)``."""
        return int(ctypes.CFUNCTYPE(ctypes.c_uint)(int(function))())

    def call_flag(function: int, number: int) -> int:
        """Call ``unsigned char f(unsigned)``."""
        return int(ctypes.CFUNCTYPE(ctypes.c_ubyte, ctypes.c_uint)(int(function))(int(number)))

    def pop_error(function: int) -> tuple[int, int, int]:
        """Call ``HDErrorInfo f(void)``; return error code, internal code and handle."""
        found = ctypes.CFUNCTYPE(ErrorInfo)(int(function))()
        return found.code, found.internal, found.handle


# --- callback ---------------------------------------------------------------------------------------------------------


@merged_kernel
def _collect_errors(s: Any) -> None:
    """Store the errors since the last call in the records of their devices."""
    for _ in range(_MOST_ERRORS):
        code, internal, handle = pop_error(s.pop_error)
        if code == 0:
            break
        owner = s
        other = record_at(s.next, LOOP)
        while other.handle != s.handle:
            if other.handle == handle:
                owner = other
            other = record_at(other.next, LOOP)
        if owner.error == 0:
            owner.error, owner.internal = code, internal
        if not _FIRST_FORCE_ERROR <= code <= _LAST_FORCE_ERROR:
            owner.failures += 1


@merged_kernel
def _perform_request(s: Any) -> None:
    """Perform the request of another thread, within the frame."""
    if s.request == CHECK:
        s.answer = call_check(s.check)
    elif s.request == UPDATE:
        call_number(s.update, s.argument)
    else:
        call_number(s.enable if s.request == ENABLE else s.disable, FORCE_OUTPUT)
        s.answer = call_flag(s.is_enabled, FORCE_OUTPUT)
    fence()
    s.request = 0


@kernel
def serve(place: int) -> int:
    """Exchange the command for a sample in one frame; callback of the device whose record is at `place`."""
    s = record_at(place, LOOP)
    call_number(s.begin, s.handle)
    s.sample[0] = now = 1e-9 * monotonic_ns(s.scratch)
    for i in range(len(s.numbers)):
        s.numbers[i] = math.nan  # remains if the call fails
    call_vector(s.get_numbers, _POSITION, place + _NUMBERS)
    for i in range(3):
        s.sample[1 + i] = _MILLIMETRE * s.numbers[i]
    call_vector(s.get_integers, _BUTTONS, place + _INTEGER)
    s.sample[4], s.sample[5] = s.integer, 0.0
    if s.motors > 0:
        call_vector(s.get_numbers, _TEMPERATURE, place + _NUMBERS)
        for i in range(s.motors):
            s.sample[5] = max(s.sample[5], s.numbers[i])
    known = copy_latest(s.commands, s.command)
    rests = not known or s.hold[0] + s.hold[1] != 0 or s.error != 0 or not now - s.command[3] < s.watchdog
    for i in range(3):
        s.numbers[i] = 0.0 if rests else s.command[i]
    call_vector(s.set_numbers, _FORCE, place + _NUMBERS)
    if s.request != 0:
        _perform_request(s)
    call_number(s.end, s.handle)
    before = s.failures
    _collect_errors(s)
    s.rested = s.rested + 1 if rests and s.failures == before else 0
    if s.error == 0:
        publish_to(s.samples, s.sample)
    elif float_at(s.lost) == 0.0:
        call_number(s.disable, FORCE_OUTPUT)
        lost = record_at(s.lost, _FLAG)
        lost.value = 1.0
    s.rounds += 1
    return CONTINUE
