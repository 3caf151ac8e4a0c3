"""Files of other forms than CSV and NPZ are refused with the form and the remedy."""

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calibration.data.files import read_columns
from devices.virtual.hands.csv_table import read_table
from haptics.errors import ConfigurationError

CSV = b"time_s,velocity_rad_per_s,torque_nm\n" + b"".join(b"%d,0.5,1.5\n" % k for k in range(9))
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def archive(*members: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            for member in members:
                file.writestr(member, "x")

    return write


def content(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


WORKBOOK = archive("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    ("name", "write", "form", "remedy"),
    [
        ("knee.csv.gz", content(gzip.compress(CSV)), "a gzip file", "gunzip {path}"),
        ("knee.csv", content(gzip.compress(CSV)), "a gzip file", "rename it to {path}.gz"),
        ("knee.xlsx", WORKBOOK, "an Excel workbook", "save its sheet as CSV"),
        ("knee.csv", WORKBOOK, "an Excel workbook", "save its sheet as CSV"),
        ("knee.xlsx", content(b"PK\x03\x04 cut short"), "an Excel workbook", "save its sheet as CSV"),
        ("knee.xlsx", content(COMPOUND), "an Excel workbook", "save its sheet as CSV"),
        ("knee.xls", content(COMPOUND + bytes(504)), "an Excel workbook", "save its sheet as CSV"),
        ("knee.xls", content(b"\x09\x08\x10\x00\x00\x06"), "an Excel workbook", "save its sheet as CSV"),
        ("knee.zip", archive("knee.csv"), "a ZIP archive", "extract"),
        ("knee.csv", archive("time_s.npy", "torque_nm.npy"), "an NPZ file with another name", "ends with .npz"),
        ("knee.parquet", content(b"PAR1\x15\x04"), "a Parquet file", "convert it to CSV"),
        ("knee.mat", content(b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(128)), "a MAT file", "as CSV"),
        ("knee.mat", content(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128)), "a MAT file", "as CSV"),
        ("knee.mat", content(np.array([0, 9, 3, 0, 7], "<i4").tobytes() + b"time_s\0"), "a MAT file", "as CSV"),
    ],
)
@pytest.mark.parametrize(
    ("read", "readable"),
    [
        (lambda path: read_columns(path, {}), "CSV files, NPZ files and folders of recordings"),
        (read_table, "CSV files"),
    ],
    ids=["calibration", "hand"],
)
def test_a_file_of_another_form_is_refused_with_its_form_and_the_remedy(
    tmp_path: Path,
    name: str,
    write: Callable[[Path], None],
    form: str,
    remedy: str,
    read: Callable[[str], object],
    readable: str,
) -> None:
    path = tmp_path / name
    write(path)
    with pytest.raises(ConfigurationError) as caught:
        read(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: is {form}; only {readable} can be read: ")
    assert remedy.format(path=path) in message
    assert "\n" not in message and message.endswith(".")


@pytest.mark.parametrize("name", ["knee.csv", "knee.txt", "knee.xls", "knee.gz", "knee"])
def test_text_is_read_as_csv_under_any_name(tmp_path: Path, name: str) -> None:
    """Some instruments write text with the suffix .xls."""
    path = tmp_path / name
    path.write_bytes(CSV)
    columns = read_columns(str(path), {}).columns
    assert np.array_equal(columns["time_s"], np.arange(9.0))


def test_other_bytes_are_refused_as_no_text(tmp_path: Path) -> None:
    path = tmp_path / "knee.dat"
    path.write_bytes(b"\xff\xfe\x00\x01" * 100)
    with pytest.raises(ConfigurationError, match=r"knee\.dat: is not a text file"):
        read_columns(str(path), {})
