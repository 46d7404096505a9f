"""Plots of signals, posteriors and orders: what is drawn is what was found."""

import io
import re

import numpy as np
import pytest

import dropdtw
from dropdtw import orders

Z = np.array([1.0, 5.0, 3.0])
X = np.array([1.1, 0.9, 9.0, 8.7, 5.2, 5.0, 0.0, 3.1])


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


@pytest.fixture
def plot(axes):
    from dropdtw import plot

    return plot


def found(drop_z=None):
    return dropdtw.align(Z, X, 1.0, drop_z, match="euclidean")


def legend(axes):
    found = axes.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def test_legends_say_what_there_is_to_see_and_nothing_else(axes, plot):
    plot.alignment(found(), truth_x=[(0, 2)], ax=axes)
    assert legend(axes) == ["matched", "dropped", "truth"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "z")
    assert legend(plot.alignment(dropdtw.align(Z, X), ax=axes)) == ["matched"]
    assert legend(plot.alignment(found(), legend=False)) == []
    assert legend(plot.alignment(dropdtw.align(Z, [*X, np.nan], 1.0, missing="drop"))) == [
        "matched",
        "dropped",
        "missing",
    ]
    assert legend(plot.linked(Z, X, found())) == ["matched", "dropped"]
    pair = np.stack([Z, Z], axis=1), np.stack([X, X], axis=1)
    assert legend(plot.linked(*pair, dropdtw.align(*pair, match="euclidean"))) == ["matched", "feature 0", "feature 1"]
    assert legend(plot.posterior(dropdtw.posterior(np.ones((2, 3)), drop_x=1.0))) == ["match", "drop"]
    assert legend(plot.posterior(dropdtw.posterior(np.ones((2, 3)), method="dtw"))) == ["match"]
    places = dropdtw.find([1, 2, 3], [9, 1, 7, 2, 3, 9], 1, drop_x=0.5)
    assert legend(plot.occurrences([9, 1, 7, 2, 3, 9], places)) == ["occurrence", "dropped"]
    assert legend(plot.occurrences([9, 1], [])) == []


def test_alignments_side_by_side_share_one_legend(plot):
    both = plot.compare({"plain": dropdtw.align(Z, X), "dropped": found()}, truth_x=[(0, 2)])
    assert [legend(ax) for ax in both] == [["matched", "dropped", "truth"], []]


def test_a_legend_covers_neither_the_plot_nor_the_title(axes, plot):
    plot.alignment(found(), truth_x=[(0, 2)], ax=axes)
    axes.figure.canvas.draw()
    box, title = axes.get_legend().get_window_extent(), axes.title.get_window_extent()
    assert box.y0 >= axes.get_window_extent().y1
    assert box.y1 <= title.y0
    assert title.y1 <= axes.figure.bbox.y1


def test_costs_stay_visible_below_what_is_dropped(axes, plot):
    plot.alignment(found(), colorbar=False, ax=axes)
    dropped = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(dropped) == 2
    assert all(patch.get_facecolor()[3] < 0.3 for patch in dropped)


@pytest.mark.parametrize(("step", "texts"), [("s", ["00:00", "10", "20"]), ("m", ["00:00", "00:10", "00:20"])])
def test_dates_have_round_ticks(plot, step, texts):
    times = np.datetime64("2024-05-01T00:00") + np.arange(25).astype(f"m8[{step}]")
    a = dropdtw.align(np.zeros(3), np.zeros(25), times=times)
    for ax in (plot.alignment(a), plot.linked(np.zeros(3), np.zeros(25), a)):
        shown = [tick.get_text() for tick in ax.get_xticklabels()]
        assert [text for text in shown if text in texts] == texts


DAYS = np.timedelta64(1, "D") / np.timedelta64(1, "s")


