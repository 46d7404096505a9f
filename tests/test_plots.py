"""Plots of signals and of posteriors: what is drawn is what was found."""

import numpy as np
import pytest

import dropdtw

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
    p = dropdtw.posterior(dropdtw.costs.euclidean(Z, X), 1.0, drop_z, gamma=0.5)
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
    p = dropdtw.posterior(dropdtw.costs.euclidean(Z, X), 1.0, 1.0)
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
    p = dropdtw.posterior(np.ones((2, 3)), 1.0)
    made = [plot.linked(Z, X, found()), plot.posterior(p)]
    assert axes not in made
    assert made[0].figure is not made[1].figure
