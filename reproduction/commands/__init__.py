"""The commands: their options, and nothing else. What they run is in the package of the experiment."""
