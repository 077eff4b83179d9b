"""People who sign in: what they may do, in which stores, and their time zone."""

from pricebook.people.people import People
from pricebook.people.person import Person

__all__ = ["People", "Person"]
