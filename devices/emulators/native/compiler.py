"""Compile the C sources of this folder on first use, into the folder of compiled kernels."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from haptics.errors import DeviceOpenError
from haptics.kernel_cache import find_folder

FOLDER = Path(__file__).parent
"""Folder of the sources and their headers."""

_FLAGS = ("-O2", "-shared", "-fPIC", "-std=gnu11", "-Wall", "-Werror")
_LIBRARIES = ("-lm", "-ldl", "-lpthread")
_TIMEOUT = 60.0
_COMPILERS = ("cc", "gcc", "clang")


def find_compiler() -> list[str]:
    """Return the command of the C compiler: ``$CC``, or the first of cc, gcc and clang; empty if there is none."""
    return shlex.split(os.environ.get("CC", "")) or [*filter(shutil.which, _COMPILERS)][:1]


def fault_flags(faults: Iterable[str]) -> list[str]:
    """Return the definitions of the numbers of `faults`: ``FAULT_TIME_GUARD`` is the number of ``time-guard``."""
    return [f"-DFAULT_{name.upper().replace('-', '_')}={number}" for number, name in enumerate(faults)]


def compiled(sources: Iterable[str], defined: Iterable[str] = ()) -> Path:
    """Return the shared library of `sources`, files of `FOLDER`, and compile it if it does not exist yet.

    The library is compiled again when a source, a header, the compiler or an option changes.

    Parameters
    ----------
    sources : iterable of str
        Names of the C files.
    defined : iterable of str
        Further options of the compiler.

    Raises
    ------
    DeviceOpenError
        If there is no compiler, or it fails; with the remedy.
    """
    command = find_compiler()
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise DeviceOpenError(
            f"the emulated device is written in C, and there is no C compiler ({', '.join(_COMPILERS)} or $CC): "
            "install one (Debian: sudo apt install gcc libc6-dev)."
        )
    files = [FOLDER / name for name in sources]
    options = [*_FLAGS, *defined]
    about = Path(program).resolve().stat()
    digest = hashlib.sha256(repr((command, program, about.st_size, about.st_mtime_ns, options)).encode())
    for file in (*files, *sorted(FOLDER.glob("*.h"))):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    folder = find_folder() or Path(tempfile.gettempdir())
    target = folder / f"{files[-1].stem}-{digest.hexdigest()[:24]}.so"
    if not target.exists():
        _compile([*command, *options], files, target)
    return target


def _compile(command: list[str], files: list[Path], target: Path) -> None:
    """Compile `files` into `target`, which never exists incompletely."""
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".so", delete=False) as part:
        pass
    try:
        done = subprocess.run(
            [*command, "-o", part.name, *map(str, files), *_LIBRARIES],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )
        if done.returncode != 0:
            reason = next(filter(None, map(str.strip, done.stderr.splitlines())), "no message")
            raise DeviceOpenError(f"the C compiler {command[0]} failed on the emulated device: {reason}")
        Path(part.name).chmod(0o755)
        Path(part.name).replace(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceOpenError(f"the C compiler {command[0]} cannot be run ({error}).") from error
    finally:
        Path(part.name).unlink(missing_ok=True)
