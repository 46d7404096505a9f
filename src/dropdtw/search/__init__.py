"""Retrieval and streaming: all pairs, nearest neighbors, occurrences, averages, streams, and suggested drop costs."""
