"""Values that have cost an interpreter time, memory or stack, and ordinary ones of the same kinds."""

from __future__ import annotations

PRELUDE = """
import abc, array, bisect, cmath, collections, contextlib, copy, dataclasses, datetime, decimal, enum, fractions
import functools, gc, heapq, io, itertools, json, math, operator, os, os.path, queue, random, re, resource, statistics
import string, struct, sys, threading, types, typing
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
M = 2 ** 61 - 1
Point = namedtuple('Point', 'x y')
Wide = namedtuple('Wide', ['a' + str(n) for n in range(100)])
kept = [None]
random.seed(1)
class Plain: pass
class Same:
    def __hash__(self): return 1
class Loud:
    def __repr__(self): return 'a' * 100_000
class Keys:
    def __getitem__(self, key): return key
    def __iter__(self): return iter([shared((1,))])
    def __eq__(self, other): return False
    def __hash__(self): return 1
class Endless:
    def __iter__(self): return self
    def __next__(self): return shared((1,))
class Wrong(ValueError): pass
class Rows(list): pass
class Table(dict):
    def __missing__(self, key): return shared((1,))
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10 ** 9
class Slotted: __slots__ = ('a',)
@dataclasses.dataclass(order=True)
class Data:
    a: object
    b: object = None
class Indexed:
    def __getitem__(self, index): return shared((1,))
class Swallowing:
    def __enter__(self): return self
    def __exit__(self, *error): return True
class Named(typing.NamedTuple):
    a: object
    b: object = 1
    def both(self): return (self, self)
def shared(value):
    kind = type(value)
    for _ in range(60):
        value = kind([value, value])
    return value
def deep(wrap, value=None):
    for _ in range(2_000):
        value = wrap(value)
    return value
def colliding(count=800):
    return [k * M + 1 for k in range(count)]
def spun(value):
    def generator(source):
        yield 0
        for item in source:
            yield item
            yield item
            yield item
    for _ in range(50):
        value = generator(value)
        next(value), next(value)
    return value
@functools.lru_cache
def remembered(value):
    return value
def caught(kind):
    try:
        raise Wrong(1)
    except kind:
        return 1
def raised(value):
    try:
        raise ValueError(value)
    except ValueError as error:
        return error
def finally_(value):
    try:
        return value
    finally:
        str(value)
def managed(value):
    with value as inner: return inner
def swallowed(value):
    with Swallowing(), contextlib.suppress(Exception): return [item for item in value]
def placed(value):
    match value:
        case Data(a, Data(b)) | Named(a, b) | Level(b) | [Data(a=b), *a]: return a
        case list(a) | dict(a) | str(a): return a
@contextlib.contextmanager
def around(value):
    yield value
def attributed(value):
    plain = Plain()
    setattr(plain, 'a', value)
    return getattr(plain, 'a'), hasattr(plain, 'b')
def written(value):
    file = io.StringIO()
    print(value, value, file=file)
    return file
def matched(value):
    match value:
        case [first, *rest]: return rest
        case {1: first, **rest}: return rest
        case _: return value
def unpacked(value):
    first, *rest = value
    return rest
def called(value):
    return (lambda *args, **kwargs: (args, kwargs))(*value)
def named(value):
    return (lambda *args, **kwargs: (args, kwargs))(**value)
def joined(a, b):
    a |= b
    return a
def added(a, b):
    a += b
    return a
def taken(a, b):
    a -= b
    return a
def multiplied(a, b):
    a *= b
    return a
def sliced(a, b, c):
    a[b:c] = a
    return a
def deleted(a, b):
    del a[b]
    return a
def stored(a, b, c):
    a[b] = c
    return a
def looped(value):
    return [item for item in value]
def yielded(value):
    return (yield from value)
"""
"""Interpreted before each program: what its values and its statements are made with."""

