"""What `pricebook serve --demo` shows: made stores and products, people, and changes that are due within minutes."""

from pricebook.demo.demo import Demo, open_demo
from pricebook.demo.staff import DEMO_PERSON

__all__ = ["DEMO_PERSON", "Demo", "open_demo"]
