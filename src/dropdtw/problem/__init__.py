"""From what a caller says to a checked problem: a table and its costs."""
