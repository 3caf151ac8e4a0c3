"""Demonstrations of the gallery, one module each.

`apps.gallery.command` lists them by name.
"""
