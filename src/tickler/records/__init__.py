"""ASIDE: small named values with compare-and-set and expiry."""
