"""Files from other sources: each is read, or refused in one sentence and without delay."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from haptics import ConfigurationError, files
from haptics.files import parse_toml, read_npz, read_small, read_toml


def refused(action, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        action()
    assert str(caught.value).isprintable()
    assert str(caught.value).endswith(".")


# ---- TOML


BAD_TOML = {
    "a whole number of 5000 digits": ("x = 1" + "0" * 5000, "too many digits"),
    "a hidden large number": ("x = {y = [[1, 1" + "0" * 4000 + "]]}", "beyond 64 bits"),
    "lists nested 2000 deep": ("x = " + "[" * 2000 + "]" * 2000, "nested too deeply"),
    "a key of 2000 parts": ("x" + ".x" * 2000 + " = 1", "nested too deeply"),
    "no TOML": ("x = [", "is no TOML"),
    "a null byte": ("x = '\0'", "is no TOML"),
}


@pytest.mark.parametrize(("text", "complaint"), BAD_TOML.values(), ids=BAD_TOML.keys())
def test_hostile_toml_is_refused(tmp_path, text, complaint):
    refused(lambda: parse_toml(text, "a.toml"), f"^a.toml: .*{complaint}")
    (tmp_path / "a.toml").write_text(text)
    refused(lambda: read_toml(tmp_path / "a.toml"), complaint)


def test_toml_is_read_unchanged(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfx = 9223372036854775807\r\n[a.b]\r\nc = [1.5, true]\r\n")
    assert read_toml(tmp_path / "a.toml") == {"x": 2**63 - 1, "a": {"b": {"c": [1.5, True]}}}


@pytest.mark.parametrize(
    ("name", "complaint"), [("none", "No such file or directory.; make one"), (".", "Is a directory"), ("a\0b", "null")]
)
def test_unreadable_file_is_named_with_a_remedy(tmp_path, name, complaint):
    refused(lambda: read_toml(f"{tmp_path}/{name}", "the file", "make one"), f"^the file: cannot be read.*{complaint}")


def test_endless_file_is_refused_and_pipes_are_read(tmp_path):
    refused(lambda: read_small("/dev/zero"), "^/dev/zero: is too large; must be at most 4 MB")
    os.mkfifo(tmp_path / "pipe")
    assert read_toml(tmp_path / "pipe") == {}
    reader, writer = os.pipe()  # as ``--config <(...)`` of a shell gives one
    os.write(writer, b"x = 3")
    os.close(writer)
    assert read_toml(f"/dev/fd/{reader}") == {"x": 3}
    os.close(reader)


# ---- NPZ


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return os.abort, ()


def damaged(whole, count, end=None):
    """Yield `count` copies of a file with seeded damage before `end`: bytes changed, removed or added, or a cut end."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        data = bytearray(whole)
        for place in rng.integers(0, end or len(whole), rng.integers(1, 4)):
            match rng.integers(4):
                case 0 if end is None:
                    data[place:] = b""
                case 1:
                    data[place : place + 8] = b""
                case 2:
                    data[place:place] = rng.bytes(4)
                case _:
                    data[place : place + 1] = rng.bytes(1)
        yield bytes(data)


def npy(descr, shape, data=b"", order=False, text=None):
    """Return a ``.npy`` file with any header."""
    header = text if text is not None else repr({"descr": descr, "fortran_order": order, "shape": shape})
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin-1") + data


def archive(path, *members):
    with zipfile.ZipFile(path, "w") as file:
        for number, member in enumerate(members):
            file.writestr(f"a{number}.npy", member)
    return path


BAD_ARRAYS: dict[str, bytes] = {
    "objects": npy("|O", (1,), pickle.dumps(Bomb())),
    "columns": npy([("a", "<f8"), ("b", "|O")], (1,), b"\0" * 16),
    "cut short": npy("<f8", (100,), b"\0" * 799),
    "too long": npy("<f8", (100,), b"\0" * 801),
    "a negative shape": npy("<f8", (-1,), b"\0" * 8),
    "a shape of truth values": npy("<f8", (True,), b"\0" * 8),
    "a shape beyond all memory": npy("<f8", (2**62, 2**62)),
    "columns without rows": npy("<f8", (0, 10**30)),
    "a format that is none": npy("<i16", (1,), b"\0" * 16),
    "an unknown format": npy("<f16x", (1,), b"\0" * 16),
    "a header without end": npy("", (), text="(" * 9000),
    "a header too long": npy("", (), text=" " * 20000),
    "a header that calls": npy("", (), text="__import__('os').abort()"),
    "a header of mixed keys": npy("", (), text="{1: 2, 'a': 3, None: 4}"),
    "no header": b"\x93NUMPY\x01",
    "another version": b"\x93NUMPY\x09\x00\x02\x00{}",
    "nothing": b"",
}


@pytest.mark.parametrize("data", BAD_ARRAYS.values(), ids=BAD_ARRAYS.keys())
def test_hostile_arrays_are_refused(tmp_path, data):
    path = archive(tmp_path / "a.npz", data)
    if data == BAD_ARRAYS["an unknown format"]:
        assert read_npz(path) == {}
    else:
        refused(lambda: read_npz(path), r"a\.npz: is not an NPZ file of numbers")


def test_arrays_are_read_unchanged(tmp_path):
    given = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        "c": np.array(3.5),
        "d": np.zeros((0, 4)),
    }
    np.savez_compressed(tmp_path / "a.npz", text=np.array("robot"), **given)
    found = read_npz(tmp_path / "a.npz")
    assert set(found) == set(given)
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable


def test_too_large_archive_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(1_000_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 20_000
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", 7_000_000)
    refused(lambda: read_npz(tmp_path / "bomb.npz"), "more than 1000 arrays or 7 MB")
    many = archive(tmp_path / "many.npz", *[npy("<f8", (0,))] * 1001)
    refused(lambda: read_npz(many), "more than 1000 arrays")


def test_missing_pipe_or_text_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "text.npz").write_bytes(b"hello")
    refused(lambda: read_npz(tmp_path / "none.npz"), "there is no such file")
    refused(lambda: read_npz(tmp_path / "pipe.npz"), "there is no such file")
    refused(lambda: read_npz(tmp_path / "text.npz"), "is not an NPZ file")


def test_damaged_archive_is_read_or_refused(tmp_path):
    file = io.BytesIO()
    np.savez_compressed(file, time=np.arange(50.0), speed=np.ones((50, 2)))
    refusals, path = 0, tmp_path / "a.npz"
    for data in damaged(file.getvalue(), 150):
        path.write_bytes(data)
        try:
            read_npz(path)
        except ConfigurationError as error:
            refusals += 1
            assert "\n" not in str(error)
    assert refusals > 100
