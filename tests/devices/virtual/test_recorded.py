"""The recorded hand and the CSV files it reads, good and bad."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.common.linkage import FiveBar
from devices.common.workspace import Workspace
from devices.virtual.hands.csv_table import read_table
from devices.virtual.hands.recorded import assignments
from devices.virtual.hands.registry import make_hand
from haptics.errors import ConfigurationError

WORKSPACE = Workspace((-0.1, -0.08), (0.1, 0.08))
ORIGIN = np.zeros(2)
RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "pantograph" / "icube_recording.csv"
GEOMETRY = "# a1=a4=0.1 a2 = a3 = 0.165 a5=0.085 m, q1=2.5656+joint1, q5=0.576+joint2\n"


def recorded(tmp_path, text, **changes):
    path = tmp_path / "path.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return make_hand({"name": "recorded", "file": str(path), **changes}, 0, WORKSPACE)


def position(hand, time):
    sample = hand.sample(time, ORIGIN)
    return sample.x, sample.y


@pytest.mark.parametrize("time_name", ["t", "t_s", "time", "time_s", "Time", " t "])
@pytest.mark.parametrize("names", ["x,y", "x_m,y_m", "position_x,position_y", "px,py", '"x","y"'])
def test_columns_are_found_by_name(tmp_path, time_name, names):
    text = f"# a comment\n\nbuttons,{time_name},{names}\n0,5.0,0.01,0.02\n1,6.0,0.03,0.02\n"
    hand = recorded(tmp_path, text, centre=False)
    assert position(hand, 0.0) == (0.01, 0.02)
    assert position(hand, 1.0) == (0.03, 0.02)
    assert hand.start == (0.01, 0.02)


def test_path_goes_through_its_samples_and_ends_at_rest(tmp_path):
    generator = np.random.default_rng(1)
    times = np.cumsum(generator.uniform(0.05, 0.2, 50))
    path = generator.uniform(-0.05, 0.05, (50, 2))
    rows = "".join(f"{t!r},{x!r},{y!r}\n" for t, (x, y) in zip(times.tolist(), path.tolist(), strict=True))
    hand = recorded(tmp_path, "t,x,y\n" + rows, centre=False)
    for time, point in zip(times - times[0], path, strict=True):
        np.testing.assert_allclose(position(hand, time), point, atol=1e-12)
    for time in (hand.duration, hand.duration + 1e-9, hand.duration + 1e6):
        assert position(hand, time) == tuple(path[-1])
    small = 1e-7
    inner = times[1:-1] - times[0]
    before = np.array([np.subtract(position(hand, t), position(hand, t - small)) for t in inner]) / small
    after = np.array([np.subtract(position(hand, t + small), position(hand, t)) for t in inner]) / small
    np.testing.assert_allclose(before, after, atol=1e-4)
    for end in (0.0, hand.duration - small):
        np.testing.assert_allclose(position(hand, end), position(hand, end + small), atol=1e-11)


@settings(max_examples=12)
@given(
    rows=st.lists(
        st.tuples(st.floats(0.05, 1.0), st.floats(-0.03, 0.03), st.floats(-0.03, 0.03)), min_size=2, max_size=20
    )
)
def test_path_stays_between_neighbouring_samples(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("recorded")
    times = np.cumsum([row[0] for row in rows])
    text = "".join(f"{t!r},{x!r},{y!r}\n" for t, (_, x, y) in zip(times.tolist(), rows, strict=True))
    hand = recorded(folder, "t,x,y\n" + text, centre=False)
    for k in range(len(rows) - 1):
        corners = np.array((rows[k][1:], rows[k + 1][1:]))
        for part in (0.1, 0.5, 0.9):
            point = position(hand, times[k] + part * (times[k + 1] - times[k]) - times[0])
            assert (point >= corners.min(axis=0) - 1e-12).all()
            assert (point <= corners.max(axis=0) + 1e-12).all()


def test_path_is_centred_and_scaled(tmp_path):
    hand = recorded(tmp_path, "t,x,y\n0,1.00,2.00\n1,1.10,2.04\n2,1.05,2.02\n", scale=0.5)
    assert position(hand, 0.0) == pytest.approx((-0.025, -0.01))
    assert position(hand, 1.0) == pytest.approx((0.025, 0.01))
    assert position(hand, 9.0) == pytest.approx((0.0, 0.0))


def test_order_of_the_questions_does_not_matter(tmp_path):
    hand = recorded(tmp_path, "t,x,y\n0,0,0\n1,0.01,0\n2,0.03,0.01\n3,0.02,0\n")
    times = [2.5, 0.2, 1.1, 9.0, 0.0, 2.9]
    assert [position(hand, t) for t in times] == [position(hand, t) for t in reversed(times)][::-1]


def test_joint_angles_go_through_the_linkage(tmp_path):
    hand = recorded(tmp_path, GEOMETRY + "t,joint1,joint2\n0,0,0\n1,0.01,-0.01\n", centre=False, scale=0.1)
    linkage = FiveBar(0.1, 0.165, 0.165, 0.1, 0.085, 2.5656, 0.576)
    expected = 0.1 * linkage.positions([[0.0, 0.0], [0.01, -0.01]])
    np.testing.assert_allclose([position(hand, 0.0), position(hand, 1.0)], expected, rtol=1e-12)


def test_comments_give_chained_numbers():
    given_lines = (
        "a1=a4=0.100 a2=a3=0.165 a5=0.085 m, q1=2.5656+joint1",
        "x=-+0.04; P1=(0,0); joint3=theta2-q1; n=-1e-3",
    )
    expected = {"a1": 0.1, "a4": 0.1, "a2": 0.165, "a3": 0.165, "a5": 0.085, "q1": 2.5656, "n": -1e-3}
    assert assignments(given_lines) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"path\.csv: must hold a line of column names and at least two rows"),
        ("t,x,y\n0,0,0\n", r"at least two rows"),
        ("x,y\n0,0\n1,1\n", r"path\.csv: there is no time column \(one of t, .*'x', 'y'"),
        ("t,a,b\n0,0,0\n1,0,0\n", r"path\.csv: there are no columns for the path .*x/y.*joint1/joint2.*'a', 'b'"),
        ("t,x\n0,0\n1,0\n", r"no columns for the path"),
        ("t,x,y\n0,0,0\n1,0\n", r"path\.csv, line 3: has 2 values for 3 columns"),
        ("t,x,y\n0,0,0\n1,zero,0\n", r"path\.csv, line 3, column 'x': 'zero' is not a finite number"),
        ("#\nt,x,y\n\n0,0,nan\n1,0,0\n", r"path\.csv, line 4, column 'y': 'nan'"),
        ("t,x,y\n0,0,inf\n1,0,0\n", r"column 'y': 'inf'"),
        ("t,x,y\n0,0,0\n1,0,0\n1,0,0\n2,0,0\n", r"path\.csv, line 4: time 1 does not come after 1\."),
        ("t,x,y\n1,0,0\n0,0,0\n", r"line 3: time 0 does not come after 1\."),
        ("t,x,y\n0,0,0\n1,0.3,0\n", r"path\.csv, line 2: the path leaves the workspace.*spans 0\.3 m.*hand\.scale"),
        ("t,x,y\n0,0,0\n0.001,0.05,0\n", r"line 3: the path moves at 50 m/s"),
        ("t,joint1,joint2\n0,0,0\n1,0,0\n", r"lengths in # comment lines.*a1 is missing"),
        ("# a1=0 a2=1 a3=1 a4=1 a5=1\nt,joint1,joint2\n0,0,0\n1,0,0\n", r"path\.csv: linkage\.left_inner = 0\.0"),
        (
            "# a1=a4=0.1 a2=a3=0.01 a5=0.085\nt,joint1,joint2\n0,1.6,1.6\n1,3.1,0\n",
            r"path\.csv, line 3: the linkage cannot|path\.csv, line 4: the linkage cannot",
        ),
        (b"t,x,y\n\xff\xfe0,0\n", r"path\.csv: is not a text file \(byte 6 is not UTF-8\)"),
    ],
)
def test_bad_file_is_refused_naming_the_place(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        recorded(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "missing.csv", ".", "a\0b", "x" * 5000])
def test_file_that_is_not_there_is_refused(name):
    with pytest.raises(ConfigurationError):
        make_hand({"name": "recorded", "file": name}, 0, WORKSPACE)


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.floats(-0.1, 0.1).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(["", "x", "1e999", "0x10", "1_0", "١"]),
)
LINES = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=4).map(",".join),
    st.sampled_from(
        ["t,x,y", "time,px,py", "t,joint1,joint2", "# a1=a2=a3=a4=a5=0.1", "# a1=1e999 a2=0", "#", "", "t,x,y,x"]
    ),
    st.text(max_size=20),
)


def accept_or_refuse(folder, content):
    """Either a hand that gives finite positions inside the workspace, or a ConfigurationError of one line."""
    try:
        hand = recorded(folder, content)
    except ConfigurationError as error:
        assert "path.csv" in str(error)
        return
    for time in (0.0, 1e-3, 0.5, 1.0, 1e6):
        assert (np.abs(position(hand, time)) <= np.array(WORKSPACE.upper) * (1.0 + 1e-12)).all()


@settings(max_examples=75, deadline=None)
@given(lines=st.lists(LINES, max_size=8))
def test_any_text_is_accepted_or_refused(tmp_path_factory, lines):
    accept_or_refuse(tmp_path_factory.getbasetemp(), "\n".join(lines).encode("utf-8", "surrogatepass"))


@settings(max_examples=25, deadline=None)
@given(content=st.binary(max_size=100))
def test_any_bytes_are_accepted_or_refused(tmp_path_factory, content):
    accept_or_refuse(tmp_path_factory.getbasetemp(), content)


@settings(max_examples=75, deadline=None)
@given(
    header=st.sampled_from(["t,x,y", GEOMETRY + "t,joint1,joint2"]),
    rows=st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=2, max_size=5),
)
def test_any_numbers_are_accepted_or_refused(tmp_path_factory, header, rows):
    rows = sorted(rows)
    text = header + "\n" + "\n".join(",".join(repr(value) for value in row) for row in rows)
    accept_or_refuse(tmp_path_factory.getbasetemp(), text)


@pytest.mark.skipif(not RECORDING.exists(), reason="the real recordings are not there: ../shared/data is missing")
def test_real_recording_becomes_a_hand():
    hand = make_hand({"name": "recorded", "file": str(RECORDING)}, 0, WORKSPACE)
    table = read_table(str(RECORDING))
    assert hand.duration == pytest.approx(60.57, abs=0.01)
    points = np.array([position(hand, time) for time in table.times()])
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    np.testing.assert_allclose(middle, (0.0, 0.0), atol=1e-6)
    np.testing.assert_allclose(np.ptp(points, axis=0), (0.00846, 0.01930), atol=1e-5)