@pytest.mark.parametrize(
    ("seconds", "texts"),
    [
        (np.arange(1, 60), ["08:00:10", "20", "30", "40", "50", "08:01"]),
        (np.r_[np.linspace(0.04, 15), np.linspace(90.04, 107)], ["08:00:00", "08:00:07", "08:00:15", "08:01:38"]),
        (np.r_[0:15, 2 * DAYS : 2 * DAYS + 15], ["May-01 08:00:00", "May-01 08:00:07", "May-01 08:00:14", "May-03 08"]),
        (np.linspace(0.1, 3.7, 90) * DAYS, ["May-02", "03", "04", "05"]),
    ],
    ids=["seconds", "a gap", "two days", "warns not"],
)
def test_the_first_tick_of_a_time_axis_is_complete(plot, seconds, texts, recwarn):
    times = np.datetime64("2024-05-01T08:00") + (seconds * 1000).astype("m8[ms]")
    ax = plot.alignment(dropdtw.align(np.zeros(3), np.zeros(len(times)), times=times))
    shown = [tick.get_text() for tick in ax.get_xticklabels()]
    assert all(map(str.startswith, shown, texts)), shown
    assert not recwarn.list


def test_time_axes_have_a_name(plot):
    assert plot.step_bars({"truth": [0, 1]}).get_xlabel() == "x"
    assert plot.step_bars({"truth": [0, 1]}, fps=2).get_xlabel() == "seconds"
    assert plot.step_bars({"truth": [0, 1]}, xlabel="mine").get_xlabel() == "mine"
    ax = plot.occurrences([1, 2], [], fps=2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("seconds", "value")


@pytest.mark.parametrize("names", [["boil", "pour"], {0: "boil", 1: "pour"}])
def test_step_bars_take_names_as_plots_of_orders_do(plot, names):
    drawn = plot.step_bars({"truth": [0, 0, 1]}, names=names)
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["boil", "pour"]


def test_steps_and_curves_take_no_color_that_has_a_meaning(plot):
    meant = {plot.MATCH, plot.DROPPED, plot.TRUTH}
    assert meant.isdisjoint(plot.SERIES)
    bars = plot.step_bars({"all": np.arange(20)})
    looks = {(tuple(bar.get_facecolor()[0]), bar.get_hatch()) for bar in bars.collections}
    assert len(looks) == 20
    curves = plot.curves([0, 1], {str(k): [k, k] for k in range(10)})
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in curves.lines}
    assert len(looks) == 10
    assert len(legend(curves)) == 10
    order = plot.order([0, 1])
    from matplotlib.colors import to_hex

    assert meant.isdisjoint(to_hex(patch.get_edgecolor()) for patch in order.patches)


def drawn_links(axes, plot):
    return [line for line in axes.lines if line.get_color() == plot.MATCH]


def orange_points(axes, plot):
    return sorted(x for line in axes.lines if line.get_color() == plot.DROPPED for x in line.get_xdata())


def test_links_join_what_matches(axes, plot):
    a = found()
    assert plot.linked(Z, X, a, ax=axes) is axes
    links = drawn_links(axes, plot)
    z_at = (np.arange(3) + 0.5) * 8 / 3 - 0.5  # Z is as wide as X
    np.testing.assert_allclose([link.get_xdata() for link in links], [(z_at[i], j) for i, j in a.pairs])
    above, below = np.array([link.get_ydata() for link in links]).T
    np.testing.assert_allclose(above, 1.6 + Z[a.pairs[:, 0]] / 9)  # one scale for both: 0 to 9
    np.testing.assert_allclose(below, X[a.pairs[:, 1]] / 9)


def test_occurrences_are_blue_bands_and_orange_where_x_are_dropped(axes, plot):
    signal = [9, 1, 2, 3, 9, 9, 1, 7, 2, 3, 9]
    places = dropdtw.find([1, 2, 3], signal, 2, drop_x=0.5)
    assert plot.occurrences(signal, places, fps=2, ax=axes) is axes
    bands = [(band.get_x(), band.get_x() + band.get_width()) for band in axes.patches]
    assert bands == [(1, 4), (6, 10), (7, 8)]
    ticks = dict(zip(axes.get_xticks(), (t.get_text() for t in axes.get_xticklabels()), strict=True))
    assert (ticks[0], ticks[4], ticks[10]) == ("0", "2", "5")
    assert [text.get_text() for text in axes.texts] == ["1", "2"]
    assert len(axes.lines) == 1


