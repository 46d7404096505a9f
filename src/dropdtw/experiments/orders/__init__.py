"""Beyond the paper: inference and training where steps may come in any order that a recipe allows."""
