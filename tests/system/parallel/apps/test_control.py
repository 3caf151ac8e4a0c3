"""Remote control of a session: messages, access, and hostile clients."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from apps.control.verbs import MAX_BYTES, VERBS, RequestError, parse, schema
from apps.verification import examine
from haptics.recording.checks import OK
from haptics.recording.recording import Recording
from tests.processes import ROOT, RUN, Application, written

CHROMIUM = shutil.which("chromium")
CLIENTS = ROOT / "examples" / "clients"
SECRET = "a-secret-of-this-test"


class Client:
    """A client of the remote control with the given URL."""

    def __init__(self, url, **options):
        self._stack = ExitStack()
        self.socket = self._stack.enter_context(connect(url, **options))
        self.number = 0

    def request(self, verb, **fields):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "verb": verb, **fields}))
        while (reply := json.loads(self.socket.recv(timeout=30))).get("id") != self.number:
            pass
        return reply

    def result(self, verb, **fields):
        reply = self.request(verb, **fields)
        assert reply["ok"], reply
        return reply["result"]


@contextmanager
def controlled(folder, *options):
    """Run a session with a remote control; yield its application and the address HOST:PORT."""
    (folder / "token").write_text(f"{SECRET}\n")
    arguments = ("--device", "virtual-joystick", "--headless", "--record", str(folder / "recordings"))
    control = ("--control", "websocket=127.0.0.1:0", "--token", str(folder / "token"))
    with written(folder, *RUN, *arguments, *control, *options) as process:
        application = Application(process, folder)
        until = time.monotonic() + 60
        while not (found := re.search(r"http://(127\.0\.0\.1:\d+)/#", application.said)):
            assert time.monotonic() < until, application.said
            time.sleep(0.02)
        yield application, found[1]


def opened(address, token=SECRET, **options):
    """Return a client, once the server accepts connections and the run has begun."""
    until = time.monotonic() + 60
    while True:
        try:
            client = Client(f"ws://{address}/?token={token}", **options)
            break
        except (OSError, EOFError):
            assert time.monotonic() < until
            time.sleep(0.05)
    while not client.request("status")["ok"]:
        assert time.monotonic() < until
        time.sleep(0.05)
    return client


def finished(client, application):
    """Stop the run and return its recording."""
    client.result("stop")
    assert application.application.wait(60) == 0, application.said
    return Recording(Path(application.answer["recording"]))


def test_every_verb_of_a_session(tmp_path):
    presses = [f"2@{second}" for second in range(3, 120, 3)]
    options = ("--hand", "minimum-jerk", "--set", f"hand.presses={presses}")
    with controlled(tmp_path, *options) as (application, address):
        client = opened(address)
        status = client.result("status")
        assert (status["status"], status["device"], status["model"]) == ("running", "virtual-joystick", "C")
        first = client.result("configure", law={"name": "coulomb", "force": 4.0}, gate=True)["tick"]
        second = client.result("configure", law="stribeck", element={"stiffness": 3000.0})["tick"]
        assert client.result("status")["law"]["name"] == "stribeck"
        client.result("mark", marker=7)
        client.result("gate", open=False)
        client.result("gate", open=True)
        assert client.result("wait", seconds=0.2)["tick"] > second > first
        rows = client.result("latest", seconds=0.1, columns=["tick", "position_x_m"])
        assert set(rows) == {"tick", "position_x_m"}
        assert rows["tick"][-1] - rows["tick"][0] >= 90
        assert client.result("since", tick=second, columns=["tick"])["tick"][0] == second
        assert client.result("wait_until", column="tick", above=second + 50, timeout=5.0)["tick"] > second
        assert client.result("wait_until", column="tick", below=-1, timeout=0.05) is None
        assert client.result("wait_for_button", timeout=30.0)["button"] == 2
        assert client.result("certificate") is None
        assert "wall clock" in client.request("advance", seconds=0.1)["error"]
        client.result("subscribe", interval=0.02, columns=["tick"])
        assert json.loads(client.socket.recv(timeout=10))["event"] == "rows"
        recording = finished(client, application)
    versions = recording.rows["settings_version"]
    assert [int(recording.rows["tick"][versions == k][0]) for k in (1, 2)] == [first, second]
    assert 7 in recording.rows["marker"]
    assert set(VERBS) >= {"configure", "stop"}
    found = examine(recording)
    assert (found.mismatches, found.verdict) == (0, OK)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"verb": "fly"}, "verb", "must be one of"),
        ({"verb": "gate"}, "open", "is missing"),
        ({"verb": "gate", "open": 1}, "open", "type boolean"),
        ({"verb": "gate", "open": True, "slowly": 1}, "slowly", "no such field"),
        ({"verb": "mark", "marker": 1.5}, "marker", "type integer"),
        ({"verb": "mark", "marker": 2**80}, "marker", "must be a number"),
        ({"verb": "wait", "seconds": -1}, "seconds", "must be a number"),
        ({"verb": "configure", "law": {"name": "coulomb", "force": -1.0}}, "law.force", "law.force"),
        ({"verb": "configure", "law": {"name": "ice"}}, "", "unknown law"),
        ({"verb": "configure", "element": {"stiffness": "much"}}, "element.stiffness", "type number"),
        ({"verb": "configure", "model": "A"}, "", "admittance"),
        ({"verb": "latest", "seconds": 1, "columns": ["speed"]}, "columns", "is not one of"),
    ],
)
def test_refusal_names_the_field(fields, field, words, control):
    reply = control.request(**fields)
    assert not reply["ok"]
    assert reply["field"] == field
    assert words in reply["error"]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with controlled(tmp_path_factory.mktemp("control"), "--allow-origin", "https://lab.example") as (_, address):
        opened(address)
        yield address


@pytest.fixture
def control(running):
    return opened(running)


@pytest.mark.parametrize(
    ("query", "options", "status"),
    [
        ("", {}, 401),
        ("?token=wrong", {}, 401),
        ("", {"additional_headers": {"Authorization": f"Bearer {SECRET}"}}, 101),
        (f"?token={SECRET}", {"origin": "https://other.example"}, 403),
        (f"?token={SECRET}", {"origin": "https://lab.example"}, 101),
    ],
)
def test_client_needs_token_and_allowed_origin(query, options, status, running):
    try:
        with connect(f"ws://{running}/{query}", **options) as client:
            assert status == client.response.status_code
    except InvalidStatus as error:
        assert error.response.status_code == status


def test_page_and_schema_are_served(running):
    with urllib.request.urlopen(f"http://{running}/") as answer:
        page = answer.read().decode()
    assert "<title>Haptics session</title>" in page
    assert "https://" not in page  # nothing is loaded from elsewhere
    with urllib.request.urlopen(f"http://{running}/control.schema.json") as answer:
        assert json.loads(answer.read()) == json.loads(json.dumps(schema()))
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{running}/etc/passwd")


def memory_of(pid):
    """Return the resident memory of the process tree of `pid` [bytes]."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
            if pid in (int(folder.name), parent):
                total += int((folder / "statm").read_text().split()[1]) * 4096
        except (OSError, ValueError):
            continue
    return total


