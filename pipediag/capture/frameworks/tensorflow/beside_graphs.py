"""What a script's graph writes to, and a thread beside it reads: things of ours that have a name.

A graph finds them by their name, in the host's memory. It captures nothing for them, so that the
captures and variables of a function, which a script may differentiate by, freeze or save, are its
own. Where it runs in another process, its operations make them there anew, for nobody to read.
"""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager
from typing import Any

SCOPE = "pipediag_beside"
"""The name scope of all operations of ours, by which they are told from the script's."""


def our_operations() -> AbstractContextManager[Any]:
    """A context in which all operations are ours."""
    from tensorflow.python.framework import ops

    scope: AbstractContextManager[Any] = ops.name_scope(SCOPE)
    return scope


def _new_name() -> str:
    """A saved function may be loaded anywhere, beside others that were counted."""
    return f"pipediag_{uuid.uuid4().hex}"


class CountBeside:
    """A count; adding to it takes about a microsecond and can't fail for want of a first value.

    An accumulator counts what is applied to it, at once, also by steps that overlap.
    """

    def __init__(self) -> None:
        self._name = _new_name()

    def add(self) -> Any:
        """Add one, wherever what is traced now runs; returns the count behind that."""
        from tensorflow.python.framework import constant_op, dtypes, ops
        from tensorflow.python.ops import gen_data_flow_ops

        with our_operations(), ops.device("/CPU:0"):
            accumulator = self._accumulator()
            added = gen_data_flow_ops.resource_accumulator_apply_gradient(
                accumulator,
                local_step=constant_op.constant(0, dtypes.int64),
                gradient=constant_op.constant(0.0, dtypes.float32),
            )
            with ops.control_dependencies([added]):
                return gen_data_flow_ops.resource_accumulator_num_accumulated(accumulator)

    def read(self) -> int:
        """The count by now."""
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_data_flow_ops

        with ops.init_scope(), ops.device("/CPU:0"):
            accumulator = self._accumulator()
            return int(gen_data_flow_ops.resource_accumulator_num_accumulated(accumulator).numpy())

    def _accumulator(self) -> Any:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import gen_data_flow_ops

        return gen_data_flow_ops.resource_conditional_accumulator(
            dtype=dtypes.float32, shape=[], shared_name=self._name
        )


class VariantBeside:
    """A variable of variants, such as optional values."""

    def __init__(self) -> None:
        self.name = _new_name()

    def assign(self, value: Any) -> None:
        """Now, or wherever what is traced now runs."""
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_resource_variable_ops

        with ops.device("/CPU:0"):
            gen_resource_variable_ops.assign_variable_op(self._handle(), value)

    def read(self) -> Any:
        """Its value by now; None where it has had none."""
        from tensorflow.python.framework import dtypes, ops
        from tensorflow.python.ops import gen_resource_variable_ops

        with ops.init_scope(), ops.device("/CPU:0"):
            handle = self._handle()
            if not bool(gen_resource_variable_ops.var_is_initialized_op(handle)):
                return None
            return gen_resource_variable_ops.read_variable_op(handle, dtypes.variant)

    def _handle(self) -> Any:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import gen_resource_variable_ops

        return gen_resource_variable_ops.var_handle_op(
            dtype=dtypes.variant, shape=[], shared_name=self.name
        )
