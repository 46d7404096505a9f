"""`speech.sync` against enumeration, by its laws, and the files that it is written to."""

import json
import re
from itertools import combinations

import numpy as np
import pytest

from dropdtw import solve, speech
from dropdtw.speech import reading
from dropdtw.speech.sounds import Sounds, distances, parts_of, sound
from dropdtw.text import read_subtitles

ONE_TO_ONE = {"method": "needleman_wunsch"}
TEXT = [
    "The old ferry leaves at seven in the morning.",
    "Nobody knows why the captain whistles.",
    "Eleven passengers carry baskets of lemons!",
    "By noon the harbor smells of tar and oranges.",
    "Then a bell rings twice, and everybody goes home.",
]


def spoken(*lines, start=1.0):
    """The words of lines that are read without a mistake: 0.3 s each, 0.1 s apart, 0.5 s after a line."""
    found = []
    for line in lines:
        for word in line.split():
            found.append(speech.SpokenWord(round(start, 3), round(start + 0.3, 3), word))
            start += 0.4
        start += 0.4
    return found


def times(found):
    return [(s.start, s.stop) for s in found.sentences]


# --- the alignment, against all alignments --------------------------------------------------------------------------


def alignments(K, N):
    """All sets of pairs, one-to-one and in order."""
    for n in range(min(K, N) + 1):
        for rows in combinations(range(K), n):
            for columns in combinations(range(N), n):
                yield list(zip(rows, columns, strict=True))


def price(pairs, C):
    """The cost of a set of pairs: its matches, what is left out, and each run of that."""
    K, N = C.shape
    total = sum(C[i, j] for i, j in pairs)
    for (i, j), (k, m) in zip([(-1, -1), *pairs], [*pairs, (K, N)], strict=True):
        for left_out in (k - i - 1, m - j - 1):
            total += reading.DROP * left_out + reading.OPENING * (left_out > 0)
    return total


@pytest.mark.parametrize("seed", range(30))
def test_pairs_and_probabilities_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    words = ["night", "knight", "kite", "of", "harbor", "harbour", "lemon"]
    text, heard = (rng.choice(words, rng.integers(1, 6)).tolist() for _ in range(2))
    sounds = Sounds(text, heard)
    C = sounds.table[sounds.z][:, sounds.x].astype(float)
    found = list(alignments(*C.shape))
    costs = np.array([price(pairs, C) for pairs in found])
    pairs, cost = reading.aligned(sounds, lambda done, total: None)
    assert cost == pytest.approx(costs.min(), abs=1e-4)
    assert price(list(map(tuple, pairs.tolist())), C) == pytest.approx(costs.min(), abs=1e-4)
    weights = np.exp(-(costs - costs.min()))
    weights /= weights.sum()
    expected = [sum(w for w, these in zip(weights, found, strict=True) if tuple(p) in these) for p in pairs.tolist()]
    np.testing.assert_allclose(reading.probabilities(sounds, pairs), expected, atol=1e-5)


def apart(a, b):
    """The edit distance of two strings, by recursion."""
    if not a or not b:
        return float(len(a) + len(b))
    kinds = ("aeiou", "bp", "dt", "gkj", "sx", "fw", "mn", "lr")
    alike = 0.5 if any(a[0] in kind and b[0] in kind for kind in kinds) else 1.0
    here = apart(a[1:], b[1:]) + (0.0 if a[0] == b[0] else alike)
    return min(here, apart(a[1:], b) + 1, apart(a, b[1:]) + 1)


def test_distances_of_sounds_are_those_of_a_recursion():
    rng = np.random.default_rng(4)
    words = ["".join(rng.choice(list("abdeimnty"), rng.integers(1, 6))) for _ in range(80)]
    here, there = words[:40], words[40:]
    expected = [apart(a, b) / max(len(a), len(b)) for a, b in zip(here, there, strict=True)]
    np.testing.assert_allclose(distances(here, there), expected)


def test_long_texts_are_aligned_in_strips_with_the_same_result():
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("bdfgklmnprst"), 5)) for _ in range(700)]
    text = rng.choice(words, 4300).tolist()
    heard = [*text[:1500], *text[1600:3000], "lemon", "tree", "grove", *text[3000:]]
    sounds = Sounds(text, heard)
    C = sounds.table[sounds.z][:, sounds.x]
    pairs, cost = reading.aligned(sounds, lambda done, total: None)
    assert cost == pytest.approx(price(list(map(tuple, pairs.tolist())), C), rel=1e-5)
    whole = solve(C, reading.DROP, reading.DROP, open_x=reading.OPENING, open_z=reading.OPENING, **ONE_TO_ONE)
    assert cost == pytest.approx(whole.cost, rel=1e-5)
    assert (pairs[:, 1] - pairs[:, 0]).tolist().count(-100) >= 1300