def test_columns_of_a_searched_frame_have_colors_and_names(axes, plot):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"ax": [9.0, 1, 2, 9], "ay": [0.0, 5, 5, 0]})
    found = dropdtw.find(frame[1:3], frame, 1, drop_x=0.5)
    plot.occurrences(frame, found, ax=axes)
    assert len({line.get_color() for line in axes.lines}) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ax", "ay", "occurrence"]


def test_signals_of_many_features_or_elements_are_drawn_with_few_points(axes, plot):
    rng = np.random.default_rng(0)
    plot.occurrences(rng.normal(size=(50, 9)), [], ax=axes)
    assert len(axes.images) == 1
    assert not axes.lines
    long = rng.normal(size=100_003)
    plot.occurrences(long, [], ax=axes)
    shown = axes.lines[0].get_ydata()
    assert len(shown) < 9000
    assert (shown.min(), shown.max()) == (long.min(), long.max())


def test_what_is_dropped_is_orange_in_both_signals(axes, plot):
    a = dropdtw.solve([[0.0, 9, 9, 9], [9, 9, 9, 9]], drop_x=1, drop_z=1)
    plot.linked([1, 2], [1, 2, 3, 4], a, ax=axes)
    assert orange_points(axes, plot) == [1, 2, 2.5, 3]  # x_1, x_2, z_1 halfway along the second half, x_3
    assert [len(bars.get_paths()) for bars in axes.collections] == [1, 1]
    spans = [bars.get_paths()[0].get_extents().intervalx.tolist() for bars in axes.collections]
    assert spans == [[1.5, 3.5], [0.5, 3.5]]


def test_links_can_be_thinned_out(axes, plot):
    a = dropdtw.solve(np.zeros((1, 500)))
    plot.linked([0.0], np.zeros(500), a, links=10, ax=axes)
    ends = [link.get_xdata()[1] for link in drawn_links(axes, plot)]
    assert len(ends) == 10
    assert (ends[0], ends[-1]) == (0, 499)


def test_alignment_without_matches_has_no_links(axes, plot):
    a = dropdtw.solve(np.full((2, 3), 9.0), 1, 1)
    plot.linked([0, 1], [2, 3, 4], a, ax=axes)
    axes.figure.canvas.draw()
    assert drawn_links(axes, plot) == []


@pytest.mark.parametrize(("d", "curves", "images"), [(2, 4, 0), (4, 8, 0), (5, 0, 2)])
def test_many_features_are_drawn_as_a_band(axes, plot, d, curves, images):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(3, d)), rng.normal(size=(6, d))
    plot.linked(A, B, dropdtw.align(A, B, 0.3, 0.3), ax=axes)
    axes.figure.canvas.draw()
    shown = [line for line in axes.lines if line.get_color() not in (plot.MATCH, plot.DROPPED)]
    assert (len(shown), len(axes.images)) == (curves, images)
    for image, values in zip(axes.images, (A, B), strict=False):
        np.testing.assert_array_equal(image.get_array(), values.T)
    assert axes.get_xlim() == (-0.5, 5.5)


@pytest.mark.parametrize("drop_z", [None, 0.5])
def test_heat_map_holds_the_probabilities(axes, plot, drop_z):
    p = dropdtw.posterior(dropdtw.costs.euclidean(Z, X), drop_x=1.0, drop_z=drop_z, gamma=0.5)
    assert plot.posterior(p, ax=axes) is axes
    axes.figure.canvas.draw()
    probable = {image.get_array().shape: image.get_array() for image in axes.images}
    expected = {(3, 8): p.match, (1, 8): p.drop_x[None]} | ({} if drop_z is None else {(3, 1): p.drop_z[:, None]})
    assert probable.keys() == expected.keys()
    for shape, values in expected.items():
        np.testing.assert_array_equal(probable[shape], values)
    named = [[tick.get_text() for tick in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)]
    assert named[1] == ["0", "1", "2", "drop"]
    assert ("drop" in named[0]) == (drop_z is not None)
    assert "0.5" in axes.get_title()


