"""The experiments on TMNIST: sequences, retrieval and localization on synthetic codes, and a quick end-to-end run."""

import itertools
import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

import dropdtw  # noqa: E402
import page_checks  # noqa: E402
from clip_cases import made_up  # noqa: E402
from reproduction.common import encoder as encoders  # noqa: E402
from reproduction.data import tmnist  # noqa: E402
from reproduction.tmnist import experiment, localization, retrieval  # noqa: E402

# --- Sequences for localization ---------------------------------------------------------------------------------


def test_medleys_have_two_different_clips_of_the_event_among_others():
    rng = np.random.default_rng(0)
    counts = set()
    for _ in range(200):
        m = tmnist.medley(10, 3, rng)
        kinds = [kind for _, kind in m.clips]
        counts.add(len(kinds))
        assert kinds.count(m.event) == 2
        assert len(set(kinds)) == len(kinds) - 1  # the others are all different
        assert len({copy for copy, kind in m.clips if kind == m.event}) == 2
        assert [kind for _, kind in m.query] == [m.event] * 2
        assert len({copy for copy, _ in m.query}) == 2
        lengths = rng.integers(1, 5, len(kinds)).tolist()
        wanted = [kind == m.event for kind, n in zip(kinds, lengths, strict=True) for _ in range(n)]
        assert m.is_event(lengths).tolist() == wanted
    assert counts == {5, 6, 7}


@pytest.mark.parametrize(
    ("classes", "copies", "events", "clips"), [(80, 1, 2, (5, 7)), (5, 2, 2, (5, 7)), (80, 9, 5, (5, 7))]
)
def test_impossible_medleys_say_why(classes, copies, events, clips):
    with pytest.raises(ValueError, match=r"more clips than events, at least .* copies .* and more than .* classes"):
        tmnist.medley(classes, copies, np.random.default_rng(0), events, clips)


