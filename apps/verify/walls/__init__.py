"""Walls: what they did in a recording, solved from its rows; `apps.verify.contact.check` puts it into the equations."""
