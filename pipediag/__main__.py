"""`python -m pipediag` and the `pipediag` console script."""

from pipediag.cli.main import run

if __name__ == "__main__":
    run()
