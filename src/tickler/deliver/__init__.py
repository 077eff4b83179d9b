"""DO: hand fires to their targets."""

from tickler.deliver.claim_loop import Summary
from tickler.deliver.run_options import RunOptions

__all__ = ["RunOptions", "Summary"]