def test_probabilities_of_stretches_are_those_of_the_whole(monkeypatch):
    rng = np.random.default_rng(2)
    words = ["".join(rng.choice(list("bdfgklmnprst"), 3)) for _ in range(12)]
    text = rng.choice(words, 120).tolist()
    heard = [w for w in text if rng.random() < 0.8]
    sounds = Sounds(text, heard)
    pairs, _ = reading.aligned(sounds, lambda done, total: None)
    monkeypatch.setattr(reading, "STEPS", 1000)
    whole = reading.probabilities(sounds, pairs)
    monkeypatch.setattr(reading, "STEPS", 10)
    monkeypatch.setattr(reading, "MARGIN", 40)
    np.testing.assert_allclose(reading.probabilities(sounds, pairs), whole, atol=0.02)
    assert whole.min() < 0.9  # there is something to get wrong


def test_a_word_far_from_all_others_is_taken_for_chance():
    letters = "bcdfghklmnprstvw"
    text, heard = ([f"{a}{v}{b}{a}" for a in letters for b in letters[:4]] for v in "ao")
    heard[40] = text[3]
    sounds = Sounds(text, heard)
    alone = np.array([[3, 40]])
    assert reading.believed(sounds, alone).tolist() == [False]
    heard[:20] = text[:20]
    sounds = Sounds(text, heard)
    among = np.array([[k, k] for k in range(20)])
    assert reading.believed(sounds, among).all()
    assert reading.believed(sounds, among[:0]).tolist() == []


@pytest.mark.parametrize(("end", "begin"), [(8, 1), (7, 1), (8, 2)])
def test_a_sentence_that_is_read_twice_with_mistakes_is_timed_in_one_piece(end, begin):
    """Its end was misheard in one reading, and its beginning in the other: the best alignment takes a part of each."""
    words = TEXT[3].split()
    readings = [*words[:end], *["blah"] * (9 - end)], [*["uh"] * begin, *words[begin:]]
    found = speech.sync(" ".join(TEXT), spoken(*TEXT[:3], *map(" ".join, readings), *TEXT[4:])).sentences
    assert 2.4 < found[3].stop - found[3].start < 4.0
    assert found[3].start >= found[2].stop


# --- sounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("twenty-one", "21"), ("nineteen eighty-four", "1984"), ("two thousand twenty six", "2026"),
        ("three point one four", "3.14"), ("one thousand two hundred", "1,200"), ("twenty third", "23rd"),
        ("Mister O'Neil", "Mr. O’NEIL"), ("fifty percent", "50%"), ("café", "CAFE"), ("nineteen hundred", "1900"),
        ("nineteen oh five", "1905"), ("five dollars", "$5"), ("fortieth", "40th"), ("two billion", "2000000000"),
    ],
)  # fmt: skip
def test_what_is_spoken_alike_has_the_same_parts(written, said):
    assert [p for w in written.split() for p in parts_of(w)] == [p for w in said.split() for p in parts_of(w)]


def test_words_that_sound_alike_cost_less_than_others():
    sounds = Sounds(["knight", "colour", "harbor"], ["night", "color", "harbor", "lemon"])
    assert sound("knight") == sound("night")
    assert sounds.table[2, 2] < sounds.table[0, 0] < 0
    assert sounds.table[1, 1] < 0
    assert (sounds.table[:, 3] > 0).all()


# --- laws of the whole ------------------------------------------------------------------------------------------------


def test_a_text_that_is_read_as_it_is_has_exactly_these_times():
    said = spoken(*TEXT)
    found = speech.sync(" ".join(TEXT), said)
    assert [(w.text, w.start, w.stop) for s in found.sentences for w in s.words] == [(*w[2:], *w[:2]) for w in said]
    assert times(found) == [(s.words[0].start, s.words[-1].stop) for s in found.sentences]
    assert found.extra == ()
    assert found.unread == ()
    assert min(s.confidence for s in found.sentences) > 0.95


@pytest.mark.parametrize("gone", range(len(TEXT)))
def test_a_sentence_that_is_left_out_is_not_read(gone):
    found = speech.sync(" ".join(TEXT), spoken(*(line for k, line in enumerate(TEXT) if k != gone)))
    assert [s.index for s in found.unread] == [gone]
    assert found.unread[0].confidence > 0.8
    assert all(word.start is None for word in found.unread[0].words)


