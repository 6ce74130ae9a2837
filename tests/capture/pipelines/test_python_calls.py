from __future__ import annotations

import random
import time
from functools import partial
from math import sqrt
from time import sleep
from typing import Any

import numpy as np
import numpy.random  # NumPy itself loads it on first use
import pytest

from pipediag.capture.callsites import unwrap
from pipediag.capture.pipelines.functions import module_functions


def attributes(x: Any) -> Any:
    return x.input + x.open + x.sleep(1) + x.random.uniform()


def reads(path: Any) -> Any:
    return open(path)  # noqa: PTH123


def nested(x: Any) -> Any:
    def inner(y: Any) -> Any:
        time.sleep(0.1)
        return [print(z) for z in y]

    return inner(x)


def own_print(x: Any) -> Any:
    print = x.print
    return print(x)


def of_the_script(x: Any) -> Any:
    return attributes(x)


def closing_over(module: Any) -> Any:
    return lambda x: module.sleep(x + 1)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (attributes, []),
        (own_print, []),
        (reads, ["open"]),
        (nested, ["print", "time.sleep"]),
        (closing_over(time), ["time.sleep"]),
        (closing_over(object()), []),
        (of_the_script, [f"{__name__}.attributes"]),
        (lambda x: sleep(x + 1), ["time.sleep"]),
        (lambda x: x + np.random.uniform(), ["numpy.random.uniform"]),
        (lambda x: x * random.random(), ["random.random"]),
        (lambda x: np.float32(x) + sqrt(x), ["math.sqrt"]),
        (partial(reads, "train.csv"), ["open"]),
        (print, []),
    ],
)
def test_names_count_for_what_they_are_bound_to(function: Any, names: list[str]) -> None:
    assert module_functions(unwrap(function)) == names
