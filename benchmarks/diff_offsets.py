"""The offset between two sound files by syncstart and audio-offset-finder, as JSON, for benchmarks/diff.py --offsets.

python diff_offsets.py A B

Runs in an environment of its own with these packages; both call the program ffmpeg.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    a, b = sys.argv[1:]
    from audio_offset_finder.audio_offset_finder import find_offset_between_files
    from syncstart import file_offset

    found = {"audio-offset-finder": float(find_offset_between_files(a, b)["time_offset"])}
    later, offset = file_offset(in1=a, in2=b, take=60, show=False, quiet=True)
    found["syncstart"] = float(offset) if later == a else -float(offset)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
