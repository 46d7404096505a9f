"""Score against performance, note by note: drops on both sides are omitted and inserted notes (beyond the paper)."""
