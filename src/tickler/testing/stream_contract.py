"""Conformance kit of streams of `tickler.table`."""

from __future__ import annotations

from tickler.testing.change_log_contract import ChangeLogContract
from tickler.testing.consumer_contract import ConsumerContract


class StreamContract(ChangeLogContract, ConsumerContract):
    """All requirements on the changes of an engine. Override the fixture `engine`: see `StreamFixtures`."""
