"""Python sources of library modules, which library_interpreted loads."""

from __future__ import annotations

NAMESPACE = """
class SimpleNamespace:
    def __init__(self, /, **kwargs):
        _names(self).update(kwargs)

    def __repr__(self):
        kind = "namespace" if type(self) is SimpleNamespace else type(self).__name__
        return f"{kind}({', '.join([f'{name}={value!r}' for name, value in _names(self).items()])})"

    def __eq__(self, other):
        return _names(self) == _names(other) if isinstance(other, SimpleNamespace) else NotImplemented
"""
CONTEXTLIB = """
from functools import wraps as _wraps

class _Manager:
    def __init__(self, function, args, kwargs):
        self._made_by = function, args, kwargs
        self._generator = function(*args, **kwargs)

    def __call__(self, function):
        @_wraps(function)
        def call(*args, **kwargs):
            with _Manager(*self._made_by):
                return function(*args, **kwargs)
        return call

    def __enter__(self):
        try:
            return next(self._generator)
        except StopIteration:
            raise RuntimeError("generator didn't yield") from None

    def __exit__(self, kind, error, traceback):
        if kind is None:
            try:
                next(self._generator)
            except StopIteration:
                return False
            raise RuntimeError("generator didn't stop")
        try:
            self._generator.throw(error)
        except StopIteration as end:
            return end is not error
        except BaseException as raised:
            if raised is not error:
                raise
            return False
        raise RuntimeError("generator didn't stop after throw()")

def contextmanager(function):
    def make(*args, **kwargs):
        return _Manager(function, args, kwargs)
    return make

class suppress:
    def __init__(self, *kinds):
        self._kinds = kinds

    def __enter__(self):
        return None

    def __exit__(self, kind, error, traceback):
        return kind is not None and issubclass(kind, self._kinds)

class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *error):
        return None

class closing:
    def __init__(self, thing):
        self.thing = thing

    def __enter__(self):
        return self.thing

    def __exit__(self, *error):
        self.thing.close()
"""

THREADING = """
class Thread:
    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None):
        self._target, self._args, self._kwargs = target, args, kwargs or {}

    def run(self):
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self):
        try:
            self.run()
        except BaseException:
            pass  # its traceback goes to standard error

    def join(self, timeout=None):
        return None

    def is_alive(self):
        return False

class Lock:
    def __init__(self):
        self._held = False

    def acquire(self):
        if self._held:
            _wait_for_ever()
        self._held = True
        return True

    def release(self):
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self):
        return self._held

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *error):
        self.release()

def stack_size(size=0):
    return 0
"""
"""The source of `threading`. A thread runs to its end in `start`, which is one possible order of execution."""

QUEUE = """
from collections import deque
from heapq import heappop, heappush

class Empty(Exception):
    pass

class Full(Exception):
    pass

class Queue:
    def __init__(self, maxsize=0):
        self.maxsize = maxsize
        self.queue = self._new()

    def _new(self):
        return deque()

    def _put(self, item):
        self.queue.append(item)

    def _get(self):
        return self.queue.popleft()

    def qsize(self):
        return len(self.queue)

    def empty(self):
        return not self.queue

    def full(self):
        return 0 < self.maxsize <= len(self.queue)

    def put(self, item, block=True, timeout=None):
        if self.full():
            if block and timeout is None:
                _wait_for_ever()
            raise Full
        self._put(item)

    def get(self, block=True, timeout=None):
        if not self.queue:
            if block and timeout is None:
                _wait_for_ever()
            raise Empty
        return self._get()

    def put_nowait(self, item):
        self.put(item, False)

    def get_nowait(self):
        return self.get(False)

    def task_done(self):
        return None

class LifoQueue(Queue):
    def _new(self):
        return []

    def _get(self):
        return self.queue.pop()

class PriorityQueue(Queue):
    def _new(self):
        return []

    def _put(self, item):
        heappush(self.queue, item)

    def _get(self):
        return heappop(self.queue)

class SimpleQueue(Queue):
    def __init__(self):
        super().__init__()
"""

CHAIN_MAP = """
class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for one in self.maps:
            if key in one:
                return one[key]
        raise KeyError(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __contains__(self, key):
        return any(key in one for one in self.maps)

    def _merged(self):
        found = {}
        for one in self.maps[::-1]:
            found.update(one)
        return found

    def __iter__(self):
        return iter(self._merged())

    def __len__(self):
        return len(self._merged())

    def __bool__(self):
        return any(self.maps)

    def keys(self):
        return self._merged().keys()

    def values(self):
        return self._merged().values()

    def items(self):
        return self._merged().items()

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        if key not in self.maps[0]:
            raise KeyError(f"Key not found in the first mapping: {key!r}")
        del self.maps[0][key]

    def pop(self, key, *default):
        return self.maps[0].pop(key, *default)

    def new_child(self, m=None):
        return ChainMap({} if m is None else m, *self.maps)

    def __or__(self, other):
        if not isinstance(other, (dict, ChainMap)):
            return NotImplemented
        return type(self)({**self.maps[0], **other}, *self.maps[1:])

    def __ror__(self, other):
        if not isinstance(other, (dict, ChainMap)):
            return NotImplemented
        return type(self)({**other, **self._merged()})

    def __ior__(self, other):
        self.maps[0].update(other)
        return self

    @property
    def parents(self):
        return ChainMap(*self.maps[1:])

    def __repr__(self):
        return f"ChainMap({', '.join(map(repr, self.maps))})"

    def __eq__(self, other):
        if isinstance(other, ChainMap):
            return self._merged() == other._merged()
        return self._merged() == other if isinstance(other, dict) else NotImplemented

    __hash__ = None
"""
