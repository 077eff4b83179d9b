"""`python -m slothpost` is `slothpost`."""

from slothpost.cli import main

if __name__ == "__main__":
    main()
