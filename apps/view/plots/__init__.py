"""The plots of the view, one a module, and what they have in common (`plot`, `strip`, `cursors`, `places`)."""