def test_strips_of_drops_lie_beside_their_elements(axes, plot):
    p = dropdtw.posterior(dropdtw.costs.euclidean(Z, X), drop_x=1.0, drop_z=1.0)
    plot.posterior(p, ax=axes, colorbar=False, title="mine")
    assert len(axes.figure.axes) == 1
    assert axes.get_title() == "mine"
    _, of_z, of_x = (tuple(image.get_extent()) for image in axes.images)
    assert of_x[:2] == (-0.5, 7.5)
    assert min(of_x[2:]) > 2.5
    assert of_z[2:] == (2.5, -0.5)
    assert of_z[0] > 7.5


def test_heat_map_of_dtw_has_no_drops(axes, plot):
    plot.posterior(dropdtw.posterior(np.ones((2, 3)), method="dtw"), ax=axes)
    assert len(axes.images) == 1
    assert axes.get_ylim() == (1.5, -0.5)


def test_plots_make_their_own_axes(axes, plot):
    p = dropdtw.posterior(np.ones((2, 3)), drop_x=1.0)
    made = [plot.linked(Z, X, found()), plot.posterior(p)]
    assert axes not in made
    assert made[0].figure is not made[1].figure


# --- Orders ---------------------------------------------------------------------------------------------------------


def boxes(axes):
    """What stands in boxes, from left to right, then from top to bottom."""
    from matplotlib.patches import FancyBboxPatch

    inside = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    texts = [text for text in axes.texts if any(box.contains(*place(text)) for box in inside)]
    return [text.get_text() for text in sorted(texts, key=lambda text: (place(text)[0], -place(text)[1]))]


def place(text):
    return text.axes.transData.transform(text.get_position())


def arrows(axes):
    from matplotlib.patches import FancyArrowPatch

    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def test_an_order_is_drawn_with_the_arrows_that_say_all(axes, plot):
    order = orders.before(4, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)])  # the last follows from the others
    assert plot.order(order, ["boil", "chop", "fry", "serve"], ax=axes) is axes
    axes.figure.canvas.draw()
    assert boxes(axes) == ["boil", "chop", "fry", "serve"]
    assert len(arrows(axes)) == 4
    assert axes.get_legend() is None
    assert not axes.axison


def test_names_may_be_a_mapping_and_leave_some_out(axes, plot):
    plot.order([0, 1, 2], {1: "a name that is too long for one line"}, ax=axes)
    assert boxes(axes) == ["0", "a name that is\ntoo long for one\nline", "2"]


