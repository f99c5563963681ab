"""`python -m neurons`: the `arena` command where its script is not on the path."""

from neurons.cli import main

if __name__ == "__main__":
    main()
