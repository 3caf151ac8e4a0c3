"""C programs that a compiler checks: declarations of ctypes against the prototypes of a header."""

import ctypes
import subprocess

import pytest

from devices.emulators.native.compiler import find_compiler

needs_compiler = pytest.mark.skipif(not find_compiler(), reason="no C compiler (cc, gcc, clang or $CC)")

TYPES = {
    ctypes.c_byte: "char",  # a signed one, which the program checks
    ctypes.c_ubyte: "unsigned char",
    ctypes.c_bool: "_Bool",
    ctypes.c_ushort: "unsigned short",
    ctypes.c_int: "int",
    ctypes.c_uint: "unsigned int",
    ctypes.c_ulong: "unsigned long",
    ctypes.c_float: "float",
    ctypes.c_double: "double",
    ctypes.c_char_p: "const char *",
    ctypes.c_void_p: "void *",
    None: "void",
}


def c_type(declared, names):
    """Return the C type of a type of ctypes; `names` are the C names of structures and functions."""
    if declared in TYPES:
        return TYPES[declared]
    if declared in names:
        return names[declared]
    return f"{c_type(declared._type_, names)} *"


def program(header, symbols, names=None, fields=None):
    """Return a program whose compilation fails unless all `symbols` have the types of the `header`.

    `names` has the C names of structures and of types of functions, `fields` the C names of fields that differ. Sizes
    and offsets of structures are checked too; ``const`` is not, because ctypes has none.
    """
    names, fields = names or {}, fields or {}
    lines = ["#include <limits.h>", "#include <stddef.h>", "#define const", f'#include "{header}"']
    lines.append('_Static_assert(CHAR_MIN < 0, "char is not signed here");')
    for name, (result, arguments) in symbols.items():
        types = ", ".join(c_type(one, names) for one in arguments) or "void"
        declared = f"{c_type(result, names)} ({types})"
        lines.append(
            f"_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {declared}), "
            f'"{name} is declared as {declared}");'
        )
    for structure, name in names.items():
        if not (isinstance(structure, type) and issubclass(structure, ctypes.Structure)):
            continue
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(structure)}, "size of {name}");')
        for field, *_ in structure._fields_:
            offset = getattr(structure, field).offset
            lines.append(f'_Static_assert(offsetof({name}, {fields.get(field, field)}) == {offset}, "{name}.{field}");')
    return "\n".join([*lines, "int main(void) { return 0; }", ""])


def compile_check(folder, text, include):
    """Compile a program without running it; return the compiler's messages, empty if it is accepted."""
    file = folder / "check.c"
    file.write_text(text)
    command = [*find_compiler(), "-std=gnu11", "-fsyntax-only", "-Wall", "-I", str(include), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr
