"""Sequences and alignments in files, written atomically, and progress on the terminal."""
