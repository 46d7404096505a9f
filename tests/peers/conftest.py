"""Other libraries as oracles, all of them installed by `make peers` in an environment of their own.

Nothing is collected elsewhere. If one is missing there, pytest collects nothing and fails: no comparison is skipped.
"""

from importlib.util import find_spec

PEERS = ("aeon", "Bio", "dtaidistance", "dtw", "librosa", "parasail", "pysdtw", "torch", "tslearn")

collect_ignore_glob = [] if all(find_spec(name) for name in PEERS) else ["test_*.py"]
