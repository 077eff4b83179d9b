"""Conformance kit of engines of `tickler.table`."""

from __future__ import annotations

from tickler.testing.table_engine_contract import TableEngineContract
from tickler.testing.table_measure_contract import TableMeasureContract
from tickler.testing.table_metadata_contract import TableMetadataContract
from tickler.testing.table_query_contract import TableQueryContract
from tickler.testing.table_write_contract import TableWriteContract


class TableContract(TableWriteContract, TableQueryContract, TableMeasureContract, TableEngineContract, TableMetadataContract):
    """All requirements on an engine. Override the fixture `engine`: see `TableFixtures`."""
