"""What the child process writes down of embedding tables: their use in a step, and their ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.vocabulary import SparseOrDense, TablePart


@dataclass
class RecordedTableUse:
    """What a traced step does with an embedding table, as its graph has it."""

    variable: str
    device: str
    lookups: int
    """Gathers by different ids."""
    copied_on_lookup: bool
    """Whether a lookup reads the value of the whole variable first."""
    gradient: SparseOrDense | None
    """None where the step does not write the table."""
    gradient_spread: bool
    """Whether rows of the gradient are spread over a tensor of the table's size."""
    writes_rows: bool
    """To the table or a slot of its optimizer."""
    writes_whole: bool
    whole_table_operations: dict[str, int]
    """Operations that make a tensor of the table's shape, by type."""
    temporary_bytes: int
    """Of all these tensors, as if none shared its memory with another."""
    slots: int
    slot_bytes: int
    temporary_peak_bytes: int | None = None
    """Of those that are in memory at one time."""
    copies: int = 0
    """Times that a step copies the whole table to look rows up in it."""
    operations: dict[TablePart, list[str]] = field(default_factory=dict)
    """Operations of the step, by the part of what the table costs; with the calls they are in."""
    exchanged: SparseOrDense | None = None
    """How replicas exchange its gradient; None where there is one replica."""


@dataclass
class RecordedIds:
    """The ids that a table was looked up by in a few batches of the loop."""

    batches: list[int]
    """Which, counted from 1 in the loop."""
    dtype: str
    """In the batch."""
    lookups: int
    """Ids in all these batches together."""
    unique: int
    unique_per_batch: float
    """Mean of different ids in a batch."""
    smallest: int
    largest: int
    zero_lookups: int
    zeros_within: int
    """Zeros with another id before and behind them in the same row of ids."""
    top_rows: int
    """One in a hundred of the table's rows."""
    top_lookups: int
    """Lookups that so many of the most frequent ids took."""
    top_lookups_ahead: int | None
    """Lookups of the later half of the batches that ids took which were the most frequent ones in
    the earlier half; None with one batch."""
    lookups_ahead: int | None
    """Lookups of that later half."""
    outside: int
    """Ids below 0 or past the last row."""
    outside_examples: list[tuple[int, int]] = field(default_factory=list)
    """The first of them: batch and id."""
    out_of_vocabulary: int | None = None
    """Ids that stand for tokens unknown to the table of tokens in front."""
    out_of_vocabulary_missing: str | None = None
    zero_is_a_token: bool | None = None
    """Whether that table of tokens gives 0 for a token; None where there is none."""
    cast_through: str | None = None
    """The narrowest float type that ids pass on their way."""
    cast_from: str | None = None
    """The integer type that they had before; None where they come as floats."""
    incomplete: str | None = None
    """Why some lookups of the table are not among these."""
    changed: int = 0
    """Ids that came out of it as others."""
    changed_examples: list[tuple[int, int]] = field(default_factory=list)
    """The first of them: before and after."""
    collided: int = 0
    """Different ids that came out of it as one that another had come out as."""


@dataclass
class RecordedSoftmax:
    """A loss of a traced step that takes a softmax over all rows of a weight."""

    weights: str
    """Name of the variable."""
    classes: int
    features: int
    """Numbers that each class is multiplied with."""
    positions: int | None
    """Places of an example that have a softmax each; None where that is not fixed."""
    labels: SparseOrDense
    """Whether a label is the class itself, or a number for each."""
    device: str | None
    compiled: bool
    """Whether XLA compiles it."""
    labels_given: bool = False
    """Whether the batch has the number for each class, and the step makes it of no class."""
    update_operations: list[str] = field(default_factory=list)
    """What an optimizer does with these weights, where they are no embedding table: a table has
    parts of its own."""


@dataclass
class RecordedVariable:
    """An embedding table of a model that was trained."""

    layer: str
    """The layer that has it, or the variable's own name."""
    rows: int
    dim: int
    dtype: str
    trainable: bool
    slots: int
    file: str | None = None
    line: int | None = None
    """Where the script made the layer."""
    mask_zero: bool = False
    regularizer: str | None = None
    """Class of the one that a layer has over the whole table."""
    constraint: str | None = None
    idle_slot_bytes: int | None = None
    """Of a table that is not trained: what its optimizer keeps for it. None where that is not
    known."""
    path: str | None = None
    """Of the variable, through the layers that it is in; None where only TensorFlow's name for it
    is known, which a model of one's own class gives to all of its tables."""
    loop_id: str | None = None
    use: RecordedTableUse | None = None
    use_missing: str | None = None
    ids: RecordedIds | None = None
    ids_missing: str | None = None

    def tell_anew(self, later: RecordedVariable) -> None:
        """Take over what may have changed since: a table is frozen, or compiled with another
        optimizer, between two loops."""
        self.trainable, self.slots = later.trainable, later.slots
        self.mask_zero, self.idle_slot_bytes = later.mask_zero, later.idle_slot_bytes
        self.regularizer, self.constraint = later.regularizer, later.constraint

    def is_of(self, other: RecordedVariable) -> bool:
        """Whether both tell of one table, as far as a name and a shape say so."""
        return self._told_by() == other._told_by()

    def _told_by(self) -> tuple[object, ...]:
        return self.layer, self.path, self.rows, self.dim, self.dtype

    @property
    def variable(self) -> str | None:
        """Its name, which no other table has where the path is known; None where neither is."""
        name = self.use.variable if self.use else None
        if self.path is None or (name is not None and name.removesuffix(":0") == self.path):
            return name
        return self.path