def hostile(generator):
    """Return a random message that no client should send."""
    verbs = [*VERBS, "fly", None, 3, "", "x" * 300]
    values = [
        None,
        True,
        -1,
        2**70,
        1e308,
        "x" * 1000,
        [],
        {},
        [[]] * 50,
        {"a": {"b": {"c": 1}}},
        ["x"] * 100,
        -0.5,
        "",
    ]
    kind = generator.random()
    if kind < 0.1:
        return generator.choice(["", "{", "[1]", "null", '{"id": 1', "NaN", '"x"', "[" * 5000, '{"a":' * 3000, "\x00"])
    if kind < 0.15:
        return '{"id": 1, "verb": "wait", "seconds": NaN}'
    names = [name for _, fields in VERBS.values() for name in fields]
    message = {"id": generator.choice([1, "a", None, -1, 2**80, [], "x" * 100])}
    may_wait = {"stop", "wait", "advance", "configure", "wait_for_button", "wait_until"}
    message["verb"] = generator.choice([verb for verb in verbs if verb not in may_wait])
    for _ in range(generator.randrange(3)):
        message[generator.choice([*names, "other"])] = generator.choice(values)
    if generator.random() < 0.2:
        message |= {
            "verb": "configure",
            "law": generator.choice([{"name": 3}, {"force": "x"}, [], {"x": {}}, "nothing"]),
        }
    return json.dumps(message)


def test_hostile_messages_are_refused(tmp_path):
    generator = random.Random(7)
    with controlled(tmp_path, "--hand", "minimum-jerk") as (application, address):
        client, other = opened(address), opened(address)
        memory, replies = memory_of(application.application.pid), 0
        for _ in range(300):
            client.socket.send(hostile(generator))
            reply = json.loads(client.socket.recv(timeout=30))
            assert reply["ok"] or reply["error"], reply
            replies += not reply["ok"]
        assert replies > 225
        assert memory_of(application.application.pid) - memory < 50e6
        with pytest.raises(ConnectionClosed):
            other.socket.send("x" * (MAX_BYTES + 1))
            other.socket.recv(timeout=10)
        recording = finished(client, application)
    assert recording.metadata["state"] == "complete"


def test_client_that_does_not_read_delays_nobody(tmp_path):
    with controlled(tmp_path) as (application, address):
        client, slow = opened(address), opened(address)
        slow.socket.send(json.dumps({"id": 1, "verb": "subscribe", "interval": 0.01}))
        begun = time.monotonic()
        while time.monotonic() - begun < 2.0:
            client.result("latest", seconds=0.05)
        assert finished(client, application).metadata["certificate"]["longest_gap_us"] < 0.5e6