@pytest.mark.parametrize("at", range(len(TEXT) + 1))
def test_what_is_not_in_the_text_is_extra(at):
    said = "please silence every telephone before we continue"
    lines = [*TEXT[:at], said, *TEXT[at:]]
    found = speech.sync(" ".join(TEXT), spoken(*lines))
    (extra,) = found.extra
    assert (extra.text, extra.after, extra.repeats) == (said, at - 1, None)
    assert (extra.start, extra.stop) == (spoken(*lines[: at + 1])[-7].start, spoken(*lines[: at + 1])[-1].stop)
    assert found.unread == ()


@pytest.mark.parametrize("cut", [3, 9])
def test_a_sentence_that_is_begun_twice_is_timed_in_one_piece(cut):
    begun = " ".join(TEXT[3].split()[:cut])
    said = spoken(*TEXT[:3], begun, *TEXT[3:])
    found = speech.sync(" ".join(TEXT), said)
    readings = [said[k].start for k in range(len(said)) if said[k].text == "By"]
    assert found.sentences[3].start in readings[-1:] if cut == 3 else readings
    assert found.sentences[3].stop - found.sentences[3].start == pytest.approx(9 * 0.4 - 0.1)
    assert [e.repeats for e in found.extra] == [3]


def test_times_move_with_the_recording():
    found, later = (speech.sync(" ".join(TEXT), spoken(*TEXT[1:], start=start)) for start in (1.0, 61.0))
    assert times(found)[0] == times(later)[0] == (None, None)
    np.testing.assert_allclose(times(later)[1:], np.add(times(found)[1:], 60))


def test_case_punctuation_and_digits_do_not_matter():
    plain = [w._replace(text=w.text.lower().strip(".,!")) for w in spoken(*TEXT)]
    assert times(speech.sync(" ".join(TEXT), plain)) == times(speech.sync(" ".join(TEXT), spoken(*TEXT)))
    digits = [w._replace(text={"seven": "7", "Eleven": "11"}.get(w.text, w.text)) for w in spoken(*TEXT)]
    assert times(speech.sync(" ".join(TEXT), digits)) == times(speech.sync(" ".join(TEXT), spoken(*TEXT)))


def test_misheard_words_do_not_move_a_sentence():
    wrong = {"ferry": "fairy", "whistles": "thistles", "Nobody": "no", "oranges.": "arches", "Then": "than"}
    said = [w._replace(text=wrong.get(w.text, w.text)) for w in spoken(*TEXT)]
    assert times(speech.sync(" ".join(TEXT), said)) == times(speech.sync(" ".join(TEXT), spoken(*TEXT)))


def test_a_word_that_was_not_heard_gets_its_usual_time():
    said = spoken(*TEXT)
    first = next(k for k, w in enumerate(said) if w.text == "Nobody")
    found = speech.sync(" ".join(TEXT), said[:first] + said[first + 1 :])
    assert found.sentences[1].start == pytest.approx(said[first].start, abs=0.3)
    assert found.sentences[1].words[0].start is None


# --- nothing to find --------------------------------------------------------------------------------------------------

OTHER = [
    "Knead the dough until it feels smooth under your fingers.",
    "Cover it with a cloth and let it rest for an hour.",
    "In the meantime heat the oven and grease a tin.",
    "Bake the loaf until the crust is brown.",
]


def test_nothing_is_timed_if_another_text_is_read():
    found = speech.sync(" ".join(TEXT), spoken(*OTHER))
    assert len(found.unread) == len(TEXT)
    assert len(found.extra) == 1
    assert all(w.start is None for s in found.sentences for w in s.words)
    assert speech.write_reading(found, "srt") == ""


def test_nothing_heard_and_nothing_written_are_errors(monkeypatch):
    with pytest.raises(ValueError, match="nothing was heard in the recording"):
        speech.sync("A text.", [])
    with pytest.raises(ValueError, match="the text has no words"):
        speech.sync("…\n\n---\n", spoken("hello"))
    monkeypatch.setattr(reading, "LONGEST", 200)
    with pytest.raises(ValueError, match="give at most 200"):
        speech.sync("a " * 201, spoken("hello"))


def test_an_interrupt_stops_it():
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("bdfgklmnprst"), 5)) for _ in range(50)]
    text = rng.choice(words, 4200).tolist()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        speech.sync(" ".join(text), spoken(" ".join(text)), progress=stop)


