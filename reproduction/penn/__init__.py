"""Representation learning by alignment (paper Section 4.3)."""
