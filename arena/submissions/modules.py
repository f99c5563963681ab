"""Which modules a file may import, and which of their names. Standard library only."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType

from arena.submissions.policy import EVERY


class AllowedModules:
    """The module list of a policy, answering for one module and name at a time."""

    def __init__(self, modules: Mapping[str, tuple[str, ...]]) -> None:
        self._exact = {name: names for name, names in modules.items() if not name.endswith(".*")}
        self._below = {name[:-1]: names for name, names in modules.items() if name.endswith(".*")}
        self._public: dict[str, frozenset[str]] = {}

    def allows(self, module: str) -> bool:
        """Whether the module itself may be imported."""
        return module in self._exact or any(
            module.startswith(prefix) and "." not in module[len(prefix) :] and prefix != module
            for prefix in self._below
        )

    def leads_to_allowed(self, module: str) -> bool:
        """Whether it is a package of which at least one module is allowed."""
        prefix = module + "."
        return any(name.startswith(prefix) for name in (*self._exact, *self._below))

    def allows_name(self, module: str, name: str) -> bool:
        """Whether `module.name` may be used; for a module of a module see `allows`."""
        names = self._exact.get(module)
        if names is None:
            names = next((n for p, n in self._below.items() if module.startswith(p)), ())
        if f"-{name}" in names:
            return False
        return name in names or (EVERY in names and name in _Public(self, module))

    def public(self, module: str) -> frozenset[str] | None:
        """The public names of a module of the standard library; None for any other."""
        if module.partition(".")[0] not in sys.stdlib_module_names or not self.allows(module):
            return None
        if module not in self._public:
            self._public[module] = _public_names(module)
        return self._public[module]


class _Public:
    """`name in …`: the listed names of a known module, any harmless name of another."""

    def __init__(self, allowed: AllowedModules, module: str) -> None:
        self._names = allowed.public(module)
        self._allowed = allowed

    def __contains__(self, name: str) -> bool:
        if self._names is not None:
            return name in self._names
        foreign = name in sys.stdlib_module_names or self._allowed.allows(name)
        return not name.startswith("_") and not foreign


def _public_names(module: str) -> frozenset[str]:
    """What a module means to offer, without the modules that it happens to hold.

    Only modules of the policy come here: nothing of the file's choosing is imported.
    """
    try:
        loaded = importlib.import_module(module)
    except ImportError:  # not in this interpreter: then in no sandbox either
        return frozenset()
    names = getattr(loaded, "__all__", None) or [n for n in dir(loaded) if not n.startswith("_")]
    return frozenset(n for n in names if not isinstance(getattr(loaded, n, None), ModuleType))
