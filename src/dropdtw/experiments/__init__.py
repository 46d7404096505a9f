"""The paper's experiments, one package per table or figure. Needs `pip install dropdtw[experiments]`."""
