"""Conformance kit of a fire store, composed of its parts."""

from tickler.testing.bad_row_contract import BadRowContract
from tickler.testing.byte_budget_contract import ByteBudgetContract
from tickler.testing.claim_contract import ClaimContract
from tickler.testing.health_contract import HealthContract
from tickler.testing.history_contract import HistoryContract
from tickler.testing.lease_contract import LeaseContract
from tickler.testing.lifecycle_contract import LifecycleContract
from tickler.testing.manual_change_contract import ManualChangeContract
from tickler.testing.missed_contract import MissedContract
from tickler.testing.overlap_contract import OverlapContract
from tickler.testing.postpone_contract import PostponeContract
from tickler.testing.release_contract import ReleaseContract
from tickler.testing.settle_contract import SettleContract


class FireStoreContract(
    ClaimContract,
    ByteBudgetContract,
    BadRowContract,
    MissedContract,
    OverlapContract,
    LeaseContract,
    SettleContract,
    ReleaseContract,
    PostponeContract,
    ManualChangeContract,
    LifecycleContract,
    HistoryContract,
    HealthContract,
):
    """Requirements on a fire store. `StoreContract` documents the fixtures."""
