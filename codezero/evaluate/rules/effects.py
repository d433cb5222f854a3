"""Finds forbidden side effects in a syntax tree: access to what is outside the program, or to its interpreter."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator

from codezero.evaluate.rules.solution import BUILTINS, KEPT, RuleScore, Solution, broken
from codezero.tasks.testcases import FunctionNode, bound_name

_PURE_MODULES = frozenset(
    """__future__ abc argparse array ast base64 binascii bisect calendar cmath codecs collections colorsys contextlib
    contextvars copy csv dataclasses datetime decimal difflib doctest enum errno fractions functools gc graphlib
    hashlib heapq hmac html inspect io ipaddress itertools json keyword locale logging math numbers operator os
    pathlib pprint queue random re resource secrets shlex statistics string struct sys textwrap time timeit tokenize
    traceback types typing unicodedata unittest urllib uuid warnings weakref zlib zoneinfo""".split()  # noqa: SIM905
)
"""Modules of the standard library that only compute; of those in `_SAFE_NAMES` only these names do. Any other module of
the standard library is a side effect; a module outside it is none, whether or not it can be imported."""
_SAFE_NAMES = {
    "inspect": frozenset({"Parameter", "isclass", "isfunction", "isgenerator", "isgeneratorfunction", "signature"}),
    "pathlib": frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"}),
    "codecs": frozenset({"encode", "decode"}),
    "gc": frozenset({"collect", "disable", "enable", "freeze", "isenabled"}),
    "io": frozenset({"StringIO", "BytesIO", "IOBase", "RawIOBase", "BufferedReader", "TextIOWrapper"}),
    "logging": frozenset({"getLogger", "debug", "info", "warning", "error", "basicConfig", "DEBUG", "INFO", "WARNING"}),
    "os": frozenset({"path", "sep", "linesep", "curdir", "pardir", "extsep"}),
    "os.path": frozenset(
        ["basename", "dirname", "split", "splitext", "join", "normpath", "isabs", "commonprefix", "commonpath", "sep"]
    ),
    "resource": frozenset({"RLIMIT_STACK", "RLIM_INFINITY", "getrlimit", "setrlimit"}),
    "sys": frozenset(
        """argv stdin stdout stderr maxsize maxunicode float_info int_info byteorder version version_info platform
        getsizeof getrecursionlimit setrecursionlimit set_int_max_str_digits intern hexversion""".split()  # noqa: SIM905
    ),
    "types": frozenset({"SimpleNamespace", "MappingProxyType", "GeneratorType", "NoneType", "UnionType"}),
    "unittest": frozenset({"TestCase", "main"}),
    "urllib": frozenset({"parse"}),
}
_NEVER_WHOLE = frozenset({"inspect", "io", "os", "pathlib"})
"""Modules of which `*` brings names that are not safe, where honest code names what it takes."""
_PROGRAM_NAMES = {
    "os": frozenset({"read", "write", "fstat", "environ"}),
    "os.path": frozenset({"exists", "isfile"}),
    "sys": frozenset({"exit", "__stdin__", "__stdout__"}),
    "io": frozenset({"open"}),
}
"""Further safe names for programs: fast reading of stdin as contestants write it, and a check for an input file."""
_PROGRAM_MODULES = frozenset({"threading", "fileinput", "atexit"})
"""Further modules for programs: a thread with a large stack, input by lines, and output at the end."""
_OUTSIDE_MODULES = frozenset(
    """aiohttp boto3 cffi codezero hivemind httpx IPython paramiko pexpect pip psutil pytest _pytest requests
        setuptools urllib3 websocket websockets""".split()  # noqa: SIM905
)
_OUTSIDE_ATTRIBUTES = frozenset(
    """system popen rmtree unlink savetxt loadtxt genfromtxt fromfile tofile memmap savez read_csv to_csv read_pickle
    to_pickle read_text write_text read_bytes write_bytes ctypeslib""".split()  # noqa: SIM905
)
"""Attributes that reach files and processes by modules outside the standard library, such as numpy."""
_BUILTINS = frozenset({"eval", "exec", "compile", "__import__", "open", "breakpoint", "globals", "__builtins__"})
_EXITS = frozenset({"exit", "quit", "SystemExit", "KeyboardInterrupt"})
_ESCAPES = frozenset(
    """__subclasses__ __globals__ __builtins__ __code__ __closure__ __bases__ __base__ __mro__ __import__ __loader__
    __spec__ __reduce__ __reduce_ex__ __getattribute__ __kwdefaults__ __defaults__ __self__ __func__
    __excepthook__ f_back f_globals f_locals f_builtins f_code gi_frame gi_code cr_frame ag_frame tb_frame tb_next
    co_code excepthook""".split()  # noqa: SIM905
)
_REFLECTION = frozenset({"getattr", "setattr", "delattr"})
_MAX_STRING_CHARS = 2_000


def _is_put_together(wanted: ast.expr) -> bool:
    return any(isinstance(part, ast.BinOp | ast.JoinedStr | ast.Call) for part in ast.walk(wanted))


def _may_escape(wanted: ast.expr) -> bool:
    """Returns whether text that is put together may name what code must not reach: not if it begins with a literal with
    which no such name begins, as `"visit_" + kind` does. Whoever hides a name on purpose finds a way; what then keeps
    code from anything is the dry run, which interprets no such name, or the sandbox."""
    beginning = _beginning(wanted)
    return not beginning or any(name.startswith(beginning) for name in _ESCAPES | _OUTSIDE_ATTRIBUTES)


def _beginning(node: ast.expr) -> str:
    """Returns the literal that text which is put together begins with; empty if that is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return _beginning(node.values[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return _beginning(node.left).partition("%")[0]
    return ""


def effects(solution: Solution) -> RuleScore:
    """Scores whether the code only computes: no files, network, processes, threads, exits, code made at run time,
    patched modules or access to the interpreter."""
    for line, what in _Effects(solution).found():
        return broken(f"line {line}: {what}")
    return KEPT


def _asked_for_names(node: ast.Compare) -> Iterator[int]:
    """Yields the ids of the callees such as `globals` in `"name" in globals()`, which gives no access to the names."""
    for sign, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(sign, ast.In | ast.NotIn) and isinstance(right, ast.Call) and not right.args:
            yield id(right.func)


def _members(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yields the names of the attributes that the code's classes define and that the code assigns."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield from (inner.name for inner in node.body if isinstance(inner, FunctionNode))
            fields = (inner.target for inner in node.body if isinstance(inner, ast.AnnAssign))
            yield from (field.id for field in fields if isinstance(field, ast.Name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


class _Effects:
    """The search for side effects in a solution's tree, which knows the module of each name."""

    def __init__(self, solution: Solution) -> None:
        self.nodes, self.is_program = solution.nodes, solution.requirements.is_program
        self.modules: dict[str, str] = {}
        """`module` or `module.name` by the name under which the code imports it."""
        self.defined: set[str] = set()
        """Names of functions and classes of the code."""
        self.assigned: set[str] = set()
        """Names of variables and parameters of the code, in any scope."""
        self.passed_over: set[int] = set()
        """Ids of name nodes that are harmless or checked elsewhere: the object of an attribute, an exception that
        `except` names, `in globals()`."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.modules[bound_name(alias)] = alias.name if alias.asname else bound_name(alias)
            elif isinstance(node, ast.ImportFrom):
                self.modules.update({bound_name(a): f"{node.module}.{a.name}" for a in node.names})
            elif isinstance(node, FunctionNode | ast.ClassDef):
                self.defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.assigned.add(node.id)
            elif isinstance(node, ast.arg):
                self.assigned.add(node.arg)
            elif isinstance(node, ast.Attribute):
                self.passed_over.add(id(node.value))
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                self.passed_over.update(id(inner) for inner in ast.iter_child_nodes(ast.Expr(value=node.type)))
            elif isinstance(node, ast.Compare):
                self.passed_over.update(_asked_for_names(node))

        is_alone = all(path.split(".")[0] in sys.stdlib_module_names for path in self.modules.values())
        self.members = frozenset(_members(self.nodes)) if is_alone else frozenset()
        """Names of attributes that are the code's own; none if it imports what is outside the standard library, whose
        attributes may have the same names."""

    def found(self) -> Iterator[tuple[int, str]]:
        """Yields (line, description) of each side effect."""
        for node in self.nodes:
            for what in self._look_at(node):
                yield getattr(node, "lineno", 0), what

    def _look_at(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (what for alias in node.names for what in self._imported(alias.name))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from self._imported(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from self._name(node)
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(node.value, node.attr, changes=not isinstance(node.ctx, ast.Load))
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.keyword) and node.arg == "eval_str":
            yield "evaluates the text of annotations"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _MAX_STRING_CHARS:
            yield from (f"names {name} in a string" for name in _ESCAPES if "__" in name and name in node.value)

    def _imported(self, path: str) -> Iterator[str]:
        root, *rest = path.split(".")
        if root in _OUTSIDE_MODULES or (root in sys.stdlib_module_names and not self._is_allowed(root)):
            yield f"imports {root}"
        elif rest and rest[-1] in _OUTSIDE_ATTRIBUTES | _ESCAPES:
            yield f"imports {path}"
        else:
            yield from self._unsafe(path)

    def _is_allowed(self, module: str) -> bool:
        return module in _PURE_MODULES or (self.is_program and module in _PROGRAM_MODULES)

    def _unsafe(self, path: str) -> Iterator[str]:
        """Yields the unsafe names in `path` of modules that are safe only in part."""
        steps = path.split(".")
        for end in range(1, len(steps)):
            module = ".".join(steps[:end])
            safe = _SAFE_NAMES.get(module)
            if safe is None:
                continue
            if self.is_program:
                safe = safe | _PROGRAM_NAMES.get(module, frozenset())
            if steps[end] not in safe and (steps[end] != "*" or module in _NEVER_WHOLE):
                yield f"uses {'.'.join(steps[: end + 1])}"

    def _name(self, node: ast.Name) -> Iterator[str]:
        name = node.id
        if name in self.modules:
            if self.modules[name] in _SAFE_NAMES and id(node) not in self.passed_over:
                yield f"hands the module {self.modules[name]} around"
        elif name in self.defined or name in self.assigned or (name == "globals" and id(node) in self.passed_over):
            return
        elif name in _BUILTINS and not (name == "open" and self.is_program):
            yield f"uses {name}"
        elif name in _EXITS and not self.is_program and id(node) not in self.passed_over:
            yield f"ends the program with {name}"

    def _call(self, node: ast.Call) -> Iterator[str]:
        if not isinstance(node.func, ast.Name) or node.func.id in self.defined:
            return
        name = node.func.id
        if name in self.assigned and name in _BUILTINS | _EXITS and not (name == "open" and self.is_program):
            yield f"calls {name}"
        if name in _REFLECTION and len(node.args) > 1:
            wanted = node.args[1]
            if isinstance(wanted, ast.Constant) and isinstance(wanted.value, str):
                yield from self._attribute(node.args[0], wanted.value, changes=name != "getattr")
            elif _is_put_together(wanted) and (_may_escape(wanted) or self._path(node.args[0]) is not None):
                yield f"{name} of a name that is put together"

    def _attribute(self, subject: ast.expr, name: str, *, changes: bool) -> Iterator[str]:
        if name in _ESCAPES or (name in _OUTSIDE_ATTRIBUTES and name not in self.members):
            yield f"uses .{name}"
        path = self._path(subject)
        if path is None:
            is_builtin = isinstance(subject, ast.Name) and subject.id in BUILTINS - self.defined - self.assigned
            if changes and is_builtin:
                yield f"changes .{name} of a builtin"
        elif changes and not (self.is_program and path == "sys"):
            yield f"changes {path}.{name}"
        else:
            yield from self._unsafe(f"{path}.{name}")

    def _path(self, node: ast.expr) -> str | None:
        """Returns the dotted path of a name in an imported module; None for anything else."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return None
        return ".".join([self.modules[node.id], *reversed(names)])
