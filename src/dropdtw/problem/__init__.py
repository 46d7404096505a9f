"""From the caller's arguments to a validated problem: a table and its costs."""