class Browser:
    """Headless Chromium with one page, controlled through its debugging protocol."""

    FLAGS = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--window-size=1280,720"),
    )

    def __init__(self, stack, folder):
        command = [CHROMIUM, *self.FLAGS, f"--user-data-dir={folder}", "about:blank"]
        process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        stack.callback(process.kill)
        while not (found := re.search(r"ws://(\S+)/devtools", line := process.stderr.readline())):
            assert line, "Chromium has ended"
        with urllib.request.urlopen(f"http://{found[1]}/json") as answer:
            pages = [page for page in json.loads(answer.read()) if page["type"] == "page"]
        self._socket = stack.enter_context(connect(pages[0]["webSocketDebuggerUrl"], max_size=None))
        self._number = 0

    def call(self, method, **parameters):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while (reply := json.loads(self._socket.recv(timeout=30))).get("id") != self._number:
            pass
        return reply["result"]

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def await_value(self, expression, wanted, timeout=30.0):
        until = time.monotonic() + timeout
        while (value := self.value(expression)) != wanted:
            assert time.monotonic() < until, value
            time.sleep(0.05)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: chromium)")
def test_page_shows_and_stops_the_run(tmp_path):
    with ExitStack() as stack:
        application, address = stack.enter_context(controlled(tmp_path, "--hand", "minimum-jerk"))
        client = opened(address)
        browser = Browser(stack, tmp_path / "browser")
        browser.call("Page.navigate", url=f"http://{address}/#{SECRET}")
        browser.await_value("document.getElementById('state')?.textContent", "running")
        browser.await_value("rows.length > 100", True)
        drawn = "document.getElementById('path').getContext('2d').getImageData(0, 0, 600, 300).data.some((x) => x > 0)"
        browser.await_value(drawn, True)
        client.result("configure", law={"name": "stribeck", "static_force": 3.75})
        browser.await_value("/stribeck: .*static force 3.75/.test(document.getElementById('facts').textContent)", True)
        browser.value("document.getElementById('stop').click()")
        browser.await_value("document.getElementById('state').textContent", "stopped")
        assert "fit" in browser.value("document.getElementById('facts').textContent")
        assert application.application.wait(30) == 0


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (sys.executable, ("control_client.py", "{address}", SECRET)),
        ("node", ("--experimental-websocket", "control_client.mjs", "{address}", SECRET)),
        ("octave-cli", ("--eval", f"control_client('127.0.0.1', {{port}}, '{SECRET}')")),
    ],
    ids=["python", "javascript", "octave"],
)
def test_client_of_the_examples(program, arguments, tmp_path):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    if (
        program == "octave-cli"
        and subprocess.run([path, "--eval", "pkg load instrument-control"], check=False).returncode
    ):
        pytest.skip("Octave has no package instrument-control (Debian: octave-instrument-control)")
    with controlled(tmp_path, "--hand", "minimum-jerk") as (application, address):
        opened(address)
        command = [part.format(address=address, port=address.split(":")[1]) for part in arguments]
        done = subprocess.run([path, *command], cwd=CLIENTS, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        assert "device: virtual-joystick" in done.stdout
        assert application.application.wait(30) == 0


def test_published_schema_accepts_exactly_the_messages_that_the_server_accepts():
    validators = pytest.importorskip("jsonschema.validators")
    validators.Draft202012Validator.check_schema(schema())
    validator = validators.Draft202012Validator(json.loads(json.dumps(schema())))
    generator = random.Random(11)
    accepted = 0
    for text in (hostile(generator) for _ in range(3000)):
        try:
            message = json.loads(text, parse_constant=lambda name: None)
        except (ValueError, RecursionError):
            message = None  # no JSON: there is nothing to validate
        try:
            parse(text)
            ok = True
        except RequestError:
            ok = False
        accepted += ok
        assert ok == (message is not None and validator.is_valid(message)), text
    assert 50 < accepted < 2500


@pytest.mark.skipif(not shutil.which("mcs") or not shutil.which("mono"), reason="Mono is not installed (mono-mcs)")
def test_client_in_csharp(tmp_path):
    program = str(tmp_path / "client.exe")
    subprocess.run(["mcs", "-r:System.Net.Http", f"-out:{program}", str(CLIENTS / "ControlClient.cs")], check=True)
    with controlled(tmp_path, "--hand", "minimum-jerk") as (application, address):
        opened(address)
        done = subprocess.run(
            ["mono", program, address, SECRET], capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count('"ok":true') == 3
        assert application.application.wait(30) == 0


def test_schema_of_the_documentation_is_current():
    assert json.loads((ROOT / "docs" / "control.schema.json").read_text()) == json.loads(json.dumps(schema()))
