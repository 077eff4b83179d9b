"""`python -m tickler` is `tickler`."""

from tickler.cli import main

if __name__ == "__main__":
    main()
