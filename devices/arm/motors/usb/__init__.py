"""An ODrive on USB: `pipes` finds and opens it, with its native pipes; `serial_port` has those of text."""
