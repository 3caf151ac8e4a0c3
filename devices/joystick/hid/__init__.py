"""HID report descriptors, their items and usages, and encoding and decoding of reports."""
