"""`python -m reproduction` runs the paper's experiments."""

from dropdtw.cli import run

if __name__ == "__main__":
    run("reproduction.commands.app", "python -m reproduction")
