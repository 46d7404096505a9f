"""Results: alignments, posteriors and explanations."""
