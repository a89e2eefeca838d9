"""An event loop whose time is simulated, and whose tasks belong to nodes that can crash, pause and resume.

Nothing waits: if no callback is ready, the clock jumps to the next timer. A node is a simulated process. Its tasks carry it in
their context, so the loop knows whose callback it runs: those of a crashed node never run again, at whatever point they were,
and those of a paused one run later. Callbacks of one node run in the order of asyncio; between nodes, a seed decides.

Takes: a seed; coroutines, each for a node. Gives: what they did, the same for the same seed. Never: waits, starts a thread,
opens a file; runs code of a node that has crashed, not even its cleanup.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any

from fairlead.transport.clocks import CLOCKS, Clocks

EPOCH_SECONDS = 1_800_000_000.0
"""The wall clock at the beginning of every run: in 2027, so that times are as long as in real runs."""
STEPS_MAX = 300_000
"""A run of the live simulation takes some thousands."""
CLOSES_MAX = 8
"""Cleanup that awaits is closed again: code in nested `finally` blocks, of which no program has many."""


class SimulatedNode(Clocks):
    """A simulated process, with its own clocks. `skew`: how many seconds its wall clock is ahead."""

    def __init__(self, name: str, loop: SimulatedLoop) -> None:
        self.name, self._loop, self.skew = name, loop, 0.0
        self.crashed = self.paused = False
        self.steps = 0
        self.trap: tuple[int, Callable[[], None]] | None = None
        """After so many of its callbacks, what happens to it."""
        self.ready: deque[SimulatedCall] = deque()
        self.number = loop.nodes_made
        loop.nodes_made += 1
        loop.nodes.append(self)

    def wall(self) -> float:
        return EPOCH_SECONDS + self._loop.time() + self.skew

    def monotonic(self) -> float:
        return self._loop.time()

    def busy(self) -> float:
        return 0.0

    @property
    def process(self) -> int:
        return self.number

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run it as a task of this node."""
        context = copy_context()
        context.run(NODE.set, self)
        context.run(CLOCKS.set, self)
        return self._loop.create_task(work, name=self.name, context=context)

    def crash(self) -> None:
        """As kill -9: nothing of it runs any more."""
        self.crashed = True
        self.ready.clear()
        self._loop.nodes.remove(self)

    def __str__(self) -> str:
        return self.name


NODE: ContextVar[SimulatedNode] = ContextVar("NODE")


class SimulatedCall(asyncio.TimerHandle):
    """A callback to run, and the node it belongs to."""

    __slots__ = ("node",)

    def __init__(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], loop: SimulatedLoop, context: Context
    ) -> None:
        """The attributes of its bases, without their checks: a run makes thousands of them."""
        self._when, self._callback, self._args, self._loop, self._context = when, callback, args, loop, context
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None
        self.node = context.get(NODE, loop.world)

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


class SimulatedLoop(asyncio.BaseEventLoop):
    """`world`: the node of everything that is not a simulated process, as the servers and the network; it never fails."""

    _closed: bool
    """Of the base; `is_closed()` would be called thousands of times in a run."""

    def __init__(self, seed: int, steps_max: int = STEPS_MAX) -> None:
        super().__init__()
        self._now, self._count, self._steps, self._steps_max = 0.0, 0, 0, steps_max
        self.nodes: list[SimulatedNode] = []
        """Those that run."""
        self.nodes_made = 0
        self.world = SimulatedNode("world", self)
        self._rolls = random.Random(seed)
        self._timers: list[tuple[float, int, SimulatedCall]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self.trouble: list[str] = []
        self._stopped = False
        self.set_exception_handler(self._note)

    def _note(self, loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        if not self.is_closed():
            self.trouble.append(f"{what.get('message')}: {what.get('exception')!r}")

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimulatedCall:
        call = SimulatedCall(self._now, callback, args, self, copy_context() if context is None else context)
        if not (call.node.crashed or self._closed):
            call.node.ready.append(call)
        return call

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimulatedCall:
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimulatedCall:
        return self.timer(when, callback, args, copy_context() if context is None else context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimulatedCall:
        return self.timer(self._now + delay, callback, args, copy_context() if context is None else context)

    def timer(self, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> SimulatedCall:
        call = SimulatedCall(when, callback, args, self, context)
        if not (call.node.crashed or self._closed):
            self._count += 1
            heappush(self._timers, (when, self._count, call))
        return call

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is dropped when its time has come."""

    def create_task(  # type: ignore[override]
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)  # those of crashed nodes must not be collected: their cleanup would run
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """At once: threads would run in an order of their own."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _run_once(self) -> None:
        """Callbacks until the loop is stopped; `run_forever` of the standard library calls this until then."""
        roll = self._rolls.random
        self._stopped = False
        while not self._stopped:
            self._steps += 1
            if self._steps > self._steps_max:
                self._stuck(f"{self._steps_max:,} steps do not end")
                return
            able = [each for each in self.nodes if each.ready and not each.paused]
            while not able:
                if not self._timers:
                    self._stuck("nothing is left to do")
                    return
                self._wake()
                able = [each for each in self.nodes if each.ready and not each.paused]
            node = able[0] if len(able) == 1 else able[int(roll() * len(able))]
            call = node.ready.popleft()
            if call._cancelled:
                continue
            call._context.run(call._callback, *call._args)
            node.steps += 1
            if node.trap is not None and node.steps >= node.trap[0]:
                (_, happens), node.trap = node.trap, None
                happens()

    def stop(self) -> None:
        self._stopped = True
        super().stop()

    def _wake(self) -> None:
        """The clock jumps to the next timers, whose callbacks are ready then."""
        timers = self._timers
        self._now = now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= now:
            call = heappop(timers)[2]
            if not call._cancelled and not call.node.crashed:
                call.node.ready.append(call)

    def _stuck(self, why: str) -> None:
        self.trouble.append(why)
        self.stop()

    def simulate(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run it as the world's, and return its result. Afterwards the loop is closed, and nothing of the run is left."""
        enabled = gc.isenabled()
        gc.disable()  # which generators are abandoned must not depend on when the collector runs
        try:
            return self.run_until_complete(self.world.start(work))
        except RuntimeError:
            if not self.trouble:
                raise
        finally:
            self.close()
            for task in self._tasks:
                _closed(task)
            self._tasks.clear()
            if enabled:
                gc.enable()


def _closed(task: asyncio.Task[Any]) -> None:
    """Ends a task that is left, whatever its cleanup does: no call that it makes runs."""
    if task.done():
        if not task.cancelled():
            task.exception()  # it counts as retrieved
        return
    coroutine: Any = task.get_coro()
    for _ in range(CLOSES_MAX):
        try:
            coroutine.close()
            return
        except BaseException:
            continue
