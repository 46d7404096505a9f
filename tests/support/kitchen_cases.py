"""A tiny CaptainCook4D in the published layout."""

import json

from reproduction.data.captaincook4d import ANNOTATIONS

TEA = {
    "steps": {"0": "START", "3": "Pour-Pour the tea", "1": "Boil-Boil water", "2": "Warm-Warm the pot", "4": "END"},
    "edges": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]],
}
JAM = {"steps": {"0": "Cook-Cook", "1": "START", "2": "Fill-Fill", "3": "END"}, "edges": [[1, 0], [0, 2], [2, 3]]}


def step(text, start, stop):
    return {"step_id": 7, "start_time": start, "end_time": stop, "description": text, "has_errors": False}


def recording(name, activity, *steps):
    return {"recording_id": name, "activity_id": 1, "activity_name": activity, "steps": [step(*s) for s in steps]}


ENTRIES = {
    "1_1": recording(
        "1_1", "Earl Grey Tea", ("Warm -Warm the pot", 4.0, 6.0), ("Boil-Boil water", 1.0, 3.0),
        ("Pour-Pour the tea", 7.0, 9.0), ("Warm-Warm the pot", 9.0, 9.5),
    ),
    "1_2": recording(
        "1_2", "Earl Grey Tea", ("Warm-Warm the pot", 0.0, 1.0), ("Pour-Pour the tea", 2.0, 3.0),
        ("Boil-Boil water", 2.0, 5.0), ("Sing-Sing a song", 6.0, 7.0),
    ),
    "2_1": recording("2_1", "JAM", ("Cook-Cook", -1.0, -1.0), ("Fill-Fill", 3.0, 8.0)),
}  # fmt: skip


def write_kitchen(place):
    """Two recipes and three recordings."""
    (place / "task_graphs").mkdir()
    for name, graph in (("earlgreytea", TEA), ("jam", JAM)):
        (place / "task_graphs" / f"{name}.json").write_text(json.dumps(graph))
    (place / ANNOTATIONS).write_text(json.dumps(ENTRIES))
    return place
