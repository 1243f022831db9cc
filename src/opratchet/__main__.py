"""`python -m opratchet`: the command line."""

from opratchet.cli.main import run

if __name__ == "__main__":
    run()
