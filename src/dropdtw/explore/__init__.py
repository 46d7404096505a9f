"""The explorer: a local web page that realigns as you move its sliders. Needs `pip install 'dropdtw[explore]'`."""
