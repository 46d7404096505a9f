"""What a caller gets: alignments, posteriors, explanations."""
