"""Modules and constructs that a file may not use, also where they are hidden.

A rule stands at each place where text could become code or a name: what reaches it has to
be written out. So it does not matter how many ways there are to hide a string. Imported
modules may only be used as `module.name`, so that every use of one can be read off the
file. Standard library only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from arena.submissions.folding import Folder
from arena.submissions.modules import AllowedModules
from arena.submissions.names import (
    CALLED_ONLY,
    CODE_TEXT,
    FIELD_WALK,
    INTERNAL_NAMES,
    RUNS_TEXT,
    SPELLED_HARD,
    SPELLED_SOFT,
    TELLING,
    is_internal,
)
from arena.submissions.policy import Policy
from arena.submissions.rules import Rule, Violation, violation
from arena.submissions.scopes import Kind, Scopes
from arena.submissions.spelling import safe_prefix, spellings

_METACLASSES = frozenset({"ABCMeta", "EnumMeta", "EnumType"})
HINTS = {"os.environ": "os.environ; os.getenv(name) gives a variable"}
_TESTS = (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Assert)


class Constructs:
    """Looks at every node of one file; `violations` is what was found, unordered."""

    def __init__(self, tree: ast.Module, scopes: Scopes, folder: Folder, policy: Policy) -> None:
        self._scopes = scopes
        self._policy = policy
        self._allowed = AllowedModules(policy.modules)
        self._parent: dict[int, ast.AST] = {}
        self._literals: set[str] = set()
        self._docstrings = docstrings(tree)
        self.violations: list[Violation] = []
        nodes = list(ast.walk(tree))
        for node in nodes:
            for child in ast.iter_child_nodes(node):
                self._parent[id(child)] = node
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._literals.add(node.value)
        checks: dict[type, Callable[..., None]] = {
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self._call,
            ast.ClassDef: self._class,
            ast.MatchClass: self._match_class,
            ast.Constant: self._constant,
            ast.arg: self._annotated,
            ast.AnnAssign: self._annotated,
            ast.FunctionDef: self._annotated,
            ast.AsyncFunctionDef: self._annotated,
        }
        for node in nodes:
            if check := checks.get(type(node)):
                check(node)
        for node, value in folder.built.values():
            self._built(node, value)

    def _report(self, rule: Rule, node: ast.AST, found: str) -> None:
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1
        self.violations.append(violation(rule, line, column, found))

    # Modules.

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            if not self._allowed.allows(alias.name):
                self._report(Rule.MODULE, node, f"import {alias.name}")
            elif self._in_class(node):
                self._report(Rule.MODULE_VALUE, node, f"import {alias.name} in a class body")

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            self._report(Rule.RELATIVE, node, f"from {'.' * node.level}{module} import …")
            return
        for alias in node.names:
            full = f"{module}.{alias.name}"
            if alias.name == "*":
                self._report(Rule.STAR, node, f"from {module} import *")
            elif self._allowed.allows(full):
                if self._in_class(node):
                    self._report(Rule.MODULE_VALUE, node, f"import of {full} in a class body")
            elif not self._allowed.allows(module):
                self._report(Rule.MODULE, node, f"from {module} import {alias.name}")
            elif not self._allowed.allows_name(module, alias.name):
                self._report(Rule.MODULE_NAME, node, f"from {module} import {alias.name}")

    def _in_class(self, node: ast.AST) -> bool:
        return self._scopes.of(node).is_class

    def _module_of(self, node: ast.expr) -> str:
        """The module that an expression is, or empty."""
        if isinstance(node, ast.Name):
            for binding in self._scopes.of(node).bound(node.id):
                if binding.kind is Kind.MODULE:
                    return binding.module
                full = f"{binding.module}.{binding.name}"
                if binding.kind is Kind.IMPORTED and self._allowed.allows(full):
                    return full
        elif isinstance(node, ast.Attribute) and (base := self._module_of(node.value)):
            full = f"{base}.{node.attr}"
            if self._allowed.allows(full) or self._allowed.leads_to_allowed(full):
                return full
        return ""

    def _origin(self, node: ast.expr) -> str:
        """`module.name` of what an expression was imported as, or empty."""
        if isinstance(node, ast.Attribute) and (base := self._module_of(node.value)):
            return f"{base}.{node.attr}"
        if isinstance(node, ast.Name):
            for binding in self._scopes.of(node).bound(node.id):
                if binding.kind is Kind.IMPORTED:
                    return f"{binding.module}.{binding.name}"
        return ""

    def _module_used(self, node: ast.expr, module: str) -> None:
        """A module stands before a dot, or in a test whether it was there to be imported."""
        parent = self._parent[id(node)]
        if isinstance(parent, ast.Attribute):
            if not isinstance(parent.ctx, ast.Load):
                self._report(Rule.MODULE_CHANGED, node, f"{module}.{parent.attr} = …")
            elif not self._may_use(module, parent):
                found = f"{module}.{parent.attr}"
                self._report(Rule.MODULE_NAME, parent, HINTS.get(found, found))
        elif not (
            isinstance(getattr(node, "ctx", None), ast.Store)
            or self._is_test(node, parent)
            or self._is_log_level(node, module, parent)
        ):
            self._report(Rule.MODULE_VALUE, node, f"the module {module} as a value")

    def _may_use(self, module: str, use: ast.Attribute) -> bool:
        """Whether `module.name` is allowed, or was told of at the module's import."""
        allowed = self._allowed
        if self._module_of(use) or not (allowed.allows(module) or allowed.leads_to_allowed(module)):
            return True
        return allowed.allows_name(module, use.attr)

    def _is_test(self, node: ast.expr, parent: ast.AST) -> bool:
        if isinstance(parent, ast.Compare):
            return all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops)
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, _TESTS) and getattr(parent, "test", None) is node

    @staticmethod
    def _is_log_level(node: ast.expr, module: str, parent: ast.AST) -> bool:
        """`getattr(logging, level.upper())`: no module has a name in capitals."""
        if module != "logging" or not isinstance(parent, ast.Call) or len(parent.args) < 2:
            return False
        name = parent.args[1]
        called = isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute)
        return (
            parent.args[0] is node
            and isinstance(parent.func, ast.Name)
            and parent.func.id == "getattr"
            and called
            and name.func.attr == "upper"  # type: ignore[attr-defined]
        )

    # Names and attributes.

    def _name(self, node: ast.Name) -> None:
        if module := self._module_of(node):
            self._module_used(node, module)
            return
        origin = self._origin(node)
        if origin == "sys.modules":
            self._sys_modules(node)
        elif origin.startswith("operator.") and not self._is_called(node):
            self._getter_as_value(node, origin)
        if not isinstance(node.ctx, ast.Load):
            return
        bindings = self._scopes.of(node).bound(node.id)
        if any(self._is_own_module(binding.value) for binding in bindings):
            self._own_module_used(node)
        kinds = {binding.kind for binding in bindings}
        if kinds == {Kind.PARAMETER}:
            return
        if node.id in RUNS_TEXT:
            self._report(Rule.DYNAMIC, node, node.id)
        elif node.id in INTERNAL_NAMES:
            self._report(Rule.INTERNALS, node, node.id)
        elif node.id == "__file__":
            self._report(Rule.OWN_FILE, node, node.id)
        elif node.id in CALLED_ONLY and not self._is_called(node) and not kinds:
            rule = Rule.FILE_WRITE if node.id == "open" else Rule.DYNAMIC
            self._report(rule, node, f"{node.id} as a value")

    def _is_called(self, node: ast.expr) -> bool:
        parent = self._parent[id(node)]
        return isinstance(parent, ast.Call) and parent.func is node

    def _attribute(self, node: ast.Attribute) -> None:
        if (module := self._module_of(node)) and not self._allowed.leads_to_allowed(module):
            self._module_used(node, module)
        origin = self._origin(node)
        if origin == "sys.modules":
            self._sys_modules(node)
        elif origin.startswith("operator.") and not self._is_called(node):
            self._getter_as_value(node, origin)
        if node.attr == "raw" and getattr(node.value, "attr", "") == "buffer":
            self._report(Rule.INTERNALS, node, ".buffer.raw")
        if not is_internal(node.attr):
            return
        parent = self._parent[id(node)]
        named = isinstance(parent, ast.Attribute) and parent.attr in ("__name__", "__qualname__")
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if (node.attr == "__class__" and named) or (node.attr == "__dict__" and own):
            return
        self._report(Rule.INTERNALS, node, f".{node.attr}")

    def _getter_as_value(self, node: ast.expr, origin: str) -> None:
        if origin in ("operator.attrgetter", "operator.methodcaller"):
            self._report(Rule.HIDDEN_NAME, node, f"{origin} as a value")

    def _sys_modules(self, node: ast.expr) -> None:
        """Only `sys.modules[__name__]`, before a dot; the own module's modules stay out."""
        key = self._parent[id(node)]
        if isinstance(key, ast.Compare) and node in key.comparators:
            return
        if not (isinstance(key, ast.Subscript) and isinstance(key.ctx, ast.Load)) or (
            not self._is_own_module(key)
        ):
            changed = isinstance(key, ast.Subscript) and not isinstance(key.ctx, ast.Load)
            rule = Rule.MODULE_CHANGED if changed else Rule.MODULE_VALUE
            self._report(rule, node, "sys.modules")
            return
        self._own_module_used(key)

    def _own_module_used(self, node: ast.AST) -> None:
        """The file's own module: before a dot, or under a name that is looked at the same way.

        Modules that it imported must not come in by this door.
        """
        use = self._parent[id(node)]
        bound = self._scopes.module.bindings
        if isinstance(use, ast.Attribute) and isinstance(use.ctx, ast.Load):
            if use.attr in bound and use.attr not in _imports(bound):
                return
        elif isinstance(use, ast.Call) and isinstance(use.func, ast.Name):
            names = spellings(use.args[1], self._scopes) if len(use.args) > 1 else None
            if use.func.id == "hasattr":
                return
            if use.func.id == "getattr" and names and not names & _imports(bound):
                return
        elif isinstance(use, ast.Assign):
            renamed = all(isinstance(target, ast.Name) for target in use.targets)
            if renamed and not self._in_class(use):
                return
        self._report(Rule.MODULE_VALUE, node, "sys.modules[__name__] as a value")

    def _is_own_module(self, node: ast.expr | None) -> bool:
        return (
            isinstance(node, ast.Subscript)
            and self._origin(node.value) == "sys.modules"
            and isinstance(node.slice, ast.Name)
            and node.slice.id == "__name__"
        )

    # Calls.

    def _call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            kinds = {b.kind for b in self._scopes.of(node.func).bound(node.func.id)}
            check = {
                "getattr": self._getattr,
                "setattr": self._setattr,
                "open": self._open,
                "type": self._type,
                "locals": self._locals,
                "vars": self._locals,
            }.get(node.func.id)
            if check and kinds <= {Kind.VALUE}:
                check(node)
        origin = self._origin(node.func)
        if origin in ("operator.attrgetter", "operator.methodcaller"):
            for argument in node.args if origin.endswith("attrgetter") else node.args[:1]:
                self._check_spelled(node, argument, origin)
        if origin == "inspect.signature" and any(
            k.arg in ("eval_str", None) for k in node.keywords
        ):
            self._report(Rule.DYNAMIC, node, "inspect.signature(eval_str=…)")
        to_file = any(keyword.arg in ("filename", None) for keyword in node.keywords)
        if origin == "logging.basicConfig" and to_file:
            self._report(Rule.FILE_WRITE, node, "logging.basicConfig(filename=…)")

    def _getattr(self, node: ast.Call) -> None:
        if len(node.args) < 2 or any(isinstance(a, ast.Starred) for a in node.args):
            self._report(Rule.HIDDEN_NAME, node, "getattr(*…)")
            return
        base, name = node.args[:2]
        if self._is_log_level(base, self._module_of(base), node) or safe_prefix(name):
            return
        self._check_spelled(node, name, "getattr")

    def _setattr(self, node: ast.Call) -> None:
        if len(node.args) > 1 and (names := spellings(node.args[1], self._scopes)):
            self._check_spelled(node, node.args[1], f"setattr {sorted(names)[0]}")

    def _check_spelled(self, node: ast.AST, name: ast.expr, what: str) -> None:
        """A name given as text has to be written out, and be a harmless one."""
        names = spellings(name, self._scopes)
        if names is None:
            self._report(Rule.HIDDEN_NAME, node, f"{what} with a name made at run time")
            return
        for text in sorted(names):
            for part in text.split("."):
                if is_internal(part):
                    self._report(Rule.INTERNALS, node, f"{what}: {part}")

    def _open(self, node: ast.Call) -> None:
        modes = [k.value for k in node.keywords if k.arg == "mode"] or node.args[1:2]
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        if starred or any(k.arg is None for k in node.keywords):
            self._report(Rule.FILE_WRITE, node, "open(*…)")
            return
        names = spellings(modes[0], self._scopes) if modes else {"r"}
        if names is None or any(set(mode) - set("rbtU") for mode in names):
            found = "a mode made at run time" if names is None else f"mode {sorted(names)[0]!r}"
            self._report(Rule.FILE_WRITE, node, f"open with {found}")
        elif not self._policy.read_files:
            self._report(Rule.FILE, node, "open")
        paths = spellings(node.args[0], self._scopes) if node.args else None
        if paths and any(path.endswith((".py", ".pyc")) for path in paths):
            self._report(Rule.OWN_FILE, node, f"open({sorted(paths)[0]!r})")

    def _type(self, node: ast.Call) -> None:
        if len(node.args) > 1 or any(isinstance(a, ast.Starred) for a in node.args):
            self._report(Rule.METACLASS, node, "type(name, bases, namespace)")

    def _locals(self, node: ast.Call) -> None:
        """`locals()` outside a function is `globals()`."""
        if not node.args and self._scopes.of(node) is self._scopes.module:
            assert isinstance(node.func, ast.Name)
            self._report(Rule.DYNAMIC, node, f"{node.func.id}() at the top level")

    # The rest.

    def _class(self, node: ast.ClassDef) -> None:
        for keyword in node.keywords:
            last = keyword.value.attr if isinstance(keyword.value, ast.Attribute) else None
            last = keyword.value.id if isinstance(keyword.value, ast.Name) else last
            if keyword.arg in ("metaclass", None) and last not in _METACLASSES:
                self._report(Rule.METACLASS, node, f"class {node.name} with a metaclass")

    def _match_class(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            if is_internal(name):
                self._report(Rule.INTERNALS, node, f"case …({name}=…)")

    def _constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str) or id(node) in self._docstrings:
            return
        if match := TELLING.search(node.value) or FIELD_WALK.search(node.value):
            self._report(Rule.HIDDEN_NAME, node, match[0])

    def _annotated(self, node: ast.AST) -> None:
        """An annotation in quotes is evaluated by more than one function of the library."""
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is None:
                continue
            for text in ast.walk(part):
                value = text.value if isinstance(text, ast.Constant) else None
                if isinstance(value, str) and ("(" in value or "__" in value):
                    self._report(Rule.DYNAMIC, text, f"an annotation that calls: {value}")

    def _built(self, node: ast.expr, value: object) -> None:
        """Text that was put together and spells a banned name, or code."""
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if not isinstance(text, str) or text in self._literals:
            return
        word = text.strip()
        written = any(word in literal for literal in self._literals) if word else True
        if word in SPELLED_HARD or (word in SPELLED_SOFT and not written):
            self._report(Rule.HIDDEN_NAME, node, f"it spells {word}")
        elif match := TELLING.search(text):
            if not any(match[0] in literal for literal in self._literals):
                self._report(Rule.HIDDEN_NAME, node, f"it spells {match[0]}")
        elif (match := CODE_TEXT.search(text)) and not any(
            CODE_TEXT.search(literal) for literal in self._literals
        ):
            self._report(Rule.HIDDEN_NAME, node, f"it spells {match[0].strip()}")


def docstrings(tree: ast.Module) -> set[int]:
    """Ids of the constants that stand as statements of their own: nothing reads them."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _imports(bound: dict[str, list]) -> set[str]:  # type: ignore[type-arg]
    kinds = (Kind.MODULE, Kind.IMPORTED)
    return {name for name, bindings in bound.items() if any(b.kind in kinds for b in bindings)}


def ordered(violations: list[Violation]) -> Iterator[Violation]:
    """By place, each once."""
    seen: set[Violation] = set()
    for entry in sorted(violations, key=lambda v: (v.line, v.column, v.rule, v.found)):
        if entry not in seen:
            seen.add(entry)
            yield entry
