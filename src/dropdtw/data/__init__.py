"""Data sets: each is read from the layout in which it is published, from a folder that you name."""
