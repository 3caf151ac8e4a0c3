"""Scene files: shipped scenes, round trips, images, walls, and refusal of invalid or hostile files."""

from __future__ import annotations

import copy
import io
import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from haptics import ConfigurationError, Elliptic, Stribeck
from haptics.scenes.scene import Region, Scene
from haptics.scenes.shapes import Circle, HalfPlane, ImageMap, Polygon, Texture, read_levels
from haptics.scenes.tables import read_scene, scene_from_table, scene_table, shipped_scenes, write_scene
from haptics.scenes.walls import Wall
from tests.haptics.wall_runs import BLOCK, FLOOR, PEG

LEVELS = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
EVERYTHING = Scene(
    Stribeck(1.0, 2.0, 0.1, 0.5),
    (
        Region('disc "one"', Circle((0.01, -0.02), 0.03), Stribeck(2.0, 2.5, 0.2), look="ice"),
        Region("corner", Polygon(((0.0, 0.0), (0.02, 0.0), (0.0, 0.02))), Stribeck(0.5, 0.6, 0.2), texture=Texture()),
        Region(
            "image",
            HalfPlane((0.05, 0.0), (-1.0, 1.0)),
            ImageMap(LEVELS, Stribeck(1.0, 1.0, 0.1), Stribeck(2.0, 2.1, 0.1), (0.0, 0.0), (0.04, 0.03)),
            texture=Texture("noise", 0.2, 0.001, seed=9),
        ),
    ),
    border=0.003,
    name="everything",
    look="wood",
    walls=(Wall(FLOOR), Wall(PEG, 500.0, 0.0, 1.2), Wall(BLOCK, 1e6, 300.0, 0.0)),
)
ANGLED = Scene(Elliptic(1.0, 2.0, 0.5), (Region("a", Circle((0.0, 0.0), 0.01), Elliptic(3.0, 1.0, 0.5)),))
SHIPPED = ("border", "box", "ice-wood-rubber", "relief", "stick-slip-patch")


@pytest.mark.parametrize("scene", [EVERYTHING, ANGLED, *SHIPPED], ids=["everything", "angled", *SHIPPED])
def test_scene_survives_a_file_and_json(scene, tmp_path):
    if isinstance(scene, str):
        assert scene in shipped_scenes()
        scene = read_scene(scene)
    write_scene(scene, tmp_path / "scene.toml")
    assert read_scene(tmp_path / "scene.toml") == scene
    assert scene_from_table(json.loads(json.dumps(scene_table(scene)))) == scene


def test_region_inherits_the_law_of_the_background():
    table = {
        "law": {"name": "stribeck", "kinetic_force_n": 1.0, "static_force_n": 2.0, "stribeck_velocity_m_per_s": 0.1},
        "regions": [{"circle": {"center_m": [0, 0], "radius_m": 0.1}, "law": {"static_force_n": 3.0}}],
    }
    scene = scene_from_table(table)
    assert scene.regions[0].law == Stribeck(1.0, 3.0, 0.1)
    assert scene.regions[0].name == "region 1"


FILE = """\
name = "a scene"
border_m = 0.002
law = { name = "coulomb", force_n = 1.0 }

[[regions]]
name = "disc"
law.force_n = 2.0

[regions.circle]
center_m = [0.0, 0.0]
radius_m = 0.02

[[regions]]
name = "corner"
law = { force_n = 3.0 }
polygon = { points_m = [[0.0, 0.0], [0.02, 0.0], [0.0, 0.02]] }

[[walls]]
half_plane = { point_m = [0.05, 0.0], normal = [-1.0, 0.0] }

[[walls]]
friction = 0.4
circle = { center_m = [0.0, 0.0], radius_m = 0.03 }
stiffness_n_per_m = 2000.0
"""
WRONG: dict[str, tuple[str, str, int, str]] = {
    "radius": ("radius_m = 0.02", "radius_m = -1", 9, "circle.radius = -1"),
    "force": ("force_n = 2.0", "force_n = -2.0", 7, r"region 1, law.force_n = -2.0: must be a finite number"),
    "unknown law": ('"coulomb"', '"coulom"', 3, "unknown law 'coulom'. Did you mean 'coulomb'"),
    "unit": ("border_m", "border_mm", 2, "unknown key 'border_mm'. Did you mean 'border_m'"),
    "no unit": ("law.force_n = 2.0", "law.force = 2.0", 7, r"'region 1, law.force'. Did you mean"),
    "border": ("border_m = 0.002", "border_m = 0.0", 2, "border_m = 0.0: must be"),
    "two shapes": ("law = { force_n = 3.0 }", "law = { force_n = 3.0 }\nhalf_plane = {}", 13, "region 2: has 2 shapes"),
    "two names": ('"corner"', '"disc"', 5, "'disc': two regions"),
    "friction of a wall": ("friction = 0.4", "friction = -0.4", 22, r"wall 2\.friction = -0\.4: must be a finite"),
    "stiffness of a wall": ("2000.0", "0.0", 24, r"wall 2\.stiffness_n_per_m = 0\.0: must be"),
    "no unit of a wall": ("stiffness_n_per_m", "stiffness", 24, r"'wall 2\.stiffness'\. Did you mean 'wall 2\.stiffn"),
    "no shape of a wall": ("half_plane", "shape", 18, "wall 1: has 0 shapes; must have one of"),
}
LAW_AND_IMAGE = """\
law = { name = "coulomb", force_n = 1.0 }
[[regions]]
half_plane = { point_m = [0.0, 0.0], normal = [1.0, 0.0] }
law = { force_n = 2.0 }
image = {}
"""


