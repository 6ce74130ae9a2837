"""`python -m pipediag` and the `pipediag` console script."""

from pipediag.cli.main import main

if __name__ == "__main__":
    main()
