"""How a script is ended from within."""

from __future__ import annotations


class StopScript(BaseException):
    """Raised in the script's training thread when enough was measured.

    Not an Exception, so that the script's own handlers let it pass.
    """
