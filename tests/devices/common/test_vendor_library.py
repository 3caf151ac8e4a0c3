"""Finding and loading a maker's library: the order of places, and one line for every reason that it cannot be used."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from devices.common.vendor_library import VendorLibrary
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError

SDK = VendorLibrary(
    "puck", "Puck SDK", ("libpuck.so", "libpuk.so"), ("PUCKSDK", "PUCK_HOME"), folders=("lib/release", "lib")
)
COS = {"cos": (ctypes.c_double, (ctypes.c_double,))}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in SDK.variables:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def real():
    """The path of a real library, the C library's mathematics."""
    ctypes.CDLL("libm.so.6")
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in lines if "/libm.so" in line or "/libm-" in line)


@pytest.fixture
def sdk(tmp_path, real):
    """A folder like the maker's, with a version in the file name."""
    folder = tmp_path / "sdk-3.14"
    (folder / "lib" / "release").mkdir(parents=True)
    shutil.copy(real, folder / "lib" / "release" / "libpuck.so.3")
    return folder


def spoilt(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def test_functions_have_their_types(sdk):
    library = SDK.load(str(sdk), COS, {"sin": COS["cos"], "absent": (None, ())})
    assert library.cos(0.0) == 1.0 and library.sin.restype is ctypes.c_double
    assert not hasattr(library, "absent")


def test_setting_precedes_variables_and_variables_their_successors(sdk, tmp_path, monkeypatch):
    file = sdk / "lib" / "release" / "libpuck.so.3"
    other = spoilt(tmp_path / "other" / "libpuck.so", b"")
    assert SDK.find(str(sdk)) == SDK.find(str(file)) == SDK.find(str(sdk / "lib" / "release")) == file
    monkeypatch.setenv("PUCK_HOME", str(sdk))
    assert SDK.find() == file
    monkeypatch.setenv("PUCKSDK", str(other.parent))
    assert SDK.find() == other
    assert SDK.find(str(sdk)) == file


def test_file_may_be_named_by_a_variable_and_relative_to_the_present_folder(sdk, monkeypatch):
    file = sdk / "lib" / "release" / "libpuck.so.3"
    monkeypatch.setenv("PUCKSDK", str(file))
    assert SDK.find() == file
    monkeypatch.chdir(file.parent)
    for place in (file.name, "."):  # the loader would search for a name without a folder elsewhere
        assert SDK.find(place) == file
        assert SDK.load(place, COS).cos(0.0) == 1.0


def test_newest_version_and_preferred_name_are_chosen(sdk):
    release = sdk / "lib" / "release"
    for name in ("libpuck.so.3.9.1", "libpuck.so.3.10.0", "libpuk.so.4", "libpuck.so.bak"):
        spoilt(release / name, b"")
    assert SDK.find(str(sdk)).name == "libpuck.so.3.10.0"
    usual = VendorLibrary("puck", "Puck SDK", ("libpuck.so",), (), usual=(str(sdk.parent / "sdk-*"),))
    spoilt(sdk.parent / "sdk-3.9" / "lib" / "libpuck.so", b"")
    spoilt(sdk / "lib" / "libpuck.so", b"")
    assert usual.find().parent == sdk / "lib"


def test_missing_sdk_is_one_line():
    with pytest.raises(DeviceNotFoundError, match=r"puck: the Puck SDK is not installed.*PUCKSDK") as seen:
        SDK.load("", COS)
    assert "\n" not in str(seen.value) and "device.emulated=true" in str(seen.value)


@pytest.mark.parametrize(("exists", "words"), [(False, "does not exist"), (True, r"has no libpuck\.so or libpuk\.so")])
def test_wrong_path_names_its_source(tmp_path, monkeypatch, exists, words):
    place = tmp_path / "nowhere"
    if exists:
        place.mkdir()
    with pytest.raises(ConfigurationError, match=rf"device\.library = '{place}': {words}; .*folder of the Puck SDK"):
        SDK.load(str(place), COS)
    monkeypatch.setenv("PUCK_HOME", str(place))
    with pytest.raises(ConfigurationError, match=f"PUCK_HOME = '{place}': {words}"):
        SDK.load("", COS)


def test_folder_that_may_not_be_read_is_said(sdk, monkeypatch):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as closed:
        closed.setattr("os.access", lambda path, mode: False)
        with pytest.raises(ConfigurationError, match=r"library = .*lib': may not be read .*: give this user access"):
            SDK.load(str(sdk / "lib"), COS)
    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr("os.path.isfile", lambda path: False)
    with pytest.raises(ConfigurationError, match=r"device\.library = .*: may not be read .*: give this user access"):
        SDK.load(str(sdk / "lib" / "release" / "libpuck.so.3"), COS)


NOT_FOUND = "{}: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("missing", "words"),
    [("libdep.so.1", r"puck: libpuck\.so\.3 cannot be loaded: it needs libdep\.so\.1, which is not installed"),
     ("libpuck.so.3", "puck: the Puck SDK is not installed, or not found: install it from its maker")],
)  # fmt: skip
def test_library_that_the_loader_finds_by_its_version_has_its_own_error(monkeypatch, missing, words):
    def refuse(name):
        raise OSError(NOT_FOUND.format(missing if name == "libpuck.so.3" else name))

    monkeypatch.setattr("devices.common.vendor_library.find_library", lambda stem: f"lib{stem}.so.3")
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises((DeviceOpenError, DeviceNotFoundError), match=words):
        SDK.load("", COS)


