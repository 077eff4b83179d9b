"""The HTTP side of pricebook."""
