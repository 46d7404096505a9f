"""The Drop-DTW paper: its data sets, experiments, tables and figures, beside the library and not part of its wheel.

`python -m reproduction --help` lists the commands; `make setup` installs what they need. One package per section of the
paper, one for orders of steps, `data/` for data sets in their published layouts, and `common/` for what they share.
"""
