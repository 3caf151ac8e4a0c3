"""HID report descriptors, usages, and encoding and decoding of reports."""
