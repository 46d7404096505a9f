"""Many sequences, and streams: all pairs, the nearest ones, frames as they arrive, a drop cost to begin with."""