def test_markdown_is_read_as_text():
    text = "---\ntitle: x\n---\n# A *title*\n\n- one `thing`\n- [two](http://x.y) things\n\n```\ncode\n```\n> said\n"
    assert [line for _, line in reading.sentences_of(text)] == ["A title", "one thing", "two things", "said"]


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    """A reading with a sentence that is left out, one that is added, and names that files must escape."""
    text = [TEXT[0], 'She wrote "a < b" & left.', *TEXT[1:]]
    return speech.sync("\n\n".join(text), spoken(TEXT[0], "she wrote a b and left", *TEXT[2:4], *OTHER[:1], TEXT[4]))


def test_subtitles_can_be_read_back(found):
    read = [s for s in found.sentences if s.read]
    assert len(read) == 5
    for kind in ("srt", "vtt"):
        cues = read_subtitles(speech.write_reading(found, kind))
        assert [(c.start, c.stop) for c in cues] == [(s.start, s.stop) for s in read]
    words = speech.read_transcript(speech.write_reading(found, "vtt")).words
    starts = [w.start for s in read for w in s.words if w.start is not None]
    assert [w.start for w in words] == starts


def test_json_holds_everything(found):
    data = json.loads(speech.write_reading(found, "json"))
    assert [s["start"] for s in data["sentences"]] == [s.start for s in found.sentences]
    assert data["sentences"][2]["words"][0] == {"text": "Nobody", "start": None, "stop": None, "probability": 0.0}
    assert data["extra"][0]["text"] == OTHER[0]


def test_textgrid_has_tiers_without_gaps(found):
    text = speech.write_reading(found, "textgrid")
    tiers = re.split(r"item \[\d\]:", text)[1:]
    assert [re.search(r'name = "(.*)"', tier)[1] for tier in tiers] == ["sentences", "words", "not in the text"]
    for tier in tiers:
        spans = [(float(a), float(b)) for a, b in re.findall(r"xmin = (\S+)\n\s+xmax = (\S+)\n\s+text", tier)]
        assert spans[0][0] == 0
        assert [a for a, _ in spans[1:]] == [b for _, b in spans[:-1]]
        assert spans[-1][1] == found.duration
    assert 'She wrote ""a < b"" & left.' in tiers[0]


def test_the_page_shows_all_sentences_and_runs_nothing_of_theirs(found):
    pytest.importorskip("jinja2")
    page = speech.write_reading(found, "html", speech.Page("Fish & <chips>", "my%20talk%20%231.mp3"))
    assert "<title>Fish &amp; &lt;chips&gt;</title>" in page
    assert '<audio id="recording" src="my%20talk%20%231.mp3"' in page
    assert '<span data-at="5.8">&#34;a &lt;</span>' in page
    assert page.count('class="sentence unread"') == len(found.unread) == 1
    assert page.count('class="extra"') == 1
    assert "http" not in page
    assert "1 passage not in the text" in page
    assert "said again" not in page
    assert "Click a sentence to play from there" in page
    silent = speech.write_reading(found, "html")
    assert "No recording was given, so nothing plays." in silent
    assert not re.search(r"<audio|tabindex=|href=|class=\"plays\"|Click", silent)
    assert "<video" in speech.write_reading(found, "html", speech.Page("x", "a.MP4"))


def test_the_page_tells_repeats_from_additions_and_warns_of_another_text():
    pytest.importorskip("jinja2")
    again = speech.sync("\n\n".join(TEXT[:3]), spoken(*TEXT[:2], OTHER[0], TEXT[1], TEXT[2]))
    assert {e.repeats is None for e in again.extra} == {True, False}
    page = speech.write_reading(again, "html")
    assert "1 passage not in the text" in page
    assert "1 said again" in page
    assert "belong together" not in page
    page = speech.write_reading(speech.sync(TEXT[0], spoken(*OTHER)), "html", speech.Page(TEXT[0]))
    assert "No sentence is read. Do the text and the recording belong together?" in page


def test_an_unknown_format_is_refused(found):
    with pytest.raises(ValueError, match=r"the format is 'str'; did you mean 'srt'"):
        speech.write_reading(found, "str")


def test_pauses_do_not_move_a_sentence_past_its_own_words():
    """The words may be those of another version, in which somebody speaks during this recording's pauses."""
    said = enumerate(["it", "was", "a", "cold", "night"])
    heard = [speech.SpokenWord(0.5 + 0.4 * k, 0.8 + 0.4 * k, word) for k, word in said]
    alone, there = (speech.sync("It was a cold night.", heard, pauses=p).sentences[0] for p in (None, [[0.0, 3.3]]))
    assert (there.start, there.stop) == (alone.start, alone.stop)
    near = speech.sync("It was a cold night.", heard, pauses=[[0.0, 0.6], [2.3, 3.0]]).sentences[0]
    assert (near.start, near.stop) == (0.6, 2.3)
