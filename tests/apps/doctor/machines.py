"""Machines made of files, and the properties of every finding."""

import subprocess

from apps.doctor.machine import Machine, Severity

ROOT, PERSON = 0, 1000


def write_files(root, files):
    """Write the files of a system under `root` and return `root`."""
    for name, content in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def usb_serial(place, identity, port, **more):
    """Return the files of a USB device with a serial port."""
    vendor, product = identity.split(":")
    folder = f"/sys/bus/usb/devices/{place}"
    files = {"idVendor": f"{vendor}\n", "idProduct": f"{product}\n", f"{place}:1.0/tty/{port}/dev": "166:7\n", **more}
    return {f"/dev/{port}": "", **{f"{folder}/{name}": text for name, text in files.items()}}


def machine(root, files=None, user=PERSON, **facts):
    """Return a machine whose ``/`` is the folder `root` with `files`."""
    write_files(root, files or {})
    given = {"system": "linux", "environment": {}, "groups": frozenset({user}), "record": root, **facts}
    return Machine(root=root, user=user, **given)


def expect(finding, severity, *words):
    """Check a finding: its severity, words in it, and a fix that a shell can parse exactly if one is needed."""
    assert finding.severity == severity, finding
    for word in words:
        assert word in finding.found or word in finding.fix, (word, finding)
    assert finding.found and "\n" not in finding.found and not finding.found.endswith(".")
    assert bool(finding.fix) == (finding.severity is not Severity.OK), finding
    assert is_shell(finding.fix), finding.fix
    return finding


def is_shell(lines):
    """Return True if a shell can parse `lines`; nothing is executed."""
    return subprocess.run(["sh", "-n"], input=lines, text=True, capture_output=True, check=False).returncode == 0