@pytest.mark.parametrize(("old", "new", "line", "words"), WRONG.values(), ids=WRONG.keys())
def test_invalid_value_is_refused_with_file_line_and_key(old, new, line, words, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(FILE.replace(old, new, 1))
    assert path.read_text() != FILE
    with pytest.raises(ConfigurationError, match=words) as caught:
        read_scene(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 40 + "]" * 40, "nested too deeply"),
        ("law = 3", "law: must be a table"),
        ("", "law is missing"),
        ("regions = 3\nlaw = {name = 'coulomb', force_n = 1.0}", "regions: must be a list"),
        ("regions = [3]\nlaw = {name = 'coulomb', force_n = 1.0}", "region 1: must be a table"),
        ("x = ", "is no TOML"),
        (LAW_AND_IMAGE, "both a law and an image"),
        ("wall = []\nlaw = {name = 'coulomb', force_n = 1.0}", "unknown key 'wall'"),
    ],
)
def test_strange_file_is_refused(text, words, tmp_path):
    path = tmp_path / "strange.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        read_scene(path)


def test_missing_large_or_binary_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"unknown scene 'ice-wood'. Did you mean 'ice-wood-rubber'"):
        read_scene("ice-wood")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_scene(tmp_path / "none.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * 4_000_001)
    with pytest.raises(ConfigurationError, match="too large"):
        read_scene(tmp_path / "large.toml")
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_scene(tmp_path / "bytes.toml")


def test_images_are_read_from_npy_and_netpbm(tmp_path):
    np.save(tmp_path / "a.npy", LEVELS)
    (tmp_path / "b.pgm").write_bytes(b"P5\n# made by hand\n4 3\n255\n" + LEVELS.tobytes())
    (tmp_path / "c.pgm").write_text("P2 4 3 255\n" + " ".join(map(str, LEVELS.ravel())) + "\n")
    for name in ("a.npy", "b.pgm", "c.pgm"):
        assert (read_levels(tmp_path / name) == LEVELS).all(), name
    np.save(tmp_path / "floats.npy", LEVELS.astype(float))
    with pytest.raises(ConfigurationError, match="unsigned bytes"):
        read_levels(tmp_path / "floats.npy")


def test_pictures_are_read_as_grey_levels(tmp_path):
    grey = Image.fromarray(LEVELS)
    for name in ("a.png", "a.tif", "a.bmp"):
        grey.save(tmp_path / name)
        assert (read_levels(tmp_path / name) == LEVELS).all(), name
    grey.save(tmp_path / "a.jpg", quality=100)
    assert np.abs(read_levels(tmp_path / "a.jpg").astype(int) - LEVELS).max() <= 40
    Image.fromarray(LEVELS.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    assert (read_levels(tmp_path / "deep.png") == LEVELS).all()
    Image.new("RGB", (1, 1), (255, 0, 0)).save(tmp_path / "red.png")
    assert read_levels(tmp_path / "red.png") == 76  # 0.299 times 255
    Image.new("LA", (2, 1), (90, 255)).save(tmp_path / "opaque.png")
    assert (read_levels(tmp_path / "opaque.png") == 90).all()


def test_orientation_of_a_photograph_is_applied(tmp_path):
    exif = Image.Exif()
    exif[274] = 6  # turned by 90 degrees
    Image.fromarray(LEVELS).save(tmp_path / "turned.tif", exif=exif)
    assert read_levels(tmp_path / "turned.tif").shape == LEVELS.shape[::-1]


def png(columns, rows):
    """Return a PNG file of grey levels whose data are empty."""
    parts = (b"IHDR" + struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0), b"IDAT", b"IEND")
    chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pgm", b"P5 4 3 255\n1234", "damaged: image file is truncated"),
        ("a.pgm", b"P5 60000 60000 255\n1234", "60000 x 60000 pixels; at most 65536 in all"),
        ("a.png", png(60000, 60000), "60000 x 60000 pixels; at most 65536 in all"),
        ("a.png", png(257, 256), "257 x 256 pixels"),
        ("a.png", png(2, 2), "damaged"),
        ("a.png", saved(Image.effect_noise((40, 40), 64), "PNG")[:200], "damaged"),
        ("a.png", saved(Image.new("LA", (2, 1), (90, 254)), "PNG"), "transparent"),
        ("a.tif", saved(Image.new("F", (2, 1)), "TIFF"), "floating-point"),
        (
            "a.tif",
            saved(Image.new("L", (2, 1)), "TIFF", save_all=True, append_images=[Image.new("L", (2, 1))]),
            "2 images",
        ),
        ("a.pgm", b"P2 2 1 255\n1 256", "damaged"),
        ("a.pgm", b"P2 2 1 255\n1 x", "damaged"),
        ("a.gif", saved(Image.new("L", (2, 1)), "GIF"), "not a PNG, JPEG, TIFF"),
        ("a.png", b"\x89PNG", "not a PNG, JPEG, TIFF"),
        ("a.svg", b"<svg/>", "not a PNG, JPEG, TIFF"),
        ("a.npy", b"\x93NUMPY\x01\x00", "header"),
    ],
)
def test_invalid_image_is_refused(name, data, words, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigurationError, match=words):
        read_levels(tmp_path / name)
    assert Image.MAX_IMAGE_PIXELS  # the limit for other users of the library stays


