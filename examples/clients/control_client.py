"""Remote control of a session from Python: python control_client.py HOST:PORT TOKEN.

Start the session with: haptics run --device virtual-joystick --headless --control websocket
"""

import itertools
import json
import sys

from websockets.sync.client import connect


class Session:
    """Connection to a session; every verb of the remote control is a method."""

    def __init__(self, socket):
        self.socket, self.numbers = socket, itertools.count(1)

    def __getattr__(self, verb):
        def request(**fields):
            number = next(self.numbers)
            self.socket.send(json.dumps({"id": number, "verb": verb, **fields}))
            while (reply := json.loads(self.socket.recv())).get("id") != number:
                pass  # rows of a subscription
            if not reply["ok"]:
                raise ValueError(reply["error"])
            return reply["result"]

        return request


address, token = sys.argv[1:]
with connect(f"ws://{address}/", additional_headers={"Authorization": f"Bearer {token}"}) as socket:
    session = Session(socket)
    print("device:", session.status()["device"])
    tick = session.configure(law={"name": "coulomb", "force": 4.0}, gate=True)["tick"]
    session.mark(marker=1)
    session.wait(seconds=1.0)
    force = session.since(tick=tick, columns=["friction_force_x_n", "friction_force_y_n"])
    print("from tick", tick, "on up to", max(map(abs, force["friction_force_x_n"])), "N along x")
    session.stop()