# --- Retrieval --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", retrieval.rows(), ids=lambda row: row.name)
def test_recall_is_that_of_every_pair_alone(row):
    videos = made_up(1, classes=5)
    these = retrieval.queries(videos, 0.4, [3])
    clips, _ = videos.noisy(0.4, np.random.default_rng([3]))
    everything = np.concatenate(videos.full)
    for setting in row.settings[:: max(1, len(row.settings) // 3)]:
        values = np.zeros((5, 5))
        for a, b in itertools.product(range(5), range(5)):
            drop_z = setting.drop_z
            if setting.percentile is not None:
                costs = np.sort(dropdtw.costs.cosine(clips[a], everything), axis=1)
                drop_z = costs[:, round(setting.percentile / 100 * (costs.shape[1] - 1))]
            C = dropdtw.costs.cosine(clips[a], videos.full[b]) - (setting.offset or 0)
            values[a, b] = dropdtw.cost(C, setting.drop_x, drop_z, method=row.method, threshold=setting.threshold)
        found = these.values(row.method, setting)
        np.testing.assert_allclose(found, values, rtol=1e-4, atol=1e-5, err_msg=str(setting))
        own = np.diag(values)
        nearest = [(np.delete(line, a) > own[a] + 1e-4).all() for a, line in enumerate(values)]
        at_least = [(np.delete(line, a) > own[a] - 1e-4).all() for a, line in enumerate(values)]
        assert np.mean(nearest) <= these.recall(row.method, setting) <= np.mean(at_least)


def test_every_method_but_step_patterns_and_ctc_has_a_row():
    others = {name for name, entry in dropdtw.METHODS.items() if entry.fixes_moves or entry.match}
    assert {row.method for row in retrieval.rows()} == set(dropdtw.METHODS) - {"drop_dtw_paper", "ctc"} - others


def test_settings_are_chosen_on_the_validation_sets_alone():
    table = [row for row in retrieval.rows() if row.name in ("Drop-DTW, one constant", "dtw", "lcss")]
    options = {"levels": (0.0, 0.4, 0.8), "table": table}
    one = retrieval.run([made_up(1)], [made_up(2)], **options)
    two = retrieval.run([made_up(3), made_up(4)], [made_up(2)], **options)
    assert one.chosen == two.chosen
    assert two.recall["dtw"].shape == (2, 3)
    # The chosen setting has the best recall over every second level of the validation set.
    tried = {}
    for setting in table[0].settings:
        tried[setting] = sum(
            retrieval.queries(made_up(2), level, [0, 1, 0, k]).recall("drop_dtw", setting)
            for k, level in ((0, 0.0), (2, 0.8))
        )
    assert tried[one.chosen["Drop-DTW, one constant"]] == max(tried.values())
    assert one.recall["Drop-DTW, one constant"].mean() > one.recall["dtw"].mean()
    assert str(one.chosen["dtw"]) == "–"


def test_every_other_level_counts(monkeypatch):
    good, better = retrieval.Setting(0.1, 0.1), retrieval.Setting(0.2, 0.2)
    scores = {0.0: {good: 0.9, better: 0.8}, 0.4: {good: 0.9, better: 0.0}, 0.8: {good: 0.1, better: 0.7}}

    class Fixed:
        def __init__(self, level):
            self.level = level

        def recall(self, method, setting):
            return scores[self.level][setting]

    monkeypatch.setattr(retrieval, "queries", lambda videos, level, seed: Fixed(level))
    row = retrieval.Row("row", "drop_dtw", (good, better))
    found = retrieval.run([None], [None], levels=(0.0, 0.4, 0.8), table=[row])
    assert found.chosen == {"row": better}
    np.testing.assert_array_equal(found.recall["row"], [[0.8, 0.0, 0.7]])


def test_a_tie_up_to_rounding_is_no_find(monkeypatch):
    these = retrieval.queries(made_up(1, classes=2), 0.0, [0])
    monkeypatch.setattr(retrieval.Queries, "values", lambda *a: np.array([[1.0, 1.0 + 1e-7], [1.0, 0.5]]))
    assert these.recall("dtw", retrieval.Setting()) == 0.5


# --- Localization -----------------------------------------------------------------------------------------------


def test_longest_runs():
    matched = np.array([1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1]) == 1
    assert localization.longest_runs(matched).astype(int).tolist() == [1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert not localization.longest_runs(np.zeros(4, bool)).any()
    assert localization.longest_runs(np.ones(4, bool)).all()


def test_best_intervals_have_the_greatest_expected_accuracy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(8)
        ends = [(a, b) for a in range(8) for b in range(a + 1, 9)]
        best = -1.0
        for (a, b), (c, d) in itertools.product(ends, ends):
            if b <= c:
                inside = np.zeros(8, bool)
                inside[a:b] = inside[c:d] = True
                best = max(best, np.where(inside, p, 1 - p).sum())
        found = localization.best_intervals(p)
        assert np.where(found, p, 1 - p).sum() == pytest.approx(best)


def test_localization_finds_the_event_and_chooses_elsewhere():
    test, validation = [made_up(k) for k in (1, 2, 3)], [made_up(k) for k in (4, 5)]
    found = localization.run(test, validation, count=30)
    assert set(found.accuracy) == {*localization.ROWS, "nothing found"}
    for name in localization.ROWS:
        assert found.accuracy[name].shape == (30,)
        assert found.accuracy[name].mean() > 0.9 > found.accuracy["nothing found"].mean()
        assert found.iou[name].mean() > 0.7
    assert (found.iou["nothing found"] == 0).all()
    assert localization.run(test[::-1], validation, count=30).chosen == found.chosen
    assert localization.run(test, validation, count=30).accuracy["Drop-DTW, posterior"].tolist() == (
        found.accuracy["Drop-DTW, posterior"].tolist()
    )


def test_sequences_are_of_the_pool():
    pool = [made_up(k) for k in (1, 2)]
    for one in localization.sequences(pool, 5, [0]):
        parts = [pool[copy].part[kind] for copy, kind in one.medley.clips]
        query = [pool[copy].full[kind] for copy, kind in one.medley.query]
        np.testing.assert_allclose(one.C, dropdtw.costs.cosine(np.concatenate(query), np.concatenate(parts)))
        assert len(one.truth) == one.C.shape[1]


# --- The whole --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("tmnist")
    said = []
    settings = experiment.Settings(seed=3).quick()
    results = experiment.Tmnist.reproduce(
        settings, out, say=said.append, command="python -m reproduction tmnist --quick"
    )
    return out, results, said


def test_a_quick_run_gives_sane_numbers(quick):
    out, results, said = quick
    assert json.loads((out / "results.json").read_text()) == json.loads(json.dumps(results))
    assert results["encoder_accuracy"] > 70
    for row in results["retrieval"].values():
        assert len(row["recall_at_1"]) == 3
        assert all(0 <= cell["mean"] <= 100 for cell in row["recall_at_1"])
    clean = {name: row["recall_at_1"][0]["mean"] for name, row in results["retrieval"].items()}
    assert min(clean.values()) > 25  # chance is 12.5
    drop, dtw = (
        np.mean([cell["mean"] for cell in results["retrieval"][name]["recall_at_1"]])
        for name in ("Drop-DTW, two constants", "dtw")
    )
    assert drop > dtw
    longest = results["localization"]["Drop-DTW, longest runs"]
    assert longest["accuracy"]["mean"] > results["localization"]["nothing found"]["accuracy"]["mean"] + 10
    assert results["paper"]["localization"]["accuracy"] == {"mean": 97.1, "error": 0.28}
    text = "\n".join(said)
    assert "quoted from the paper: 8 ×" in text
    assert "Drop-DTW, longest runs (quoted from the paper)" in text
    for name in (
        "samples.png",
        "sample.gif",
        "retrieval.png",
        "methods.png",
        "paths.png",
        "query.png",
        "sequence.png",
        "report.html",
    ):
        assert (out / name).stat().st_size > 1000, name


@pytest.mark.exhaustive
def test_the_same_seed_gives_the_same_numbers(quick, tmp_path):
    assert experiment.Tmnist.reproduce(experiment.Settings(seed=3).quick(), tmp_path, say=lambda text: None) == quick[1]


def test_the_cache_saves_the_work(quick, monkeypatch, tmp_path):
    out, results, _ = quick
    out = shutil.copytree(out, tmp_path / "again")
    monkeypatch.setattr(experiment, "_compose", lambda report, **parts: None)  # pictures take long
    settings = experiment.Settings(seed=3).quick()
    for place, name in ((encoders, "train"), (encoders.Encoder, "codes"), (retrieval, "run")):
        monkeypatch.setattr(place, name, lambda *a, **k: pytest.fail("this is in the cache"))
    assert experiment.Tmnist.reproduce(settings, out, say=lambda text: None) == results
    weights = next((out / "cache").glob("encoder-*.npz"))
    assert experiment.Tmnist.reproduce(settings, out, say=lambda text: None, encoder=str(weights)) == results


def test_the_report_opens_in_a_browser_without_errors(quick, browser):
    out, _, _ = quick
    browser.get((out / "report.html").as_uri())
    assert browser.title == "Drop-DTW on TMNIST"
    assert browser.get_log("browser") == []
    images = browser.execute_script("return [...document.images].map(i => [i.complete, i.naturalWidth, i.alt.length])")
    assert len(images) == 7
    assert all(complete and width > 150 and alt > 20 for complete, width, alt in images)
    leads = browser.execute_script(
        "return [...document.querySelectorAll('.leads figure')].map((f) => [f.querySelector('.finding').textContent,"
        " f.querySelectorAll('img').length])"
    )
    assert [count for _, count in leads] == [1, 1]
    assert "of the cases by Drop-DTW" in leads[0][0]
    assert "quoted from the paper: 91.2\u00a0% and 97.1\u00a0%" in leads[1][0]
    assert (out / "report.html").read_text().count("data:image/gif;base64,") == 1
    cells = browser.execute_script("return [...document.querySelectorAll('th')].map(c => c.textContent)")
    assert {"dtw", "Drop-DTW, two constants", "Drop-DTW, posterior"} <= set(cells)
    assert not browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)"
                                      ".filter(n => !n.startsWith('data:'))")  # fmt: skip
    for width in (1280, 390):
        page_checks.dress(browser, width)
        assert page_checks.spilled(browser) == []