IMAGE = {
    "corner_m": [0, 0],
    "size_m": [0.1, 0.1],
    "lower": {},
    "upper": {"force_n": 2.0},
    "rows": 1,
    "columns": 3,
    "levels_base64": "AAAA",
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 2}, "has 3 grey levels, not 2 times 3"),
        ({"rows": 10**12}, "no image of 65536"),
        ({"levels_base64": "A" * 10**6}, "no image of 65536"),
        ({"levels_base64": "A*AA"}, "is no base64"),
        ({"file": "other.pgm"}, "must be the name of an image file"),
        ({"rows": 1.0}, "no image"),
    ],
)
def test_image_in_a_recording_is_bounded_and_names_no_file(change, words):
    region = {"half_plane": {"point_m": [0, 0], "normal": [1, 0]}, "image": {**IMAGE, **change}}
    table = {"law": {"name": "coulomb", "force_n": 1.0}, "regions": [region]}
    with pytest.raises(ConfigurationError, match=words):
        scene_from_table(table)
    assert scene_from_table({**table, "regions": [{**region, "image": IMAGE}]}).numbers_at([(0.0, 0.0)])[0, 0] == 1.0


# fmt: off


STRANGE = st.sampled_from(
    [
        None, True, 0, -1, 10**30, 1e308, float("nan"), float("inf"), "", "x\n", "coulomb", [], [1], {}, {"x": 1},
        [[0, 0]],
    ]
).map(copy.deepcopy)


# fmt: on


def places(value, path=()):
    """The places of everything in nested tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in items for place in ((*path, key), *places(one, (*path, key)))]


@given(data=st.data())
@settings(max_examples=75)
def test_mutated_scene_is_valid_or_refused(data):
    table = json.loads(json.dumps(scene_table(EVERYTHING)))
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(places(table)))
        inner = table
        for key in path:
            inner = inner[key]
        if data.draw(st.booleans()) and isinstance(inner, dict):
            inner[data.draw(st.sampled_from(["x", "law", "image", "circle", "force_n"]))] = data.draw(STRANGE)
        elif data.draw(st.booleans()) and isinstance(inner, dict):
            del inner[last]
        else:
            inner[last] = data.draw(STRANGE)
    try:
        scene = scene_from_table(table)
    except ConfigurationError as error:
        assert len(str(error)) < 2000
    else:
        assert np.isfinite(scene.numbers_at([(0.0, 0.0), (0.02, 0.01)])[:, :-1]).all()
