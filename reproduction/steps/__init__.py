"""Multi-step localization (paper Section 4.2)."""
