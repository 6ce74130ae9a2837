from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.steps.outermost import outermost


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8))
def test_an_event_within_an_earlier_one_is_left_out(pairs: list[tuple[int, int]]) -> None:
    spans = sorted(((min(pair), max(pair)) for pair in pairs), key=lambda span: (span[0], -span[1]))
    expected = [
        not any(end <= other_end for _, other_end in spans[:place])
        for place, (_, end) in enumerate(spans)
    ]
    assert outermost(np.array([end for _, end in spans], np.int64)).tolist() == expected
