"""The one door from the script's code into ours: no error of ours passes it.

A *hook* stands in the place of something of TensorFlow's or Keras's. It calls the original itself,
once; ours it calls through *entries*. An entry that fails says so, once, and does what holds
natively from then on. Where the rest can't be right without it, and in a forked child, all of us
steps aside: every hook is its original again.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from pipediag.capture.process import let_pass


def caller_of_hook(file: str) -> FrameType:
    """Return the frame that calls what is hooked; `file` is that of the entry which asks."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in (file, __file__) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, as most entries do natively."""


_ABSENT = object()
Moment = Literal["given up", "before fork", "after fork", "forked", "dismissed"]
"""Moments: all of us steps aside while the script goes on; the process is copied, or was, here or
in the child, where what steps aside by no hook is undone; a program goes on without us."""


@dataclass(slots=True, eq=False)
class Entry:
    what: str
    """Purpose of it, as in `Pipediag stopped counting steps`."""
    ours: Callable[..., Any]
    natively: Callable[..., Any]
    vital: bool
    """True if what is measured without it would be wrong."""


class Guard:
    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self.aside = False
        """True if every hook is its original."""
        self.entries: list[Entry] = []
        self._calls: dict[Moment, list[Callable[[], None]]] = defaultdict(list)
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        """Owner and name of an attribute, what was there, and what took its place; in order."""

    def replace(self, owner: Any, name: str, ours: Any) -> None:
        """Set an attribute of a module or a class, to be put back later on."""
        was = vars(owner).get(name, _ABSENT)
        setattr(owner, name, ours)
        self._replaced.append((owner, name, was, vars(owner)[name]))

    def put_back(self) -> None:
        """Put back what was replaced, the last first; what others have put there since stays."""
        while self._replaced:
            owner, name, was, ours = self._replaced.pop()
            if vars(owner).get(name) is ours:
                if was is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, was)

    def hook(self, original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
        """Return what replaces `original`; `ours` calls that, and our code through entries."""

        @functools.wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            if self.aside:
                return original(*args, **kwargs)
            return ours(*args, **kwargs)

        return hooked

    def before(self, original: Callable[..., Any], entry: Callable[..., Any]) -> Callable[..., Any]:
        """Return a hook that calls an entry with the arguments, and then the original."""

        def ours(*args: Any, **kwargs: Any) -> Any:
            entry(*args, **kwargs)
            return original(*args, **kwargs)

        return self.hook(original, ours)

    def around(
        self,
        original: Callable[..., Any],
        begins: Callable[..., Any],
        ended: Callable[[Any], Any],
    ) -> Callable[..., Any]:
        """Return a hook that gives to `ended`, behind the original, what `begins` has returned for
        the arguments, where that is not None; also if the original raises."""

        def ours(*args: Any, **kwargs: Any) -> Any:
            begun = begins(*args, **kwargs)
            if begun is None:
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                ended(begun)

        return self.hook(original, ours)

    def tell_before(
        self,
        owner: Any,
        name: str,
        what: str,
        told: Callable[..., Any],
        *,
        vital: bool = False,
    ) -> None:
        """Replace a function of a class or a module by a hook that calls an entry before it."""
        entry = self.entry(what, told, vital=vital)
        self.replace(owner, name, self.before(getattr(owner, name), entry))

    def entry(
        self,
        what: str,
        ours: Callable[..., Any],
        natively: Callable[..., Any] = nothing,
        *,
        vital: bool = False,
    ) -> Callable[..., Any]:
        """Return `ours` for a hook to call; after an error of it, `natively` is called instead.

        A StopScript passes.
        """
        entry = Entry(what, ours, natively, vital)
        self.entries.append(entry)

        def enter(*args: Any, **kwargs: Any) -> Any:
            try:
                return entry.ours(*args, **kwargs)
            except Exception as error:
                let_pass(error)
                self._failed(entry, error)
            return natively(*args, **kwargs)

        return enter

    def when(self, moment: Moment, *calls: Callable[[], None]) -> None:
        self._calls[moment] += calls

    def watch_forks(self) -> None:
        """Step aside in every child that this process forks, for good."""
        os.register_at_fork(
            before=lambda: self._around_fork("before fork"),
            after_in_parent=lambda: self._around_fork("after fork"),
            after_in_child=self._forked,
        )

    def step_aside(self) -> None:
        """Make every hook its original, and every entry what holds natively."""
        self.aside = True
        for entry in self.entries:
            entry.ours = entry.natively

    def give_up(self) -> None:
        """Step aside for good, and close what is open."""
        self.step_aside()
        self._call_all("given up", "closing what was open")

    def dismiss(self) -> None:
        """Step aside for good, in a program that goes on, and hold on to nothing of what we saw."""
        self.step_aside()
        self._call_all("dismissed", "leaving the program alone")
        # The recording, among what is not held on to, is as large as what was seen.
        self._note = nothing
        self.entries.clear()
        self._calls.clear()

    def _around_fork(self, moment: Moment) -> None:
        if not self.aside:
            self._call_all(moment, "standing back from a fork")

    def _call_all(self, moment: Moment, what: str) -> None:
        for call in self._calls[moment]:
            attempt(self._note, what, call)

    def _forked(self) -> None:
        self.step_aside()
        for undo in self._calls["forked"]:
            with suppress(Exception):
                undo()

    def _failed(self, entry: Entry, error: Exception) -> None:
        entry.ours = entry.natively
        self._note(_sentence(entry.what, error))
        if entry.vital and not self.aside:
            self.give_up()


def attempt(note: Callable[[str], None], what: str, ours: Callable[..., Any], *args: Any) -> None:
    """Call a part of ours that the rest can do without; its error is noted."""
    try:
        ours(*args)
    except Exception as error:
        let_pass(error)
        note(_sentence(what, error))


def _sentence(what: str, error: Exception) -> str:
    try:
        text = " ".join(str(error).split())[:300] or "without a message"
    except Exception:
        text = "it can't be shown"
    return (
        f"Pipediag stopped {what} after an error of its own, which the script did not see: "
        f"{type(error).__name__}: {text}"
    )


class StopScript(BaseException):
    """Raised in the training thread when enough was measured; no Exception, which may be caught."""
