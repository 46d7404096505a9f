"""`python -m dropdtw` is the command line."""

from dropdtw.cli import main

if __name__ == "__main__":
    main()
