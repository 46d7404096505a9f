"""Retrieval and localization on moving digits (paper Section 4.1)."""
