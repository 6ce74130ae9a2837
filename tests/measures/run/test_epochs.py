"""What each epoch of the last training took beside its steps."""

from __future__ import annotations

from pipediag.measures.run.epochs import Epochs, epochs_of
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.session.timeline import Span
from pipediag.vocabulary import RunPartName

END = Place("epoch_end", loop_id="loop1")
VALIDATION = Place("evaluation", "validation in `fit`", "train.py", 20, "loop1")


class Passing:
    """Stretches, one after the other from moment 0; each of its own span where none is named."""

    def __init__(self, fit: int | None = 1) -> None:
        self.spent: list[Spent] = []
        self.fit = fit

    def at(self, part: RunPartName, ns: int, loop_id: str = "loop1", span: int = 0) -> None:
        self.place(Place(part, None, "train.py", 20, loop_id), ns, span)

    def place(self, place: Place, ns: int, span: int = 0) -> None:
        start = self.spent[-1].end_ns if self.spent else 0
        known = Span(span or 1000 + len(self.spent), "steps", start, None)
        self.spent.append(Spent(place, start, start + ns, self.fit, known))


def test_epochs_are_runs_of_steps_and_what_lies_between_them() -> None:
    passing = Passing()
    for wait, steps, ends in ((5, 100, (7, 30)), (6, 90, (8, 20)), (4, 50, (9,))):
        passing.at("epoch_start", wait)
        passing.at("steps", steps)
        passing.place(END, ends[0])
        if ends[1:]:
            passing.place(VALIDATION, ends[1])

    epochs = epochs_of(passing.spent, "loop1")
    ends = {END: [7, 8], VALIDATION: [30, 20]}
    assert epochs == Epochs(
        [100, 90, 50],
        [5, 6, 4],
        ends,
        first_count=3,
        whole_ns=[90],
        later_starts_ns=[6, 4],
        usual_ends_ns=ends,
    )
    assert epochs.ends_seen == 2


def test_what_came_at_some_ends_only_took_nothing_at_the_others() -> None:
    passing = Passing()
    passing.at("steps", 10)
    passing.place(END, 3)
    passing.place(END, 4)
    passing.at("steps", 10)
    passing.place(VALIDATION, 5)
    passing.at("steps", 10)

    assert epochs_of(passing.spent, "loop1").ends_ns == {END: [7, 0], VALIDATION: [0, 5]}


def test_steps_that_were_interrupted_are_one_epoch() -> None:
    passing = Passing()
    passing.at("steps", 10, span=5)
    passing.at("compile", 3)
    passing.at("steps", 20, span=5)

    assert epochs_of(passing.spent, "loop1").steps_ns == [30]


def test_what_is_of_another_loop_or_before_the_first_epoch_is_no_end() -> None:
    passing = Passing()
    passing.place(END, 50)
    passing.at("steps", 10)
    passing.at("steps", 10, loop_id="loop2")
    passing.place(Place("epoch_end", loop_id="loop2"), 60)
    passing.at("epoch_start", 7, loop_id="loop2")
    passing.at("steps", 10)

    assert epochs_of(passing.spent, "loop1") == Epochs([10, 10], [], {}, first_count=2)


def test_only_the_last_training_has_epochs_and_the_others_are_before_it() -> None:
    passing = Passing(fit=1)
    passing.at("epoch_start", 9)
    passing.at("steps", 70)
    passing.place(END, 8)
    passing.fit = None
    passing.place(Place("between_loops"), 6)
    passing.fit = 2
    passing.at("epoch_start", 3)
    passing.at("steps", 30)
    passing.place(END, 4)
    passing.at("steps", 20)

    epochs = epochs_of(passing.spent, "loop1")
    assert (epochs.steps_ns, epochs.starts_ns, epochs.ends_ns) == ([30, 20], [3], {END: [4]})
    assert epochs.before_ns == {
        Place("epoch_start", None, "train.py", 20, "loop1"): 9,
        Place("steps", None, "train.py", 20, "loop1"): 70,
        END: 8,
        Place("between_loops"): 6,
    }
    assert (epochs.before_count, epochs.trainings, epochs.first_count) == (1, 2, 1)


