import json

from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

import tickler
from reminders.scheduling import scheduler


@csrf_exempt  # only since nobody signs in here: a view that takes the user from a session needs the check
@require_http_methods(["GET", "PUT"])
def reminder(request, user, name):
    t = scheduler()
    if request.method == "PUT":
        given = json.loads(request.body)
        try:
            when = tickler.At(given.pop("at"))
            target = tickler.PythonTarget("remind")
            t.schedules.put(tickler.Schedule(owner=user, key=name, when=when, target=target, payload=given))
        except tickler.InvalidInput as error:
            return JsonResponse({"error": str(error)}, status=422)
    history = t.fires.history(user, name, limit=10).items
    return JsonResponse({"history": [{"happened": entry.happened, "answer": entry.answer} for entry in history]})


def health(request):
    """Tell whether some process delivers: each worker reports every 20 seconds."""
    t = scheduler()
    alive = [report.name for report in t.workers() if report.is_alive(t.now_ms())]
    return JsonResponse({"workers": alive}, status=200 if alive else 503)
