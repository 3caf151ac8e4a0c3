"""HID: report descriptors, their items and usages, and reports made and read by them."""
