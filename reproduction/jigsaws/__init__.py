"""Training from transcripts on real signals: gestures of surgeons, from the order of gestures alone."""
