"""The conformance kit of what keeps fires: all its parts."""

from tickler.testing.bad_row_contract import BadRowContract
from tickler.testing.by_hand_contract import ByHandContract
from tickler.testing.byte_budget_contract import ByteBudgetContract
from tickler.testing.claim_contract import ClaimContract
from tickler.testing.give_back_contract import GiveBackContract
from tickler.testing.health_contract import HealthContract
from tickler.testing.history_contract import HistoryContract
from tickler.testing.lease_contract import LeaseContract
from tickler.testing.lifecycle_contract import LifecycleContract
from tickler.testing.missed_contract import MissedContract
from tickler.testing.overlap_contract import OverlapContract
from tickler.testing.settle_contract import SettleContract


class FireStoreContract(
    ClaimContract,
    ByteBudgetContract,
    BadRowContract,
    MissedContract,
    OverlapContract,
    LeaseContract,
    SettleContract,
    GiveBackContract,
    ByHandContract,
    LifecycleContract,
    HistoryContract,
    HealthContract,
):
    """What everything that keeps fires must do. See `StoreContract` for what to give it."""
