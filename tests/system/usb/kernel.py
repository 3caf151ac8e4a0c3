"""A Linux kernel that is an ordinary process (user-mode Linux), and USB/IP plugs for emulated sticks in it.

The kernel reads the files of this machine and uses this Python. A program inside is root and has the USB stack of the
kernel. Its module ``vhci_hcd`` is a host controller whose wire is a socket: it takes the number of an open socket, the
port, an identity and the speed in its ``attach`` file. The messages follow the USB/IP protocol (kernel's
Documentation/usb/usbip_protocol.rst): 48 bytes of big-endian header, then the data.
"""

from __future__ import annotations

import errno
import lzma
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.processes import ROOT, until
from tests.system.usb.bus import TO_HOST, Bus, Transfer, take

# Environment variable with the path of a kernel, packed by xz or not.
VARIABLE = "HAPTICS_UML_KERNEL"

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
{python} -B -c {inside} {program} >/run/result/out 2>/run/result/err
$b dmesg >/run/result/dmesg
$b poweroff -f
"""


# The first program inside: it provides randomness, for which others would wait for ever, and runs a module.
_INSIDE = """
import fcntl, os, runpy, struct, sys
seed = bytes.fromhex(os.environ.pop("SEED"))
with open("/dev/random", "wb") as device:  # RNDADDENTROPY of linux/random.h
    fcntl.ioctl(device, 0x40085203, struct.pack("<ii", 8 * len(seed), len(seed)) + seed)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def why_not():
    """Return the reason why the kernel cannot run here; empty if it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "user-mode Linux runs on Linux on x86-64 only"
    if not _source().is_file():
        return f"no kernel: {_source()} is missing ({VARIABLE} may name another)"
    if not shutil.which("busybox"):
        return "busybox is missing (Debian package busybox-static)"
    return ""


def _source():
    return Path(os.environ.get(VARIABLE) or _PACKED)


def unpacked(folder):
    """Return the path of the kernel, unpacked into `folder` if it is packed."""
    source = _source()
    if source.suffix != ".xz":
        return source
    program = folder / source.stem
    program.write_bytes(lzma.decompress(source.read_bytes()))
    program.chmod(0o700)
    return program


class KernelAbsent(Exception):
    """The kernel does not start on this machine."""


def run(kernel, program, *arguments, folder, seconds=90.0):
    """Run the module `program` inside for at most `seconds`; return its output, and its errors with the kernel's log.

    Raise `KernelAbsent` if the kernel does not reach its first program. `folder` takes the files of the run.
    """
    init = folder / "init"
    words = {
        "busybox": shutil.which("busybox"),
        "folder": folder,
        "root": ROOT,
        "python": sys.executable,
        "inside": _INSIDE,
        "seed": os.urandom(64).hex(),
    }
    init.write_text(
        _INIT.format(
            **{name: shlex.quote(str(word)) for name, word in words.items()}, program=shlex.join((program, *arguments))
        )
    )
    init.chmod(0o700)
    command = [str(kernel), "mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"]
    command += [f"uml_dir={folder}/", "con=null", "con0=null,fd:1", "quiet", "panic=-1"]
    with open(folder / "console", "w") as log:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        environment = {**os.environ, **_preloaded(folder)}
        with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                log.write(f"\nended after {seconds:g} s\n")
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    console = _text(folder / "console")
    if not (folder / "started").exists():
        raise KernelAbsent(f"the kernel does not start here: {console.strip()[-300:] or 'no output'}")
    return _text(folder / "out"), "\n".join((_text(folder / "err"), _text(folder / "dmesg")[-3000:], console[-3000:]))


def _text(path):
    return path.read_text(errors="replace") if path.is_file() else ""


def _preloaded(folder):
    """Return the environment that the kernel needs on a processor with more registers than it saves."""
    if "amx_tile" not in Path("/proc/cpuinfo").read_text() or shutil.which("cc") is None:
        return {}
    library, source = folder / "whole_registers.so", Path(__file__).with_name("whole_registers.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


# --- USB/IP ----------------------------------------------------------------------------------------------------------

VHCI = Path("/sys/devices/platform/vhci_hcd.0")
FULL_SPEED = 2

SUBMIT, UNLINK, SUBMITTED, UNLINKED = 1, 2, 3, 4
HEADER = 48
_COMMAND = struct.Struct(">5I5i8s")
_UNLINK = struct.Struct(">6I24x")
_SUBMITTED = struct.Struct(">5I5i8x")
_UNLINKED = struct.Struct(">5Ii24x")


class VhciPlug:
    """A stick plugged into the kernel of this machine."""

    def __init__(self, stick, port=0):
        self._stick = stick
        self._port = port
        self.plug()

    def plug(self):
        """Plug the stick in."""
        self._socket, theirs = socket.socketpair()
        self.bus = Bus(self._stick)
        self._pending: dict[int, Transfer] = {}
        with theirs:
            until(lambda: _attach(self._port, theirs.fileno()), f"port {self._port} never became free", 20.0)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def unplug(self):
        """Unplug the stick."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10.0)

    @property
    def bound(self):
        """Whether the kernel's driver has the stick."""
        return any(Path("/sys/bus/usb/drivers/usbhid").glob("*:*"))

    def _serve(self):
        with self._socket:
            with suppress(ConnectionError):  # it was unplugged
                while True:
                    self._handle(take(self._socket, HEADER))
            self.bus.disconnect()

    def _handle(self, header):
        command, number, _, to_host, endpoint, _, length, *_, setup = _COMMAND.unpack(header)
        if command == UNLINK:
            self._unlink(number, _UNLINK.unpack(header)[5])
            return
        address = endpoint | TO_HOST if to_host and endpoint else endpoint
        transfer = Transfer(
            address,
            partial(self._reply, number, bool(to_host)),
            data=b"" if to_host else take(self._socket, length),
            length=length,
            setup=setup if endpoint == 0 else b"",
        )
        with self.bus.lock:
            self._pending[number] = transfer
        self.bus.submit(transfer)

    def _reply(self, number, to_host, status, data):
        self._pending.pop(number, None)
        answer = _SUBMITTED.pack(SUBMITTED, number, 0, 0, 0, status, len(data), 0, 0, 0)
        self._send(answer + data if to_host else answer)

    def _unlink(self, number, victim):
        with self.bus.lock:
            transfer = self._pending.pop(victim, None)
            taken_back = transfer is not None and self.bus.cancel(transfer)
            self._send(_UNLINKED.pack(UNLINKED, number, 0, 0, 0, -errno.ECONNRESET if taken_back else 0))

    def _send(self, message):
        try:
            self._socket.sendall(message)
        except OSError as error:  # the kernel has released an unplugged device
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF):
                raise


def _attach(port, descriptor):
    """Offer the socket to the controller; return False while the port is still releasing the last device."""
    try:
        (VHCI / "attach").write_text(f"{port} {descriptor} {port + 1} {FULL_SPEED}")
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EBUSY):
            return False
        raise
    return True
