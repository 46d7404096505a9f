"""The explorer: a local page that aligns anew while its sliders move. Needs `pip install dropdtw[explore]`."""
