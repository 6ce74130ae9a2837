"""`predict` for small batches: when it fails, its trial, and its patch."""

from __future__ import annotations

import pytest

from pipediag.patching.making import make_patch
from pipediag.rules.evaluation import check_costly_evaluation, check_small_predict
from pipediag.session.edits import Edit, PredictOnBatch
from pipediag.session.model import Session
from pipediag.session.recording import Prediction
from pipediag.trials.candidates import candidates, with_prediction_trial
from tests.factories import make_part, make_run, make_session

FILE = "/work/callback.py"


def session_with(on_batch_ms: float, seconds: float = 40.0, pairs: int = 8) -> Session:
    seen = Prediction(FILE, 4, 500, [50.0] * pairs, [on_batch_ms + n / 100 for n in range(pairs)])
    part = make_part("evaluation", seconds, 60.0, what="`predict`", file=FILE, line=4, count=9)
    rest = make_part("steps", 60.0 - seconds, 60.0)
    run = make_run(parts=[rest, part], total_s=60.0, projected_total_s=60.0)
    return make_session(run=run, predictions=[seen])


def test_calls_that_mostly_make_a_dataset_fail_with_a_measured_gain() -> None:
    session = session_with(2.0)
    (finding,) = check_small_predict(session)
    assert finding.status == "fail"
    assert (finding.file, finding.line) == (FILE, 4)
    assert candidates([finding]) == []
    tried = with_prediction_trial(session, finding).trial
    assert tried.state == "confirmed"
    assert tried.speedup == pytest.approx(24.6, rel=0.05)
    assert all(one.status == "pass" for one in check_costly_evaluation(session))


@pytest.mark.parametrize(
    ("session", "status"),
    [
        (session_with(49.0), "pass"),
        (session_with(2.0, seconds=4.0), "informative"),
        (session_with(2.0, pairs=3), "pass"),
    ],
)
def test_where_the_run_gains_little_or_too_few_were_timed_nothing_fails(
    session: Session, status: str
) -> None:
    assert [one.status for one in check_small_predict(session)] == [status]


SOURCE = (
    "class C:\n    def on_epoch_end(self, epoch, logs=None):\n        ids = 3\n        x = {}\n"
)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (
            "self.model.predict((a, b), batch_size=9, verbose=0)",
            "self.model.predict_on_batch((a, b))",
        ),
        ("m.predict(x=ids)", "m.predict_on_batch(ids)"),
        ("m.predict(ids, verbose=0)[:, 0]", "m.predict_on_batch(ids)[:, 0]"),
        ("m.predict(ids, callbacks=c)", None),
        ("m.predict(*ids)", None),
        ("m.predict(ids, 32)", None),
        ("m.predict(a) + n.predict(b)", None),
    ],
)
def test_the_patch_calls_the_other_method_with_the_data_alone(call: str, after: str | None) -> None:
    source = SOURCE.format(call)
    edit = Edit("e", "an edit", (PredictOnBatch(FILE, 4),))
    made, contents = make_patch(make_session(), [edit], lambda _: source.encode())
    if after is None:
        assert made.left_out[0].reason
    else:
        assert contents[FILE].decode() == SOURCE.format(after)
