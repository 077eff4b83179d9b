"""What `slothpost serve --demo` shows: three made-up products, and local networks and sources to try everything with."""

from slothpost.demo.demo import Demo, open_demo
from slothpost.demo.past import DEMO_USER

__all__ = ["DEMO_USER", "Demo", "open_demo"]
