"""What the words of a trial mean: for the report's legend and for `pipediag explain trials`."""

from __future__ import annotations

from pipediag.session.trials import WORTHWHILE

TRIAL_WORDS: dict[str, str] = {
    "trial": (
        "Base and one change run in alternating blocks in the same process, on your own pipeline "
        "and your own training step. Only one of them is alive at a time, and the warm-up of each "
        "block is left out. The speed-up is examples per second with the change divided by those "
        "without, its 95 % interval a bootstrap over pairs of blocks."
    ),
    "confirmed": f"The whole interval lies above {WORTHWHILE}x.",
    "refuted": f"The whole interval lies below {WORTHWHILE}x: leave this change alone.",
    "inconclusive": (
        f"The interval contains {WORTHWHILE}x. A larger `--budget` makes it narrower."
    ),
    "not tried": "Only the most that it can buy, by this run's times, and the reason why.",
    "together": (
        "All confirmed changes at once, measured anew: gains do not multiply. A change that does "
        "not go with the others is left out, with its reason."
    ),
    "pipeline alone": (
        "Batches taken as fast as they come, without training: how fast the pipeline can be, "
        "and the only thing to try a change on where the training loop could not be kept."
    ),
    "estimated": (
        "No step was run: the pipeline alone was measured, and a step is taken to last as long as "
        "the slower of a batch and the rest of the step. Whatever the pipeline gains beyond that "
        "is not seen in the estimate."
    ),
    "price": (
        "A change that mends results is not judged by its speed: its trial tells what right "
        "results cost."
    ),
    "needs retuning": (
        "The change alters a hyper-parameter, such as the batch size. It makes examples pass "
        "faster; what the model learns from them is another matter."
    ),
}
