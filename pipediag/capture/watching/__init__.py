"""Hears of every hand-over of a batch, and tells which loop trains."""
