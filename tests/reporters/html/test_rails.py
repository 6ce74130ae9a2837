from __future__ import annotations

from xml.etree import ElementTree as ET

from pipediag.reporters.html.rails import MOST_LANES, Rail, drawing, lane_count, rails
from pipediag.session.pipeline import Operation
from tests import records
from tests.encoding.work import cost_of


def op(id: str, *parents: str, inside: str | None = None) -> Operation:
    return records.make_operation(id, parent_ids=list(parents), inside_function_of=inside)


def laid(*operations: Operation) -> dict[str, Rail]:
    return rails(operations, [one.id for one in operations])


def picture(drawn: dict[str, Rail]) -> list[str]:
    """As `git log --graph` prints it: `o` a node, `|` what passes by, `/` what joins it."""
    lines = []
    for rail in drawn.values():
        marks = [" "] * lane_count(drawn)
        for lane in rail.through:
            marks[lane] = "|"
        for lane in rail.joins:
            marks[lane] = "Y" if lane in rail.through else "/"
        marks[rail.lane] = "o"
        lines.append("".join(marks).rstrip())
    return lines


def test_a_chain_needs_no_rails() -> None:
    assert laid(op("a"), op("b", "a"), op("c", "b")) == {}
    assert laid(op("a")) == {}
    assert laid() == {}


def test_a_zip_of_two_has_a_lane_for_each() -> None:
    drawn = laid(op("x"), op("f", "x"), op("y"), op("g", "y"), op("zip", "f", "g"), op("b", "zip"))

    assert picture(drawn) == ["o", "o", "|o", "|o", "o/", "o"]
    assert drawn["zip"].joins == (0, 1)
    assert [rail.leaves for rail in drawn.values()] == [True] * 6


def test_a_zip_of_three_of_which_one_is_a_zip() -> None:
    drawn = laid(
        op("a"), op("b"), op("c"), op("inner", "b", "c"), op("d"), op("zip", "a", "inner", "d")
    )

    assert picture(drawn) == ["o", "|o", "||o", "|o/", "||o", "o//"]
    assert lane_count(drawn) == 3


def test_a_lane_that_has_ended_is_used_again() -> None:
    drawn = laid(op("a"), op("b"), op("ab", "a", "b"), op("c"), op("all", "ab", "c"))

    assert picture(drawn) == ["o", "|o", "o/", "|o", "o/"]


def test_what_is_read_twice_goes_on_beside_its_first_reader() -> None:
    drawn = laid(op("a"), op("f", "a"), op("g", "a"), op("zip", "f", "g"))

    assert picture(drawn) == ["o", "Yo", "o|", "o/"]
    assert drawn["f"] == Rail(lane=1, joins=(0,), through=(0,), leaves=True)
    assert drawn["g"] == Rail(lane=0, joins=(0,), through=(1,), leaves=True)


def test_a_dataset_zipped_with_itself_is_one_line() -> None:
    assert laid(op("a"), op("zip", "a", "a")) == {}


def test_the_pipeline_of_a_function_leads_dashed_into_what_calls_it() -> None:
    drawn = laid(
        op("files"),
        op("lines", inside="interleave"),
        op("parse", "lines", inside="interleave"),
        op("interleave", "files"),
        op("batch", "interleave"),
    )

    assert picture(drawn) == ["o", "|o", "|o", "o/", "o"]
    assert [rail.inner for rail in drawn.values()] == [False, True, True, False, False]
    assert drawn["interleave"].dashed == {1}
    assert 'class="inner"' in drawing(drawn["interleave"], 2)
    assert 'class="inner"' not in drawing(drawn["batch"], 2)


def test_an_edge_leads_on_past_what_is_not_shown() -> None:
    operations = [op("a"), op("f", "a"), op("b"), op("g", "b"), op("zip", "f", "g"), op("z", "zip")]

    assert picture(rails(operations, ["a", "b", "z"])) == ["o", "|o", "o/"]
    assert rails(operations, ["a", "f", "z"]) == {}


def test_what_nobody_reads_ends() -> None:
    drawn = laid(op("a"), op("lost"), op("b", "a"))

    assert not drawn["lost"].leaves
    assert drawn["b"].leaves  # by the training loop
    assert drawn["b"].through == ()


def test_what_a_strangers_session_says_is_drawn_somehow() -> None:
    drawn = laid(op("a", "a", "later"), op("b", "nowhere"), op("later", "b", "a"))
    assert set(drawn) == {"a", "b", "later"}
    assert all(
        ET.fromstring(drawing(rail, lane_count(drawn))) is not None for rail in drawn.values()
    )


def test_more_branches_than_there_is_room_for_share_the_last_lane() -> None:
    sources = [op(f"s{n}") for n in range(40)]
    drawn = laid(*sources, op("zip", *(one.id for one in sources)))

    assert lane_count(drawn) == MOST_LANES
    assert drawn["zip"].joins == tuple(range(MOST_LANES))
    assert len(drawing(drawn["zip"], MOST_LANES)) < 1_500


def many(count: int) -> list[Operation]:
    """A chain for each of two halves, and sources between that a zip at the end reads, too."""
    operations: list[Operation] = []
    for n in range(count):
        parents = [f"op{n - 3}"] if n % 3 and n > 3 else []
        operations.append(op(f"op{n}", *parents))
    return [*operations, op("zip", *(one.id for one in operations))]


def test_thousands_of_operations_are_looked_at_a_few_times_each() -> None:
    operations = many(5_000)
    shown = [one.id for one in operations[::101]]

    cost, drawn = cost_of(lambda: rails(operations, shown))

    assert list(drawn) == shown
    assert lane_count(drawn) <= MOST_LANES
    assert cost.calls < 200 * len(operations)
    assert sum(len(drawing(rail, MOST_LANES)) for rail in drawn.values()) < 1_000 * len(shown)


def replicated(id: str, parent: str, replicas: int = 2) -> Operation:
    return op(id, parent).model_copy(update={"replicas": replicas})


def test_each_replica_has_a_lane_of_its_own() -> None:
    drawn = laid(op("a"), op("b", "a"), replicated("ask", "b"), replicated("ahead", "ask"))

    assert [rail.nodes for rail in drawn.values()] == [(0,), (0,), (0, 1), (0, 1)]
    assert drawn["ask"].joins == (0,)
    assert drawn["ahead"].joins == (0, 1)
    assert lane_count(drawn) == 2


def test_a_replicas_lane_leads_straight_on() -> None:
    drawn = laid(op("a"), replicated("ask", "a"), replicated("ahead", "ask"))
    parts = [str(drawing(rail, 2)) for rail in drawn.values()]

    assert [part.count("<circle") for part in parts] == [1, 2, 2]
    assert [part.count("<path") for part in parts] == [0, 1, 0]


def test_of_very_many_replicas_a_few_are_drawn() -> None:
    drawn = laid(op("a"), replicated("ask", "a", 10**9))

    assert lane_count(drawn) == MOST_LANES


def test_what_tensorflow_put_in_between_is_no_branch() -> None:
    inserted = op("tf1", "a").model_copy(update={"inserted_by_tensorflow": True})

    assert laid(op("a"), inserted, op("b", "a")) == {}
