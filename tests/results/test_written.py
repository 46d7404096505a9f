"""Alignments as JSON (and back), as HTML, and as plots."""

import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import dropdtw
from cases import OF_COSTS, same, solved
from dropdtw import Alignment, palette, solve

every_method = pytest.mark.parametrize("method", OF_COSTS)

# --- JSON -------------------------------------------------------------------------------------------------------

TABLE = dropdtw.Recurrence(  # with borders, several starts and a name that HTML has to escape
    name="custom <&>",
    states=("m", "gap"),
    edges=dropdtw.edges("m gap", to="m", moves="diag left", cost="match")
    + dropdtw.edges("m", to="gap", moves="left", cost="drop_x"),
    start=("m", "gap"),
    final=("m",),
    border=dropdtw.edges("gap", to="gap", moves="left", cost="drop_x"),
)


def through_json(a, **options):
    return Alignment.from_dict(json.loads(json.dumps(a.to_dict(**options), allow_nan=False)))


WRITTEN = {method: {"method": method} for method in OF_COSTS} | {
    "holes": {"C": np.where(np.arange(28).reshape(4, 7) % 5 == 1, np.inf, 0.25), "drop_x": [1, np.inf] * 3 + [0]},
    "window": {"window": 2},
    "share": {"window": 0.5, "drop_z": None},
    "table": {"method": TABLE, "drop_z": None},
    "float32": {"C": np.random.default_rng(0).random((4, 7)).astype(np.float32)},
    "dropped": {"C": np.full((4, 7), 9.0)},
}
every_written = pytest.mark.parametrize("more", WRITTEN.values(), ids=WRITTEN)


@every_written
def test_round_trip_without_costs(more):
    a = solved(**more)
    b = through_json(a)
    assert same(a, b)
    assert b.segments() == a.segments()
    assert repr(b) == repr(a)
    assert b.problem is None
    np.testing.assert_array_equal(b.M, a.M)


@every_written
def test_round_trip_with_costs_brings_back_everything(more):
    a = solved(**more)
    b = through_json(a, costs=True)
    assert same(a, b)
    assert b.rescore() == pytest.approx(a.rescore())
    assert b.problem.table == a.problem.table
    np.testing.assert_array_equal(b.problem.C, a.problem.C)
    for part in ("matrix", "drop_x", "drop_z"):
        np.testing.assert_array_equal(getattr(a.problem.costs, part), getattr(b.problem.costs, part))
    np.testing.assert_array_equal(a.problem.costs.banded(), b.problem.costs.banded())
    for j in range(7):
        ours, theirs = a.explain(j), b.explain(j)
        assert (ours.matched, ours.alternative) == (theirs.matched, theirs.alternative)
        assert theirs.alternative_cost == pytest.approx(ours.alternative_cost)


@pytest.mark.parametrize("scale", [1e-3, 1, 1e6])
def test_a_cost_that_is_not_that_of_its_pairs_is_not_read(scale):
    data = solve(scale * np.random.default_rng(0).random((4, 7)), 0.5 * scale).to_dict(costs=True)
    assert Alignment.from_dict(data).cost == data["cost"]
    for cost in (1.01 * data["cost"], 0.0, -data["cost"]):
        with pytest.raises(ValueError, match="but its pairs and drops cost"):
            Alignment.from_dict(data | {"cost": cost})


