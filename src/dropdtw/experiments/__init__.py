"""The paper's experiments, one readable file for each table or figure; they need `pip install dropdtw[experiments]`."""