def test_library_is_loaded_by_the_version_that_the_loader_knows(monkeypatch, real):
    load = ctypes.CDLL

    def find(name):
        if name != "libpuck.so.3":
            raise OSError(NOT_FOUND.format(name))
        return load(real)

    monkeypatch.setattr("devices.common.vendor_library.find_library", lambda stem: f"lib{stem}.so.3")
    monkeypatch.setattr(ctypes, "CDLL", find)
    assert SDK.load("", COS).cos(0.0) == 1.0


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xf7\x00", r"is for processor 247 \(64 bits\), but this Python"),
        (b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00", r"is for x86 \(32 bits\), but this Python"),
        (b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x28\x00", r"is for ARM armhf \(32 bits\), but this Python"),
        (b"MZ" + bytes(30), "is not a shared library for Linux"),
        (b"", "is not a shared library for Linux"),
    ],
)
def test_other_architecture_is_read_from_the_header(tmp_path, head, words):
    file = spoilt(tmp_path / "libpuck.so", head)
    with pytest.raises(DeviceOpenError, match=f"puck: {file} {words}"):
        SDK.load(str(file), COS)


def test_damaged_library_gives_the_loaders_reason(sdk):
    file = sdk / "lib" / "release" / "libpuck.so.3"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(DeviceOpenError, match=f"puck: {file} cannot be loaded: (.*)install the Puck SDK again") as seen:
        SDK.load(str(sdk), COS)
    assert str(seen.value).count(str(file)) == 1


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("libusb-1.0.so.0: cannot open shared object file: No such file or directory", "it needs libusb-1.0.so.0, .*"),
        ("{}: version `GLIBC_9.9' not found (required by {})", "this system is too old for it .*older version of the"),
        ("{}: undefined symbol: usb_open", "undefined symbol: usb_open: .*install the Puck SDK again"),
    ],
)
def test_reasons_of_the_loader_have_their_remedies(sdk, monkeypatch, reason, words):
    file = sdk / "lib" / "release" / "libpuck.so.3"

    def refuse(path):
        raise OSError(reason.format(path, path))

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises(DeviceOpenError, match=f"puck: {file} cannot be loaded: {words}"):
        SDK.load(str(sdk), COS)


def test_missing_function_is_named(sdk):
    with pytest.raises(DeviceOpenError, match=r"libpuck\.so\.3 has no function puckOpen, puckRead: .*newer version"):
        SDK.load(str(sdk), {**COS, "puckOpen": (None, ()), "puckRead": (None, ())})
    with pytest.raises(DeviceOpenError, match=r"no function puck0, puck1, puck2 and 7 more: "):
        SDK.load(str(sdk), {f"puck{k}": (None, ()) for k in range(10)})


def test_denied_permission_says_what_to_do(sdk, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DeviceOpenError, match=r"may not be read \(permission denied\): run: sudo chmod a\+rX"):
        SDK.load(str(sdk), COS)


def test_names_of_processors_distinguish_both_kinds_of_arm(tmp_path, monkeypatch):
    file = spoilt(tmp_path / "libpuck.so", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00")
    python = spoilt(tmp_path / "python", b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x28\x00")
    monkeypatch.setattr("devices.common.vendor_library.sys.executable", str(python))
    words = r"is for ARM aarch64 \(64 bits\), but this Python is for ARM armhf \(32 bits\)"
    with pytest.raises(DeviceOpenError, match=words):
        SDK.load(str(file), COS)
