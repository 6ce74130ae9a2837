"""Where a function that is called for the first time is to be looked for."""

from __future__ import annotations

from typing import Any

from pipediag.capture.callsites import CallSite, call_site, is_users
from pipediag.capture.python_functions import unwrap


def place_of(function: Any) -> tuple[str, CallSite | None]:
    """Name and place of the user's function, or of the user's call where it is a framework's."""
    plain = unwrap(function)
    code = getattr(plain, "__code__", None)
    own_name = getattr(plain, "__qualname__", None)
    # An object that is called in a function's place may have attributes of any kind.
    qualified = own_name if isinstance(own_name, str) else type(plain).__name__
    name = qualified.rpartition("<locals>.")[2]
    if code is not None and is_users(code.co_filename):
        return name, CallSite(code.co_filename, code.co_firstlineno, name, by_framework=False)
    return name, call_site()
