"""Algorithms as data: tables of states and edges, the reducers that run them, and the registry of methods."""
