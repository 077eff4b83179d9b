"""Pricebook: prices that change at midnight, in thousands of stores."""
