"""A web application with its worker in the same process: reminders that users make.

pip install '.[server]' fastapi        then        uvicorn examples.fastapi_app:app
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from fastapi import FastAPI, HTTPException, Response
from pydantic import AwareDatetime, BaseModel

import tickler
from tickler import At, Delivery, PythonTarget, Schedule

t = tickler.connect(os.environ.get("TICKLER_STORE", "sqlite:///reminders.db"))
sent: list[str] = []


@t.handler("remind")
async def remind(delivery: Delivery) -> None:
    """Send the mail. Do it once: `delivery.id` is the same on every attempt."""
    await asyncio.sleep(float(os.environ.get("MAIL_S", "0")))
    sent.append(f"{delivery.owner}: {delivery.payload}")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    try:
        async with t, t.running():
            yield
    except Exception:
        logging.getLogger("app").exception("the worker has stopped, and so does this process: start it again")
        signal.raise_signal(signal.SIGTERM)
        raise


app = FastAPI(lifespan=lifespan)


class Reminder(BaseModel):
    at: AwareDatetime
    text: str


@app.put("/reminders/{user}/{name}")
async def put_reminder(user: str, name: str, reminder: Reminder) -> dict[str, datetime]:
    schedule = Schedule(owner=user, key=name, when=At(reminder.at), target=PythonTarget("remind"), payload=reminder.text)
    try:
        await t.schedules.put(schedule)
    except tickler.InvalidInput as error:
        raise HTTPException(422, str(error)) from None
    return {"at": reminder.at}


@app.get("/sent")
async def list_sent() -> list[str]:
    return sent


@app.get("/health")
async def health(response: Response) -> dict[str, int]:
    """Answer 503 without a worker, so that a load balancer or an orchestrator replaces this process."""
    response.status_code = 200 if t.own_workers else 503
    return {"workers": len(t.own_workers), "in_flight": t.in_flight}
