from __future__ import annotations

from types import SimpleNamespace

from pipediag.capture.frameworks.keras.facts import settings_of


def test_arguments_that_are_set() -> None:
    sgd = SimpleNamespace(momentum=0.9, weight_decay=None, use_ema=True, learning_rate=0.1)

    assert settings_of(sgd) == {"momentum": 0.9, "use_ema": True}
    assert settings_of(SimpleNamespace(momentum=0.0, use_ema=False)) == {}


def test_an_optimizer_within_one_that_scales_the_loss() -> None:
    inner = SimpleNamespace(global_clipnorm=1.0)

    assert settings_of(SimpleNamespace(inner_optimizer=inner, momentum=0.9)) == {
        "global_clipnorm": 1.0
    }


def test_none_and_what_is_no_number() -> None:
    class Slotted:
        __slots__ = ()

    assert settings_of(None) == {}
    assert settings_of(Slotted()) == {}
    assert settings_of(SimpleNamespace(weight_decay="much")) == {}
