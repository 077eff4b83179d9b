"""The schema of a table as one page of HTML."""

from tickler.table.schema.page.document import GENERATOR, html_page

__all__ = ["GENERATOR", "html_page"]
