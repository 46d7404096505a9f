"""Loaders for data sets. Each reads the published layout from a folder that you give."""