@pytest.mark.parametrize("match", ["cosine", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("d", [2, 12])
def test_an_alignment_of_single_precision_is_read_back(match, d):
    Z = np.random.default_rng(d).normal(size=(300, d)).astype(np.float32)
    for X in (Z, Z + np.float32(0.1), 1000 + Z):
        a = dropdtw.align(Z, X, 1.0, 1.0, match=match)
        assert same(a, through_json(a, costs=True))


def test_a_long_alignment_is_read_in_linear_time():
    N = 100_000  # with quadratic time this would take minutes
    data = solve(np.zeros((1, N))).to_dict()
    assert Alignment.from_dict(data).labels.tolist() == [0] * N


def test_dictionary_says_what_it_holds():
    data = solve([[0, 0, 9], [9, 9, 0]]).to_dict()
    assert data == {
        "format": 1,
        "method": "drop_dtw",
        "shape": [2, 3],
        "cost": 0.0,
        "pairs": [[0, 0], [0, 1], [1, 2]],
        "labels": [0, 0, 1],
        "segments": [{"label": 0, "start": 0, "stop": 2}, {"label": 1, "start": 2, "stop": 3}],
        "paid_x": [0, 0, 0],
        "paid_z": [0, 0],
    }


def test_dictionary_of_an_alignment_read_without_costs_cannot_have_them():
    with pytest.raises(ValueError, match="came without its costs"):
        through_json(solved()).to_dict(costs=True)


def test_read_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        through_json(solved()).labels[0] = 1


@pytest.mark.parametrize(
    "damage",
    [
        {"shape": [4]},
        {"shape": "ab"},
        {"shape": None},
        {"pairs": [[0]]},
        {"pairs": [[0, "x"]]},
        {"pairs": [[0, 0], [0, 0]]},
        {"pairs": [[1, 1], [0, 0]]},
        {"labels": [9] * 7},
        {"labels": [-2] * 7},
        {"labels": [0] * 7},
        {"cost": None},
        {"cost": "nan"},
        {"problem": {"C": [[1.0]]}},
        {"problem": 3},
    ],
    ids=str,
)
def test_damaged_dictionary_is_refused_in_words(damage):
    data = solve(np.full((4, 7), 0.5) - np.eye(4, 7), drop_x=0.1, drop_z=0.1).to_dict(costs=True)
    with pytest.raises(ValueError, match=r"give a dictionary that Alignment\.to_dict wrote"):
        Alignment.from_dict(data | damage)


NONSENSE = [None, 5, -1, "x", [], {}, [[]], {"a": 1}, True, 1e400, float("nan"), [None], ["x"], [1.5], [[1, 2, 3]]]


def places(value, at=()):
    """The path to every entry of nested dictionaries and lists, with the first entries of lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


@pytest.mark.parametrize("order", [None, dropdtw.orders.repeat([0, 1])], ids=["list", "repeat"])
def test_what_is_read_is_what_was_written_or_refused_in_words(order):
    C = np.random.default_rng(0).random((2, 3))
    whole = json.loads(json.dumps(solve(C, 0.3, order=order, open_x=0.1).to_dict(costs=True)))
    for *above, last in places(whole):
        for nonsense in NONSENSE:
            data = json.loads(json.dumps(whole))
            inside = data
            for key in above:
                inside = inside[key]
            inside[last] = nonsense
            try:
                found = Alignment.from_dict(data).to_dict(costs=True)
            except ValueError:
                continue
            read, given = (json.loads(json.dumps(d).replace("Infinity", '"inf"')) for d in (found, data))
            assert read == given, (*above, last, nonsense)


# --- HTML and plots ---------------------------------------------------------------------------------------------


@every_written
def test_html_is_well_formed_and_draws_every_segment_and_drop(more):
    a = solved(**more)
    root = ElementTree.fromstring(a._repr_html_())
    assert root.tag == "div"
    assert root.find("div").text == repr(a)[1:-1]
    groups = layers(a)
    assert len(groups.get(palette.MATCHED, ())) == len(a.segments())
    dropped = bool(a.dropped_x.any() or a.dropped_z.any())
    assert (palette.DROPPED in groups) == dropped
    legend = "".join(root.findall("div")[1].itertext())
    assert legend == "x → z ↓" + "matched" * bool(a.segments()) + "dropped" * dropped


def layers(a):
    """What is drawn, by its color."""
    return {group.get("fill"): group for group in ElementTree.fromstring(a._repr_html_()).find("svg").findall("g")}


def test_html_has_no_ground_of_its_own_so_that_it_suits_dark_notebooks():
    page = solved()._repr_html_()
    assert set(re.findall("#[0-9a-f]{3,6}", page)) <= {palette.MATCHED, palette.DROPPED}
    assert "currentColor" in page


def boxes(group):
    return [[float(r.get(side)) for side in ("x", "y", "width", "height")] for r in group]


def test_html_draws_in_its_place():
    a = solve([[0, 9, 9, 9], [9, 9, 9, 9], [9, 9, 9, 0]], drop_x=[9, 1, 1, 9], drop_z=[9, 1, 9])
    assert a.labels.tolist() == [0, -1, -1, 2]
    groups = layers(a)
    red, dark = groups[palette.DROPPED], groups[palette.MATCHED]
    assert boxes(dark) == [[0, 0, 105, 80], [315, 160, 105, 80]]
    columns = [box for box in boxes(red) if box[3] == 240]
    assert sum(width for _, _, width, _ in columns) == 210
    assert all(105 <= x < 315 for x, *_ in columns)
    assert [box for box in boxes(red) if box[3] != 240] == [[0, 80, 420, 80]]


@pytest.mark.parametrize(("shape", "height"), [((1, 300), "24"), ((300, 1), "240"), ((3, 9), "140")])
def test_html_is_neither_flat_nor_tall(shape, height):
    svg = ElementTree.fromstring(solve(np.ones(shape))._repr_html_()).find("svg")
    assert (svg.get("width"), svg.get("height")) == ("420", height)


@pytest.mark.parametrize("pattern", ["all dropped", "every second dropped", "all matched"])
def test_html_of_a_long_alignment_is_small(pattern):
    j = np.arange(5000)
    C = {"all dropped": j * 0 + 9, "every second dropped": j % 2 * 9, "all matched": j * 0}[pattern][None]
    assert len(solve(C, drop_x=1, drop_z=1)._repr_html_()) < 100_000


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


@every_written
def test_plot_draws_costs_matches_and_drops(axes, more):
    a = solved(**more)
    assert a.plot(ax=axes) is axes
    axes.figure.canvas.draw()
    (dots,) = axes.lines
    np.testing.assert_array_equal(np.c_[dots.get_ydata(), dots.get_xdata()], a.pairs)
    spans = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    covered = np.zeros((2, max(a.shape) + 1), int)
    full_z = [span for span in spans if np.ptp(span.intervaly) >= a.shape[0]]  # columns, from top to bottom
    full_x = [span for span in spans if np.ptp(span.intervalx) >= a.shape[1]]
    if a.dropped_x.all():  # then the first spans all of both
        full_x, full_z = full_x[1:], full_z[:1]
    for kind, chosen in enumerate((full_z, full_x)):
        for span in chosen:
            low, high = np.sort(span.intervaly if kind else span.intervalx) + 0.5
            assert low == pytest.approx(round(low), abs=1e-6)
            covered[kind, round(low) : round(high)] += 1
    np.testing.assert_array_equal(covered[0, : a.shape[1]], a.dropped_x)
    np.testing.assert_array_equal(covered[1, : a.shape[0]], a.dropped_z)
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array().filled(np.inf), a.problem.given.banded())
    assert a.method in axes.get_title()


def test_plot_makes_its_own_axes(axes):
    a = solved()
    drawn = a.plot()
    assert drawn is not axes
    assert drawn.get_xlim() == (-0.5, 6.5)
    assert drawn.get_ylim() == (3.5, -0.5)


def test_plot_without_costs_draws_the_matches(axes):
    through_json(solved()).plot(axes)
    assert len(axes.lines) == 1
    assert len(axes.images) == 0


def test_plot_where_every_match_is_forbidden(axes):
    solve(np.full((2, 3), np.inf), 1, 1).plot(axes)
    axes.figure.canvas.draw()


# --- More plots -------------------------------------------------------------------------------------------------


def test_true_intervals_are_drawn(axes):
    from dropdtw import plot

    plot.alignment(solved(), truth_x=[(1, 3)], ax=axes, title="mine", xlabel="frame", colorbar=False)
    green = [line for line in axes.lines if line.get_color() == plot.TRUTH]
    assert [line.get_xdata()[0] for line in green] == [0.5, 0.5, 2.5]
    assert axes.get_title() == "mine"
    assert axes.get_xlabel() == "frame"
    assert len(axes.figure.axes) == 1


def test_alignments_are_compared_side_by_side(axes):
    from dropdtw import plot

    a = solved()
    made = plot.compare({"one": a, "two": a, "three": a})
    assert [ax.get_title().split(":")[0] for ax in made] == ["one", "two", "three"]
    assert plot.compare({"given": a}, axes=[axes]) == [axes]
    with pytest.raises(ValueError, match="axes has 1 entries for 2 alignments; give one for each"):
        plot.compare({"one": a, "two": a}, axes=[axes])


@pytest.mark.parametrize("vertical", [False, True])
def test_a_strip_shows_frames_where_they_are(axes, vertical):
    from dropdtw import plot

    video = np.linspace(0, 1, 20)[:, None, None] * np.ones((20, 3, 4))
    assert plot.strip(video, count=5, marked=np.arange(20) > 9, vertical=vertical, ax=axes) is axes
    assert len(axes.images) == 5
    centers = []
    for image in axes.images:
        left, right, bottom, top = image.get_extent()
        centers.append((bottom + top) / 2 if vertical else (left + right) / 2)
        shown = float(image.get_array().mean())
        assert shown * 19 == pytest.approx(centers[-1], abs=0.51)
    np.testing.assert_allclose(centers, [1.5, 5.5, 9.5, 13.5, 17.5])
    assert len(axes.patches) == 3 - (round(9.5) == 9)
    assert len(plot.strip(np.zeros((3, 2, 2, 3))).images) == 3  # fewer frames than places, in color
    with pytest.raises(ValueError, match=r"frames has shape \(4, 5\); give a video"):
        plot.strip(np.zeros((4, 5)))


def test_an_alignment_between_its_frames(axes):
    from dropdtw import plot

    a = solve([[0.1, 0.9, 0.9], [0.9, 0.9, 0.1], [0.9, 0.9, 0.9]], 0.3, 0.3)
    assert a.dropped_z.tolist() == [False, False, True]
    figure = plot.with_frames(
        a, np.zeros((3, 8, 8)), np.zeros((3, 8, 8)), spoiled_z=[True, False, True], truth_x=[(0, 1)], title="what"
    )
    main = figure.axes[0]
    assert [(text.get_text(), text.get_position()[1]) for text in main.texts] == [("✗", 0), ("✓", 2)]
    assert figure.get_suptitle() == "what"
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == ["matched", "dropped", "truth", "junk on the left", "junk dropped", "junk matched"]
    with pytest.raises(ValueError, match="x_frames and z_frames have 2 and 3 frames, but the alignment has 3 and 3"):
        plot.with_frames(a, np.zeros((2, 8, 8)), np.zeros((3, 8, 8)))


def test_curves_show_means_and_errors(axes):
    from dropdtw import plot

    plot.curves([0, 1], {"a": [[1.0, 2.0], [3.0, 2.0]], "b": [5.0, 6.0]}, emphasis=["a"], ax=axes)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [2, 2])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [5, 6])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 1
    assert band[:, 1].max() == 3
    assert axes.lines[0].get_linewidth() > axes.lines[1].get_linewidth()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_bars_show_steps_and_leave_background_blank(axes):
    from dropdtw import plot

    plot.step_bars({"truth": [-1, 4, 4, 7], "found": [4, 4, -1, -1]}, names={4: "cut"}, fps=0.5, ax=axes)
    spans = {
        (c.get_label(), tuple(map(tuple, c.get_paths()[0].get_extents().intervalx.reshape(1, 2))))
        for c in axes.collections
    }
    assert ("cut", ((1.0, 3.0),)) in spans
    assert ("step 7", ((3.0, 4.0),)) in spans
    assert len(axes.collections) == 3
    assert [t.get_text() for t in axes.get_yticklabels()] == ["truth", "found"]
    assert axes.get_xlim() == (0, 4)
    assert [t.get_text() for t in axes.get_xticklabels()][-1] == "8"
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["cut", "step 7"]
