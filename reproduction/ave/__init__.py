"""Audio-visual localization (paper Section 4.4)."""
