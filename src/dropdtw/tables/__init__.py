"""An algorithm as data: tables of states and edges, the minima that reduce them, the registry of methods."""
