"""Finding the board among the serial ports, and every way a port can be refused."""

import os
import stat

import pytest

from devices.common.bus import serial_port
from devices.pantograph import ports
from haptics.errors import DeviceNotFoundError, DeviceOpenError


def terminal(system, name, identity):
    """Make a terminal as the kernel's file system shows it: its device is an interface of a USB device."""
    interface = system.parent / "usb" / name / "interface"
    interface.mkdir(parents=True)
    vendor, product = identity.split(":")
    (interface.parent / "idVendor").write_text(f"{vendor}\n")
    (interface.parent / "idProduct").write_text(f"{product}\n")
    (system / name).mkdir(parents=True)
    (system / name / "device").symlink_to(interface)


@pytest.fixture
def system(tmp_path):
    folder = tmp_path / "tty"
    folder.mkdir()
    terminal(folder, "ttyACM0", "0403:6001")
    (folder / "ttyACM7").mkdir()  # behind no USB device
    return folder


def test_the_only_board_is_found_among_other_devices(system):
    terminal(system, "ttyACM3", "2341:804D")
    assert ports.find_port(system) == "/dev/ttyACM3"


def test_no_board_is_said_so_and_strangers_are_left_alone(system):
    with pytest.raises(DeviceNotFoundError, match=r"no hAPI board .*device\.emulated=true"):
        ports.find_port(system)


def test_several_boards_must_be_chosen_from(system):
    terminal(system, "ttyACM1", "2341:003e")
    terminal(system, "ttyACM2", "03eb:2157")
    with pytest.raises(DeviceOpenError, match=r"device\.port=/dev/ttyACM1 or /dev/ttyACM2"):
        ports.find_port(system)


def test_missing_port_is_not_found():
    with pytest.raises(DeviceNotFoundError, match="there is no /dev/ttyACM99"):
        ports.open_port("/dev/ttyACM99")


def test_what_is_no_serial_port_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(DeviceOpenError, match="no serial port"):
        ports.open_port(str(file))
    assert file.read_text() == "x"


def test_a_port_that_is_in_use_is_refused_and_can_be_had_afterwards():
    master, slave = os.openpty()
    path = os.ttyname(slave)
    os.close(slave)
    first = ports.open_port(path)
    with pytest.raises(DeviceOpenError, match="another"):
        ports.open_port(path)
    os.close(first)
    os.close(ports.open_port(path))
    os.close(master)


@pytest.mark.parametrize(
    ("number", "remedy"), [(13, "usermod -aG dialout"), (16, "fuser -v"), (5, "Input/output error")]
)
def test_a_refusal_names_its_remedy(number, remedy, monkeypatch):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(serial_port.os, "open", refuse)
    with pytest.raises(DeviceOpenError, match=remedy):
        ports.open_port("/dev/ttyACM0")


def test_a_port_passes_all_bytes_as_they_are():
    master, slave = os.openpty()
    path = os.ttyname(slave)
    os.close(slave)
    port = ports.open_port(path)
    assert stat.S_ISCHR(os.fstat(port).st_mode)
    every = bytes(range(256))
    os.write(port, every)
    os.write(master, every)
    assert os.read(master, 300) == every
    assert os.read(port, 300) == every
    os.close(port)
    os.close(master)
