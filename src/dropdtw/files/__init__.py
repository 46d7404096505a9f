"""Reading sequences from files, writing results atomically, and showing progress on the terminal."""