KINDS: dict[str, tuple[str, list[str]]] = {
    "nothing": ("None", ["..."]),
    "boolean": ("True", ["False"]),
    "integer": ("600", ["1 << 65_000", "-(1 << 65_000)", "10 ** 18", "M", "0", "-1"]),
    "float": ("1.5", ["1e308", "float('nan')", "float('inf')", "5e-324"]),
    "complex": ("1j", ["complex(1e308, 1e308)", "complex('nan')"]),
    "text": (
        "'a'",
        ["'a' * 200_000", "'b' * 200_000 + 'a'", "'\\u4e00' * 99_000", "'\\u2028' * 99_000", "'a b' * 99_000",
         "'%(' * 99_000", "'%(a(b)c)9999999d'", "'%d' * 9_000", "'%(a)s' * 9_000", "'{' * 99_000", "'{0}' * 9_000",
         "'{:9999}' * 99", "'1' * 4_300", "'f' * 16_000", "'\\u0390' * 99_000", "'(a*)*b'", "'(a)' * 300",
         "'[\\u0100-\\uffff]' * 120", "'\\\\g<0>' * 30", "'(?i)' + '[a-\\uffff]' * 99", "'\\x00' * 99_000"],
    ),
    "bytes": ("b'ab'", ["b'a' * 200_000", "bytes(200_000)"]),
    "list": (
        "[3, 1]",
        ["shared([1])", "deep(lambda v: [v])", "[0] * 20_000", "[1 << 14_000] * 9_000", "['a' * 1_000] * 20_000",
         "colliding()", "[Same() for _ in range(300)]", "[Loud()] * 1_000", "[shared((1,))] * 3",
         "[(k * M, 1) for k in range(600)]", "list('\\u4e00' * 9_000)", "[float(2 ** k) for k in range(999)]",
         "[range(9)] * 9_000", "[[0] * 999] * 999", "[{1: 2}] * 9_000", "['a'] * 20_000", "[Plain()] * 20_000",
         "[[(1, 2)] * 9] * 9"],
    ),
    "tuple": (
        "(1, 'a')",
        ["shared((1,))", "deep(lambda v: (v,))", "(0,) * 20_000", "(1 << 14_000,) * 9_000", "tuple(colliding())",
         "(shared([1]), 1)", "(Loud(),) * 1_000", "(deep(lambda v: (v,)), 1)"],
    ),
    "types": ("(ValueError, int)", ["shared((int,))", "deep(lambda v: (v,), int)", "(int,) * 20_000"]),
    "type": ("ValueError", ["int", "type", "object", "OSError", "list", "dict", "Wrong", "deque", "Counter"]),
    "set": (
        "{3, 1}",
        ["set(colliding())", "set(range(2_000))", "{Same() for _ in range(300)}",
         "{frozenset([k]) for k in range(999)}",
         "{complex(-1000003 * k, k) for k in range(800)}", "{(k * M, 1) for k in range(600)}"],
    ),
    "frozenset": (
        "frozenset({1})",
        ["frozenset(colliding())", "deep(lambda v: frozenset([v]))", "frozenset(range(2_000))"],
    ),
    "dict": (
        "{'a': 1, 1: [2]}",
        ["dict.fromkeys(colliding(), 1)", "dict.fromkeys(range(2_000))", "deep(lambda v: {1: v})", "{1: shared([1])}",
         "{Same(): 1 for _ in range(300)}", "{'a': 'b' * 99_000}", "{'k' + str(k): k for k in range(999)}",
         "{k: 'a' * 1_000 for k in range(128)}", "dict.fromkeys(range(128), '\\u4e00' * 9_000)"],
    ),
    "defaultdict": (
        "defaultdict(int)",
        ["defaultdict(list, {1: shared([1])})", "deep(lambda v: defaultdict(int, {1: v}))",
         "defaultdict(lambda: [0] * 9_999)"],
    ),
    "ordered": (
        "OrderedDict({1: 2})",
        ["deep(lambda v: OrderedDict({1: v}))", "OrderedDict.fromkeys(colliding(), 1)"],
    ),
    "counter": (
        "Counter('aab')",
        ["Counter({'a': 'b' * 9_999})", "Counter(range(2_000))", "Counter({1: shared((1,))})", "Counter({1: 10 ** 9})",
         "Counter(colliding())", "deep(lambda v: Counter({1: v}))"],
    ),
    "deque": ("deque([1, 2])", ["deep(lambda v: deque([v]))", "deque(range(2_000))", "deque([shared([1])])"]),
    "record": ("Point(1, 2)", ["Point(shared((1,)), 1)", "Wide(*range(100))", "deep(lambda v: Point(v, 1))"]),
    "iterator": (
        "iter([1, 2])",
        ["itertools.count()", "itertools.repeat('a' * 99_000)", "iter([shared((1,))] * 3)", "iter(colliding())",
         "spun(iter([1] * 999))", "zip(*[range(999)] * 9_000)", "itertools.count(2 ** 255)", "iter('\\u4e00' * 9_000)",
         "map(lambda *a: a, *[range(99)] * 9_000)", "(shared((1,)) for _ in range(9))"],
    ),
    "range": ("range(5)", ["range(10 ** 12)", "range(2 ** 255, 2 ** 255 + 10 ** 6)", "range(-(10 ** 6), 10 ** 6, 3)"]),
    "keys": ("{1: 2}.keys()", ["dict.fromkeys(colliding()).keys()", "dict.fromkeys(range(2_000)).keys()"]),
    "values": ("{1: 2}.values()", ["{1: shared([1])}.values()"]),
    "items": ("{1: 2}.items()", ["{1: shared((1,))}.items()", "dict.fromkeys(range(2_000)).items()"]),
    "ordered keys": ("OrderedDict({1: 2}).keys()", ["OrderedDict.fromkeys(range(2_000)).keys()"]),
    "ordered values": ("OrderedDict({1: 2}).values()", ["OrderedDict({1: shared([1])}).values()"]),
    "ordered items": ("OrderedDict({1: 2}).items()", ["OrderedDict({1: shared((1,))}).items()"]),
    "function": (
        "lambda *args: 1",
        ["lambda *args: args", "lambda *args: shared((1,))", "lambda *args: 'a' * 9_000", "lambda *args: 1 << 60_000",
         "lambda *args: [0] * 2_000", "lambda *args: args[0] is None", "len",
         "str", "lambda *args: args[0]"],
    ),
    "object": (
        "Plain()",
        ["Keys()", "Loud()", "Same()", "Endless()", "Wrong(shared((1,)))", "Indexed()", "Slotted()", "Level.HIGH",
         "Swallowing()", "around(1)", "deep(around)", "deep(contextlib.nullcontext)"],
    ),
    "data": ("Data(1)", ["Data(shared((1,)))", "deep(Data)", "Data(colliding())", "deep(lambda v: Data(1, v))"]),
    "named": ("Named(1)", ["Named(shared((1,)))", "deep(Named)"]),
    "rows": ("Rows([1])", ["Rows([shared([1])])", "Rows([0] * 20_000)", "deep(lambda v: Rows([v]))"]),
    "table": (
        "Table({1: 2})",
        ["Table({1: shared([1])})", "Table(dict.fromkeys(colliding()))", "deep(lambda v: Table({1: v}))"],
    ),
    "bytearray": ("bytearray(b'ab')", ["bytearray(200_000)", "bytearray(b'a' * 200_000)"]),
    "file": (
        "io.StringIO('a\\nb')",
        ["io.StringIO('a' * 90_000)", "io.StringIO('\\n' * 90_000)", "io.BytesIO(b'\\n' * 200_000)", "sys.stdin"],
    ),
    "output": ("sys.stdout", ["sys.stderr", "sys.stdout.buffer"]),
    "array": (
        "array.array('i', [3, 1])",
        ["array.array('i', range(9_000))", "array.array('d', [0.5]) * 9_000", "array.array('u', 'a' * 9_000)"],
    ),
    "decimal": (
        "decimal.Decimal('1.5')",
        ["decimal.Decimal('1e4999')", "decimal.Decimal('-1e-4999')", "decimal.Decimal('9' * 999)",
         "decimal.Decimal('nan')", "decimal.Decimal('snan')", "decimal.Decimal('inf')"],
    ),
    "fraction": (
        "fractions.Fraction(1, 2)",
        ["fractions.Fraction(1 << 60_000, 3)", "fractions.Fraction(1, (1 << 60_000) + 1)",
         "fractions.Fraction('1e4000')"],
    ),
    "date": ("datetime.date(2024, 2, 29)", ["datetime.date(9999, 12, 31)"]),
    "datetime": ("datetime.datetime(2024, 2, 29)", ["datetime.datetime(9999, 12, 31)"]),
    "time": ("datetime.time(1, 2)", ["datetime.time(23, 59, 59, 999_999)"]),
    "delta": ("datetime.timedelta(1)", ["datetime.timedelta(999_999_999)"]),
    "random": ("random.Random(1)", ["random.Random('a' * 90_000)", "random.Random(1 << 60_000)"]),
    "queue": ("queue.Queue()", ["queue.PriorityQueue()", "threading.Lock()", "threading.Thread(target=shared)"]),
    "chain": (
        "collections.ChainMap({1: 2})",
        ["collections.ChainMap({1: shared([1])})", "deep(collections.ChainMap)",
         "collections.ChainMap(dict.fromkeys(colliding()), dict.fromkeys(range(2_000)))"],
    ),
    "json": (
        "'[1]'",
        ["'[' * 90_000", "'[[],' * 30_000", "'{\"a\":' * 90", "'1' * 90_000", "'\"' + 'a' * 90_000 + '\"'"],
    ),
    "struct": ("'2s'", ["'1000000000x'", "'9999999999999s'", "'1000000B'", "'i' * 90_000", "'ii' * 99"]),
    "date text": ("'2024-02-29'", ["'%Y' * 90_000", "'%' * 90"]),
    "date format": ("'%Y-%m-%d'", ["'%Y' * 90_000", "'%9999999d'", "'%c'"]),
    "field": ("dataclasses.field(default=1)", ["dataclasses.field(default_factory=lambda: shared((1,)))"]),
    "context": ("decimal.getcontext()", ["decimal.getcontext()"]),
    "rounding": ("decimal.ROUND_HALF_UP", ["decimal.ROUND_DOWN"]),
    "class": ("Plain", ["Data", "Level", "Rows", "Table", "Named", "abc.ABC"]),
    "enumeration": ("Level", ["typing.Any"]),
    "input": ("0", ["1"]),
    "limit": ("5_000", ["10 ** 9"]),
    "file name": ("'input.txt'", ["'a' * 90_000 + '.txt'"]),
    "name": ("'a'", ["'__class__'", "'b' * 99_000"]),
    "error": (
        "ValueError(1)",
        ["ValueError(shared((1,)))", "OSError(1, 'a', shared((1,)))", "deep(lambda v: OSError(1, v))",
         "deep(lambda v: SystemExit(v))", "KeyError('a' * 99_000)"],
    ),
    "cached": ("remembered", ["functools.lru_cache(lambda v: [v] * 9_999)"]),
    "pattern": ("re.compile('(a)b')", ["re.compile('(a*)*b')", "re.compile('(a)?' * 200)", "re.compile('')"]),
    "match": (
        "re.match('(?P<x>a)b', 'ab')",
        ["re.match('(a)?' * 200, 'a' * 100)", "re.match('(a)*', 'a' * 99_000)"],
    ),
    "key": ("functools.cmp_to_key(lambda a, b: 0)(1)", ["deep(functools.cmp_to_key(lambda a, b: 0))"]),
}  # fmt: skip
"""Of each kind of value an ordinary one and hostile ones, as expressions."""
