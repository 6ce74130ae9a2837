from __future__ import annotations

import pytest

from pipediag.forecast import forecast
from pipediag.rules.prediction import prefer_forecast
from pipediag.rules.rule import Prediction
from pipediag.rules.step import host_overhead
from pipediag.session.edits import AUTOTUNE, Edit, SetModel, SetParameters
from pipediag.session.findings import Finding
from tests.factories import make_session
from tests.records import make_function, make_pipeline, make_pipeline_ops

source, mapped, *rest = make_pipeline_ops()
SESSION = make_session(
    pipeline=make_pipeline(
        ops=[source, mapped.model_copy(update={"function": make_function()}), *rest]
    )
)
FORESEEABLE = Edit("a", "a", (SetParameters(mapped.id, {"num_parallel_calls": AUTOTUNE}),))
NOT_FORESEEABLE = Edit("b", "b", (SetModel({"jit_compile": True}),))


def found(edit: Edit | None, own: Prediction) -> Finding:
    return host_overhead.META.finding("fail", "Do it.", edit=edit, own_prediction=own)


def test_the_forecast_of_an_edit_goes_before_the_rules_own_prediction() -> None:
    expected = forecast(SESSION, FORESEEABLE).speedup
    assert expected is not None
    for own in (Prediction(7.0), Prediction(None, "It was not measured.")):
        finding = prefer_forecast(SESSION, found(FORESEEABLE, own))
        assert finding.predicted_speedup == expected
        assert "prediction_missing" not in finding.evidence


@pytest.mark.parametrize("edit", [NOT_FORESEEABLE, None])
def test_where_it_cannot_say_the_rules_own_stays(edit: Edit | None) -> None:
    assert prefer_forecast(SESSION, found(edit, Prediction(7.0))).predicted_speedup == 7.0
    unknown = prefer_forecast(SESSION, found(edit, Prediction(None, "It was not measured.")))
    assert unknown.predicted_speedup is None
    assert unknown.evidence["prediction_missing"] == "It was not measured."
