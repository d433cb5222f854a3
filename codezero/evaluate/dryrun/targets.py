"""Targets of assignments: names, attributes, items, and sequences of these."""

from __future__ import annotations

import ast
from typing import Any

from codezero.evaluate.dryrun.attributes import delete_attribute, get_attribute, set_attribute
from codezero.evaluate.dryrun.compiler import STATEMENTS, Expression, Statement, Store, Unit, refusal, refusal_of
from codezero.evaluate.dryrun.items import delete_item, get_item, set_item
from codezero.evaluate.dryrun.measure import first_items
from codezero.evaluate.dryrun.operators import in_place
from codezero.evaluate.dryrun.scope import CompileError
from codezero.evaluate.dryrun.values import UNBOUND, Frame


def target_store(unit: Unit, target: ast.expr) -> Store:
    """Returns a function that assigns to `target`."""
    if isinstance(target, ast.Name):
        return unit.store(target.id)
    if isinstance(target, ast.Tuple | ast.List):
        return _unpack(unit, target)
    if isinstance(target, ast.Attribute):
        value, name = unit.expression(target.value), unit.scope.mangled(target.attr)
        return lambda frame, new: set_attribute(value(frame), name, new)
    if isinstance(target, ast.Subscript):
        container, index = unit.expression(target.value), unit.expression(target.slice)
        return lambda frame, new: set_item(container(frame), index(frame), new)
    refuse = refusal(target)
    return lambda frame, new: refuse(frame)


def _unpack(unit: Unit, target: ast.Tuple | ast.List) -> Store:
    stars = [i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    if len(stars) > 1:
        raise CompileError("multiple starred expressions in assignment")
    if stars:
        return _unpack_starred(unit, target, stars[0])
    stores = [target_store(unit, part) for part in target.elts]
    count = len(stores)

    def assign(frame: Frame, value: Any) -> None:
        kind = type(value)
        items = value if kind is tuple or kind is list else first_items(value, count + 1)
        if len(items) != count:
            if len(items) > count:
                raise ValueError(f"too many values to unpack (expected {count})")
            raise ValueError(f"not enough values to unpack (expected {count}, got {len(items)})")
        for store, item in zip(stores, list(items), strict=True):
            store(frame, item)

    return assign


def _unpack_starred(unit: Unit, target: ast.Tuple | ast.List, star: int) -> Store:
    nodes = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
    stores = [target_store(unit, part) for part in nodes]
    after = len(stores) - star - 1

    def assign(frame: Frame, value: Any) -> None:
        items = first_items(value, None)
        if len(items) < len(stores) - 1:
            raise ValueError(f"not enough values to unpack (expected at least {len(stores) - 1}, got {len(items)})")
        end = len(items) - after
        for store, item in zip(stores, [*items[:star], items[star:end], *items[end:]], strict=True):
            store(frame, item)

    return assign


def _assign(unit: Unit, node: ast.Assign) -> Statement:
    value = unit.expression(node.value)
    if len(node.targets) == 1:
        target = node.targets[0]
        slot = unit.local_slot(target.id) if isinstance(target, ast.Name) else None
        if slot is not None:

            def assign_local(frame: Frame) -> None:
                frame[slot] = value(frame)

            return assign_local
        store = target_store(unit, target)

        def assign(frame: Frame) -> None:
            store(frame, value(frame))

        return assign
    stores = [target_store(unit, target) for target in node.targets]

    def assign_all(frame: Frame) -> None:
        new = value(frame)
        for store in stores:
            store(frame, new)

    return assign_all


def _annotated(unit: Unit, node: ast.AnnAssign) -> Statement:
    """Translates an annotated assignment. Like CPython, evaluates the annotation only outside functions."""
    evaluate: Expression = lambda frame: None  # noqa: E731
    if unit.scope.kind != "function" and not unit.future_annotations:
        evaluate = unit.expression(node.annotation)
    target, text = node.target, ast.unparse(node.annotation)
    is_of_class = "ClassVar" in text
    if unit.scope.kind == "class" and ("KW_ONLY" in text or "InitVar" in text):
        return refusal_of("this annotation of a dataclass")
    if unit.scope.kind == "class" and isinstance(target, ast.Name):
        plain, name = evaluate, unit.scope.mangled(target.id)

        def evaluate(frame: Frame) -> None:
            plain(frame)
            frame[3][name] = is_of_class

    if node.value is None:

        def declare(frame: Frame) -> None:
            evaluate(frame)

        return declare
    value, store = unit.expression(node.value), target_store(unit, node.target)

    def assign(frame: Frame) -> None:
        store(frame, value(frame))
        evaluate(frame)

    return assign


def _augmented(unit: Unit, node: ast.AugAssign) -> Statement:
    value, update = unit.expression(node.value), in_place(type(node.op).__name__)
    target = node.target
    if isinstance(target, ast.Name):
        return _augmented_name(unit, target, value, update)
    if isinstance(target, ast.Attribute):
        owner, name = unit.expression(target.value), unit.scope.mangled(target.attr)

        def change_attribute(frame: Frame) -> None:
            instance = owner(frame)
            set_attribute(instance, name, update(get_attribute(instance, name), value(frame)))

        return change_attribute
    container, index = unit.expression(target.value), unit.expression(target.slice)

    def change_item(frame: Frame) -> None:
        items, key = container(frame), index(frame)
        set_item(items, key, update(get_item(items, key), value(frame)))

    return change_item


def _augmented_name(unit: Unit, target: ast.Name, value: Expression, update: Any) -> Statement:
    load, slot = unit.load(target.id), unit.local_slot(target.id)
    if slot is not None:

        def change_local(frame: Frame) -> None:
            old = frame[slot]
            if old is UNBOUND:
                load(frame)
            frame[slot] = update(old, value(frame))

        return change_local
    store = unit.store(target.id)

    def change(frame: Frame) -> None:
        store(frame, update(load(frame), value(frame)))

    return change


def _delete(unit: Unit, node: ast.Delete | ast.Tuple | ast.List) -> Statement:
    parts = [_delete_one(unit, target) for target in (node.targets if isinstance(node, ast.Delete) else node.elts)]

    def delete(frame: Frame) -> None:
        for part in parts:
            part(frame)

    return delete


def _delete_one(unit: Unit, target: ast.expr) -> Statement:
    if isinstance(target, ast.Name):
        return delete_name(unit, target.id)
    if isinstance(target, ast.Subscript):
        container, index = unit.expression(target.value), unit.expression(target.slice)
        return lambda frame: delete_item(container(frame), index(frame))
    if isinstance(target, ast.Attribute):
        value, name = unit.expression(target.value), unit.scope.mangled(target.attr)
        return lambda frame: delete_attribute(value(frame), name)
    return _delete(unit, target) if isinstance(target, ast.Tuple | ast.List) else refusal(target)


def delete_name(unit: Unit, name: str) -> Statement:
    """Returns a function that unbinds a variable. It raises NameError if the variable is not bound."""
    load, store = unit.load(name), unit.store(name)
    scope, name = unit.scope, unit.scope.mangled(name)
    is_in_class = scope.kind == "class" and name not in scope.globals and name not in scope.nonlocals
    if not is_in_class and scope.find(name) is not None:

        def forget(frame: Frame) -> None:
            load(frame)
            store(frame, UNBOUND)

        return forget
    names = unit.names

    def remove(frame: Frame) -> None:
        target = frame[1] if is_in_class else names
        if name not in target:
            raise NameError(f"name '{name}' is not defined")
        del target[name]

    return remove


STATEMENTS.update({ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented, ast.Delete: _delete})
