"""A Tickler or a table without `await`: one generic wrapper instead of a second copy of every method."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import wait
from contextlib import AbstractAsyncContextManager, contextmanager
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from tickler.database.callers_thread import hand_over
from tickler.errors import InvalidInput

FORKED = "this was opened in another process: call connect_sync after the fork, once in each"
INTERRUPTED_S = 10  # how long an interrupted call may take to roll back

B = TypeVar("B", bound="Blocking")
R = TypeVar("R")


class Blocking:
    """Wraps an object so that its coroutine methods block. They run on an event loop in a separate thread.

    Any thread may call. A waiting caller runs work that is bound to its thread, such as that of its own sqlite3 connection.
    Attributes with coroutine methods are wrapped too, `async with` becomes `with`, and `async for` becomes `for`; everything else
    is passed through.
    """

    def __init__(self, wrapped: object, loop: _Loop | None = None, *, owns_loop: bool = True) -> None:
        self._wrapped = wrapped
        self._loop = loop or _Loop()
        self._owns_loop = owns_loop

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._wrapped, name)
        if inspect.iscoroutinefunction(attribute):

            @functools.wraps(attribute)
            def call(*args: Any, **kwargs: Any) -> Any:
                return self._loop.run(attribute(*map(_given, args), **{key: _given(arg) for key, arg in kwargs.items()}))

            return call
        if inspect.isasyncgenfunction(inspect.unwrap(attribute)):
            return self._entered_or_iterated(attribute)
        return Blocking(attribute, self._loop, owns_loop=False) if _has_coroutines(attribute) else attribute

    def _entered_or_iterated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose result works with `with` or `for` where that of `function` needs `async`."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*map(_given, args), **{key: _given(arg) for key, arg in kwargs.items()})
            return self._entered(result) if hasattr(result, "__aenter__") else self._iterated(result)

        return call

    @contextmanager
    def _entered(self, manager: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
        entered = self._loop.run(manager.__aenter__())
        try:
            yield Blocking(entered, self._loop, owns_loop=False)
        except BaseException as error:
            if not self._loop.run(manager.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._loop.run(manager.__aexit__(None, None, None))

    def _iterated(self, items: AsyncGenerator[Any, None]) -> Iterator[Any]:
        end = object()
        try:
            while (item := self._loop.run(_next(items, end))) is not end:
                yield item
        finally:
            self._loop.finish(items.aclose())

    def beside(self, made: Callable[[Any], object], kind: type[B]) -> B:
        """Wrap what `made` returns for the wrapped object, on the same event loop, which stays this object's to end."""
        return kind(made(self._wrapped), self._loop, owns_loop=False)

    def wait_for(self, work: Callable[[Any], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine function with the wrapped object on its event loop, and return the result."""
        result: R = self._loop.run(work(self._wrapped))
        return result

    def open(self) -> Self:
        """Connect. `with` calls this, and `close` at its end."""
        if self._owns_loop:
            self._loop.start()
        try:
            self._loop.run(self._wrapped.open())  # type: ignore[attr-defined]  # it wraps any object that can be opened
        except BaseException:
            self._stop_loop()
            raise
        return self

    def close(self) -> None:
        if not self._loop.running:
            return
        try:
            self._loop.run(self._wrapped.close())  # type: ignore[attr-defined]  # and closed
        finally:
            self._stop_loop()

    def _stop_loop(self) -> None:
        if self._owns_loop:
            self._loop.stop()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *exc: object) -> None:
        self.close()


def _given(argument: Any) -> Any:
    """Return an argument as the wrapped object takes it. A generator may be bound to this thread, so it is consumed here."""
    if isinstance(argument, Blocking):
        return argument._wrapped
    return list(argument) if isinstance(argument, Iterator) else argument


def _has_coroutines(attribute: object) -> bool:
    return type(attribute).__module__.startswith("tickler.") and any(
        inspect.iscoroutinefunction(member) for member in vars(type(attribute)).values()
    )


async def _next(items: AsyncGenerator[Any, None], end: object) -> Any:
    return await anext(items, end)


class _Loop:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        return self._loop is not None and not self._forked

    @property
    def _forked(self) -> bool:
        """Tell whether this is a forked child, in which the thread does not exist."""
        return self._loop is not None and self._pid != os.getpid()

    def start(self) -> None:
        if self._forked:
            raise InvalidInput(FORKED)
        if self._loop is not None:
            raise InvalidInput("this is open already: use one `with`, and share it between threads as you like")
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tickler-loop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def finish(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run the end of an abandoned iterator, which may come on any thread, and after everything else has ended."""
        if not self.running:
            coroutine.close()
        elif threading.current_thread() is self._thread:
            assert self._loop is not None
            self._ending.add(task := self._loop.create_task(coroutine))
            task.add_done_callback(self._ending.discard)
        else:
            self.run(coroutine)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and return its result. An interrupted caller cancels the coroutine."""
        if self._loop is None or threading.current_thread() is self._thread:
            coroutine.close()
            raise InvalidInput(
                "this is not open: use it inside `with`, or call open() first"
                if self._loop is None
                else "this is the thread of the event loop, which would wait for itself: call from another thread"
            )
        if self._forked:
            coroutine.close()
            raise InvalidInput(FORKED)
        for_me: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

        async def with_caller() -> Any:
            hand_over.set(for_me.put)
            return await coroutine

        future = asyncio.run_coroutine_threadsafe(with_caller(), self._loop)
        future.add_done_callback(lambda _: for_me.put(None))
        try:
            while (work := for_me.get()) is not None:
                work()
        except BaseException:
            future.cancel()
            wait([future], timeout=INTERRUPTED_S)
            raise
        return future.result()
