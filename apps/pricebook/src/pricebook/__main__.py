"""`python -m pricebook` is `pricebook`."""

from pricebook.cli import main

if __name__ == "__main__":
    main()
