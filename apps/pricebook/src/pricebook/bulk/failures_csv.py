"""Writes refused lines as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator

from pricebook.bulk.formulas import guarded
from pricebook.model import BulkFailure
from tickler.table import MISSING

WRITTEN_AT_A_TIME = 500


async def csv_of_failures(failures: AsyncIterator[BulkFailure]) -> AsyncIterator[bytes]:
    """Yield a CSV piece by piece. Reasons quote what was uploaded, so that a spreadsheet must not run them."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(("line", "other_line", "reason"))
    number = 0
    async for each in failures:
        writer.writerow((each.line, "" if each.other_line is MISSING else each.other_line, guarded(each.reason)))
        number += 1
        if number % WRITTEN_AT_A_TIME == 0:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()
