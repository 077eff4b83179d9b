"""What a table looks like from outside: its schema as a value and as a page, and what an advisor says about it."""

from tickler.table.schema.finding import Advice, Answer, Finding
from tickler.table.schema.page import html_page
from tickler.table.schema.schema import Schema

__all__ = ["Advice", "Answer", "Finding", "Schema", "html_page"]
