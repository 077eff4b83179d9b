"""Uses the client that openapi-python-client has generated beside it; prints a line an answer."""

# mypy: ignore-errors
# ruff: noqa: T201
import sys

from tickler_client import AuthenticatedClient
from tickler_client.api.schedules import (
    delete_schedule,
    get_schedule,
    import_schedules,
    list_schedules,
    patch_schedule,
    pause_schedule,
    put_schedule,
    resume_schedule,
    why_schedule,
)
from tickler_client.models import HttpTargetBody, HttpTargetBodyType, PolicyBody, ScheduleBody, SchedulePatch

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)
place = {"owner": "u1", "key": "k/1", "client": client}

target = HttpTargetBody(type_=HttpTargetBodyType.HTTP, url="https://example.org/hook")
body = ScheduleBody(when="0 9 * * *", tz="Europe/Paris", target=target, payload={"n": [1, None]}, policy=PolicyBody(attempts=3))
print(put_schedule.sync_detailed(**place, body=body, if_none_match="*").status_code.value)
got = get_schedule.sync(**place)
print(got.when)
print(got.policy.attempts)
print(*(each.key for each in list_schedules.sync(client=client, owner="u1", limit=10).items))
print(why_schedule.sync(**place).sentence)
patched = patch_schedule.sync(**place, body=SchedulePatch(when="0 10 * * *"))
print(patched.when)
print(patched.policy.attempts)
assert pause_schedule.sync(**place).state == "paused"
assert resume_schedule.sync(**place, if_match="*").state == "active"
assert import_schedules  # is there, and takes bytes
print(delete_schedule.sync_detailed(**place, if_match="*").status_code.value)
print(get_schedule.sync_detailed(**place).status_code.value)
