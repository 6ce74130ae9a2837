from __future__ import annotations

from types import ModuleType

from pipediag.capture.frameworks.replaced import Replaced


class Base:
    def inherited(self) -> str:
        return "base"


class Iterator(Base):
    def pull(self) -> str:
        return "own"

    @staticmethod
    def made() -> str:
        return "made"


def module() -> ModuleType:
    made = ModuleType("of_the_test")
    made.Iterator = type("Iterator", (Base,), dict(vars(Iterator)))  # type: ignore[attr-defined]
    made.trace = len  # type: ignore[attr-defined]
    return made


def hook(target: ModuleType) -> None:
    target.trace = max
    target.Iterator.pull = lambda _: "hooked"
    target.Iterator.made = staticmethod(lambda: "hooked")
    target.Iterator.inherited = lambda _: "hooked"


def state(target: ModuleType) -> dict[str, object]:
    return {**vars(target), **{f"Iterator.{k}": v for k, v in vars(target.Iterator).items()}}


def test_what_a_hook_replaces_is_put_back_and_what_it_adds_is_taken_away() -> None:
    target = module()
    before = state(target)
    replaced = Replaced()
    with replaced.noting(target):
        hook(target)
    assert target.Iterator().inherited() == "hooked"
    replaced.put_back()
    assert state(target) == before


def test_two_hooks_on_one_place_are_taken_off_in_turn() -> None:
    target = module()
    replaced = Replaced()
    for other in (min, max):
        with replaced.noting(target):
            target.trace = other  # type: ignore[attr-defined]
    replaced.put_back()
    assert target.trace is len


def test_what_somebody_else_has_put_there_since_stays() -> None:
    target = module()
    replaced = Replaced()
    with replaced.noting(target):
        hook(target)
    target.trace = sum  # type: ignore[attr-defined]
    replaced.put_back()
    assert target.trace is sum
    assert target.Iterator().pull() == "own"


def test_a_hook_that_fails_half_way_is_put_back_as_well() -> None:
    target = module()
    replaced = Replaced()
    try:
        with replaced.noting(target):
            hook(target)
            raise ValueError
    except ValueError:
        replaced.put_back()
    assert target.trace is len