def test_alternatives_are_dashed_and_loops_say_what_they_cost(axes, plot):
    plot.order(orders.repeat([0, orders.one_of(1, 2)], 0.5), ax=axes)
    dashed = [arrow for arrow in arrows(axes) if arrow.get_linestyle() != "solid"]
    assert len(dashed) == 4  # to both and from both
    assert [text.get_text() for text in axes.texts if text.get_text() not in "012"] == ["again, +0.5"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one of these", "again"]
    (back,) = [arrow for arrow in arrows(axes) if arrow.get_linestyle() == "solid"]
    xs, ys = back.get_path().vertices.T
    assert xs[0] > xs[-1]  # from the end to the beginning, above all boxes
    assert ys.max() > max(box.get_y() + box.get_height() for box in axes.patches if hasattr(box, "get_boxstyle"))


def test_jumps_run_above_or_below_and_clear_of_each_other(axes, plot):
    plot.order(orders.jumps(5, [(4, 0, 0.5), (3, 1), (0, 3, 0.25), (2, 2)]), ax=axes)
    _, _, _, _, outer, inner, forth, itself = (arrow.get_path().vertices[:, 1] for arrow in arrows(axes))
    assert outer.max() > inner.max() > itself.max() > 0 > forth.min()
    assert [text.get_text() for text in axes.texts[:2]] == ["+0.5", "+0.25"]


def test_a_long_order_is_drawn_small(plot):
    ax = plot.order(orders.as_order(range(80)), title="long")
    assert ax.figure.get_size_inches()[0] < 24.5
    assert ax.texts[0].get_fontsize() < 9
    assert ax.get_title() == "long"
    assert plot.order([0, 1]).texts[0].get_fontsize() == 9


def test_numbers_say_when_each_step_was_done(axes, plot):
    C = np.array([[9, 9, 0, 0], [0, 9, 9, 9], [9, 9, 9, 9], [9, 0, 9, 9]])
    a = dropdtw.solve(C, 1.0, 1.0, order=[orders.any_order(0, [1, 3]), orders.one_of(2)])
    plot.alignment(a, ax=axes)
    numbers = {text.get_text(): int(text.xy[1]) for text in axes.texts}
    assert numbers == {str(n): visit.label for n, visit in enumerate(a.visits, 1)} == {"1": 1, "2": 3, "3": 0}
    spans = sorted(tuple(path.get_extents().intervalx) for bars in axes.collections for path in bars.get_paths())
    assert spans == [(-0.5, 0.5), (0.5, 1.5), (1.5, 3.5)]


def test_branches_not_taken_are_hatched_not_dropped(axes, plot):
    a = dropdtw.solve([[0, 0], [9, 9], [9, 9]], order=orders.one_of(0, [1, 2]))
    plot.alignment(a, ax=axes)
    (hatched,) = [patch for patch in axes.patches if patch.get_hatch()]
    assert hatched.get_extents().transformed(axes.transData.inverted()).intervaly.tolist() == pytest.approx([2.5, 0.5])
    assert "0 of 3 z dropped, 2 not taken" in axes.get_title()
    assert legend(axes) == ["matched", "not taken"]


def test_many_visits_have_no_numbers(axes, plot):
    plot.alignment(dropdtw.solve(np.zeros((1, 70)), order=[0] * 70, many_to_one=False), ax=axes)
    assert len(axes.texts) == 0


def test_posteriors_of_orders_are_drawn(axes, plot):
    p = dropdtw.posterior(np.eye(3), drop_x=1.0, order=orders.any_order(0, 1, 2))
    plot.posterior(p, ax=axes)
    np.testing.assert_array_equal(axes.images[0].get_array(), p.match)


def test_words_are_framed_where_they_are_spoken_and_hatched_where_not(axes, plot):
    from dropdtw import speech

    path = [1, 0, 4, 4, 0, 2]
    log_probs = np.log(np.full((6, 5), 0.02) + 0.9 * np.eye(5)[path])
    text = [[1], [3], [2]]
    told = speech.align(log_probs, text, skip=2.0, garbage=1.0)
    assert (told.skipped, told.extra) == ((1,), ((2, 4),))
    plot.words(told, log_probs, text, ["so", "not", "yes"], fps=2, ax=axes)
    framed = [p for p in axes.patches if not p.get_fill()]
    assert [(p.get_xy(), p.get_width()) for p in framed] == [((0, 0), 0.5), ((2.5, 2), 0.5)]
    hatched = [
        p.get_window_extent().transformed(axes.transData.inverted()).bounds for p in axes.patches if p.get_hatch()
    ]
    assert hatched[0] == pytest.approx((1.0, 3.0, 1.0, -3.0))  # the time that is not in the text
    assert hatched[1] == pytest.approx((0.0, 2.0, 3.0, -1.0))  # the word that is not spoken
    assert [t.get_text() for t in axes.get_yticklabels()] == ["so", "not", "yes"]
    assert legend(axes) == ["probable token", "spoken", "not spoken, or not in the text"]
    assert axes.images[0].get_array().shape == (3, 6)


def test_alignments_with_times_share_an_axis(axes, plot):
    found = {name: dropdtw.align([0.0, 1.0], [0.0, 0.5, 1.0], fps=fps) for name, fps in (("slow", 1), ("fast", 2))}
    axes = plot.compare(found, axes=axes.figure.subplots(2, 1, sharex=True))
    assert [ax.get_xlabel() for ax in axes][-1].endswith("(seconds)")


def test_hatch_lines_are_opaque_in_svg_files(axes):
    """The renderer gives a pattern with its own face the face's transparency, so the hatch is drawn without a face."""
    ax = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).plot(axes)
    file = io.StringIO()
    ax.figure.savefig(file, format="svg")
    styles = re.findall(r'style="([^"]*fill: url\(#[^"]*)"', file.getvalue())
    assert styles
    assert not any("opacity" in style for style in styles)
