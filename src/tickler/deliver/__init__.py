"""DO: deliver fires to their targets.

    claim_loop → dispatcher → attempt → targets/* → settlement_writer

`worker` runs the claim loop and a heartbeat under one name. The claim loop claims due fires and sleeps until there are more. The
dispatcher queues them and starts as many attempts as the limits allow. An attempt hands one fire to its target and turns the
outcome into a settlement. The settlement writer writes settlements to the store in batches.

Around the claim loop:
    claimer             how many fires a round claims, and of which owners; claim_size adapts that number
    lease_extender      extends the worker's leases; held_leases says which are due
    lease_keeper        does the same from a thread while the event loop is blocked
    takeover_hold       when expired leases of other workers may be taken over; clock_jump detects a clock that was set
    capable_workers     whether another worker can deliver to what is missing here
    history_pruner      deletes expired history
    heartbeat           reports the worker's status, and stops claiming while its clock is off
    activity_publisher  publishes recent attempts while a dashboard is open
    run_options, summary   settings of a run and of a worker; the result of a tick

Around the dispatcher:
    fair_queue          which owner's fire starts next, within the limits
    early_claims        fires that were claimed ahead of their instant
    payload_memory      how many bytes of payloads a worker holds; decoding_limit, how many it may decode
    shortage            claims less while file descriptors, memory or threads are exhausted (exhaustion detects that)
    missing_targets     targets that this worker cannot deliver to
    failure_log         logs failed attempts; log_throttle limits the number of lines

Around an attempt:
    target_registry     the deliverer of each kind of target; target_warnings, what is wrong with a URL before it is used
    abandonable_task    runs a deliverer that may ignore its cancellation; abandoned counts those that did
    retry, retry_after  what follows from an outcome, and when; the header Retry-After
    listeners           notified of rounds and attempts
    http_client/        sends HTTP deliveries; http_session fetches for applications (counted_tls bounds what arrives)
    address_guard       the addresses that may be connected to; dns_resolver looks names up
    deadlines           many timeouts on one timer; handler_thread runs a blocking function on a thread of its own
"""

from tickler.deliver.run_options import RunOptions
from tickler.deliver.summary import Summary

__all__ = ["RunOptions", "Summary"]