def test_a_loop_that_did_not_train_has_none() -> None:
    passing = Passing()
    passing.at("steps", 10, loop_id="loop2")

    assert epochs_of(passing.spent, "loop1") == Epochs([], [], {})
    assert epochs_of([], "loop1").ends_seen == 0


def test_tens_of_thousands_of_epochs_are_as_good_as_a_few() -> None:
    passing = Passing()
    for _ in range(30_000):
        passing.at("steps", 5)
        passing.place(END, 2)

    assert epochs_of(passing.spent, "loop1").ends_ns == {END: [2] * 29_999}


def test_what_follows_the_last_training_is_none_of_its_epochs() -> None:
    passing = Passing(fit=1)
    passing.at("steps", 30)
    passing.place(END, 4)
    passing.at("steps", 20)
    passing.fit = None
    passing.place(VALIDATION, 6)
    passing.fit = 2
    passing.at("steps", 9, loop_id="loop2")

    epochs = epochs_of(passing.spent, "loop1")
    assert (epochs.steps_ns, epochs.ends_ns) == ([30, 20], {END: [4]})


def test_an_end_of_an_epoch_that_our_windows_reach_into_stands_for_no_other() -> None:
    save = Place("epoch_end", "the callback Save", loop_id="loop1")
    steps = Place("steps", loop_id="loop1")
    script = Span(1, "fit", 0, None)
    spent, now = [], 0
    for number, profiled in enumerate([0, 60, 5, 0]):
        span = Span(10 + number, "steps", now, None, "loop1")
        spent.append(Spent(steps, now, now + 100, 1, span))
        spent.append(Spent(PIPEDIAG, now + 100, now + 100 + profiled, 1, script))
        spent.append(Spent(save, now + 100 + profiled, now + 200, 1, script))
        now += 200

    assert epochs_of(spent, "loop1").ends_ns == {save: [100, 95]}


def test_where_our_windows_reach_into_every_end_all_are_kept() -> None:
    save = Place("epoch_end", "the callback Save", loop_id="loop1")
    steps = Place("steps", loop_id="loop1")
    first, second = (Span(number, "steps", 0, None, "loop1") for number in (1, 2))
    spent = [
        Spent(steps, 0, 100, 1, first),
        Spent(PIPEDIAG, 100, 150, 1),
        Spent(save, 150, 200, 1),
        Spent(steps, 200, 300, 1, second),
    ]

    assert epochs_of(spent, "loop1").ends_ns == {save: [50]}


def three_epochs(fit: int, passing: Passing, steps: tuple[int, ...]) -> None:
    passing.fit = fit
    for ns in steps:
        passing.at("epoch_start", 3 * fit)
        passing.at("steps", ns)
        passing.place(END, fit)


def test_earlier_trainings_tell_what_one_that_was_stopped_at_once_does_not() -> None:
    passing = Passing()
    three_epochs(1, passing, (100, 80, 81))
    three_epochs(2, passing, (101, 82, 83))
    passing.fit = 3
    passing.at("epoch_start", 9)
    passing.at("steps", 70)

    epochs = epochs_of(passing.spent, "loop1")
    assert (epochs.steps_ns, epochs.starts_ns, epochs.ends_ns) == ([70], [9], {})
    assert epochs.whole_ns == [80, 81, 82, 83]
    assert epochs.later_starts_ns == [3, 3, 6, 6]
    assert epochs.usual_ends_ns == {END: [1, 1, 2, 2]}


def test_its_own_epochs_go_before_those_of_earlier_trainings() -> None:
    passing = Passing()
    three_epochs(1, passing, (100, 80, 81))
    three_epochs(2, passing, (101, 82, 83))

    epochs = epochs_of(passing.spent, "loop1")
    assert epochs.whole_ns == [82]  # its last one may have been cut short
    assert epochs.later_starts_ns == [6, 6]
    assert epochs.usual_ends_ns == {END: [2, 2]}


def test_epochs_that_our_own_windows_reach_into_stand_for_no_other() -> None:
    passing = Passing()
    for number, ours in enumerate((0, 30, 2, 0), start=90):
        passing.at("steps", 50, span=number)
        if ours:
            passing.place(PIPEDIAG, ours)
            passing.at("steps", 40, span=number)
        passing.place(END, 5)

    assert epochs_of(passing.spent, "loop1").whole_ns == [90]
