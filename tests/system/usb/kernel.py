"""Runs a program under a Linux kernel of its own that is an ordinary process (user-mode Linux).

The kernel lives on this machine's files, which it may only read, and with this Python. A program inside is root and has
the kernel's whole USB stack, so that an emulated device can be plugged in with `tests.system.usb.usbip`.
"""

from __future__ import annotations

import lzma
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.processes import ROOT

VARIABLE = "HAPTICS_UML_KERNEL"
"""Environment variable with the path of a kernel, packed by xz or not."""

_PACKED = ROOT.parent / "shared" / "usb" / "linux-6.1.uml.xz"

_INIT = """#!{busybox} sh
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/run TMPDIR=/run
export PYTHONPATH={root} NUMBA_DISABLE_JIT=1 SEED={seed}
b={busybox}
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t tmpfs tmpfs /run
$b mkdir /run/result
$b mount -t hostfs -o {folder} none /run/result
>/run/result/started
{python} -B {inside} {program} >/run/result/out 2>/run/result/err
$b dmesg >/run/result/dmesg
$b poweroff -f
"""


def why_not() -> str:
    """Say what keeps the kernel from running here; empty if nothing does."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "user-mode Linux runs on Linux on x86-64 only"
    if not _source().is_file():
        return f"no kernel: {_source()} is missing ({VARIABLE} may name another)"
    if not _busybox():
        return "busybox is missing (Debian package busybox-static)"
    return ""


def _busybox() -> str:
    return shutil.which("busybox") or ""


def _source() -> Path:
    return Path(os.environ.get(VARIABLE) or _PACKED)


def unpacked(folder: Path) -> Path:
    """Return the kernel as a program, unpacked into `folder` where it is packed."""
    source = _source()
    if source.suffix != ".xz":
        return source
    program = folder / source.stem
    program.write_bytes(lzma.decompress(source.read_bytes()))
    program.chmod(0o700)
    return program


class KernelAbsent(Exception):
    """The kernel does not start on this machine."""


def run(kernel: Path, program: str, *arguments: str, folder: Path, seconds: float = 90.0) -> tuple[str, str]:
    """Run the module `program` inside; return what it prints, and what else it and the kernel say.

    Parameters
    ----------
    kernel : Path
        As `unpacked` returns it.
    program, *arguments : str
        A module and the words after it.
    folder : Path
        Takes what the program and the kernel say.
    seconds : float
        After so long the kernel is ended.

    Raises
    ------
    KernelAbsent
        If the kernel does not come as far as its first program.
    """
    init = folder / "init"
    words = {
        "busybox": _busybox(),
        "folder": folder,
        "root": ROOT,
        "python": sys.executable,
        "inside": Path(__file__).with_name("inside.py"),
        "seed": os.urandom(64).hex(),
    }
    init.write_text(
        _INIT.format(
            **{name: shlex.quote(str(word)) for name, word in words.items()}, program=shlex.join((program, *arguments))
        )
    )
    init.chmod(0o700)
    console = _boot(kernel, init, folder, seconds)
    if not (folder / "started").exists():
        raise KernelAbsent(f"the kernel does not start here: {console.strip()[-300:] or 'it says nothing'}")
    return _text(folder / "out"), "\n".join((_text(folder / "err"), _text(folder / "dmesg")[-3000:], console[-3000:]))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def _preloaded(folder: Path) -> dict[str, str]:
    """Return what the environment of the kernel needs on a processor with more registers than it knows."""
    if "amx_tile" not in Path("/proc/cpuinfo").read_text() or shutil.which("cc") is None:
        return {}
    library, source = folder / "whole_registers.so", Path(__file__).with_name("whole_registers.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def _boot(kernel: Path, init: Path, folder: Path, seconds: float) -> str:
    command = [
        str(kernel),
        "mem=256M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        f"init={init}",
        f"uml_dir={folder}/",
        *("con=null", "con0=null,fd:1", "quiet", "panic=-1"),
    ]
    with (
        open(folder / "console", "w") as console,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd=folder,
            env={**os.environ, **_preloaded(folder)},
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            console.write(f"\nended after {seconds:g} s\n")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return _text(folder / "console")
