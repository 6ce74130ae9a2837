"""Mixed precision for a model that looks up rows and hardly multiplies."""

from __future__ import annotations

from pipediag.facts.devices import accelerators
from pipediag.facts.limits import Threshold
from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.embedding.sizes import names_of
from pipediag.rules.model_edits import in_single_precision
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

MATMUL = Threshold(
    "matrix products and convolutions",
    20.0,
    "% of an accelerator's busy time",
    "own choice, that of the rule `mixed-precision`: from there on 16 bits have something to gain",
)
META = Meta(
    id="sixteen-bit-lookups",
    name="Lookups in 16 bits",
    title_failed="Embedding tables stay in float32 under the policy for 16 bits",
    title_passed="Matrix products take a part of the time that 16 bits can shorten",
    looks_at="The policy for 16 bits, the part that embedding tables have of the model's bytes, "
    "and the time of matrix products where the profile tells it.",
    why="16 bits speed up matrix products. A table stays in float32 under Keras' policies, its "
    "rows are cast after the lookup and their gradients cast back, and `mixed_float16` looks "
    "through gradients for numbers that are not finite.",
    edit='The policy `"float32"`; or products large enough to gain from 16 bits.',
    cost="Vectors behind the lookup take twice the bytes.",
    bound="None: the step in float32 was not measured.",
    needs=("loop", "keras"),
    thresholds=(LARGE, MATMUL),
    severity="info",
    effect_on_results="same up to order or rounding",
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on the model; it informs, and a trial tells."""
    loop = session.diagnosed_loop()
    assert loop is not None
    assert loop.keras is not None
    policy = session.environment.mixed_precision or ""
    tables = large(session.embeddings)
    if not policy.startswith("mixed_") or not tables:
        lacks = "No policy for 16 bits is set, or the model has no large embedding table."
        return [META.finding("not-applicable", lacks)]
    part, matmul = _part(session, loop.keras), _matmul_percent(session)
    evidence: dict[str, Scalar] = {
        "policy": policy,
        "layer": tables[0].layer,
        "tables_percent_of_model": part,
        "matmul_percent_of_busy": matmul,
    }
    if matmul is not None and matmul >= MATMUL.value:
        return [META.finding("pass", "", evidence=evidence)]
    of_model = "" if part is None else f", {part:.0f} % of the model's bytes,"
    advice = (
        f"{names_of(tables)}{of_model} stay in float32 under `{policy}`: rows are cast after each "
        "lookup. Leave the policy out unless it is measured to gain."
    )
    edit = in_single_precision(session, META.id)
    return [
        META.finding(
            "informative",
            advice,
            place=(loop.file, loop.line),
            evidence=evidence,
            edit=edit,
        )
    ]


def _part(session: Session, keras: KerasUse) -> float | None:
    tables = sum(table.table_bytes for table in session.embeddings)
    whole = keras.variable_bytes
    return min(100.0, 100.0 * tables / whole) if whole else None


def _matmul_percent(session: Session) -> float | None:
    """Of an accelerator that tells; None where none does."""
    told = [
        100.0 * each.matmul_ms / each.busy_ms
        for each in accelerators(session.devices)
        if each.matmul_ms is not None and each.busy_ms
    ]
    return max(told, default=None)
