"""Processes of a script, and its modules that shadow the standard library, are as natively."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

TRAINING = """
    import os

    def train():
        import keras
        import numpy as np

        class Count(keras.callbacks.Callback):
            steps = 0

            def on_train_batch_end(self, batch, logs=None):
                self.steps += 1

        count = Count()
        x = np.random.rand(2000, 4).astype("float32")
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(x, x.sum(1), batch_size=5, epochs=3, verbose=0, callbacks=[count])
        return count.steps
"""

TRAINED_ELSEWHERE = """
    import multiprocessing
    import subprocess
    import sys

    import training

    def work(queue):
        queue.put((training.train(), multiprocessing.current_process().name, sys.argv[1:]))

    if __name__ == "__main__":
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print("FACT", method, queue.get(timeout=100), flush=True)
            process.join(60)
            print("FACT", method, process.exitcode, flush=True)
        code = "import sys, training; print('FACT', training.train(), sys.argv, sys.orig_argv[1:2])"
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        print(done.stdout.splitlines()[-1], done.returncode)
"""

FORKED_IN_TRAINING = """
    import multiprocessing
    import os
    import sys

    import keras
    import numpy as np

    def say(text):
        os.write(1, f"FACT {text}\\n".encode())

    class Forks(keras.callbacks.Callback):
        seen = 0

        def on_train_batch_end(self, batch, logs=None):
            self.seen += 1
            if self.seen % 40:
                return
            sys.stdout.flush()
            worker = multiprocessing.get_context("fork").Process(target=say, args=("worker",))
            worker.start()
            worker.join()
            child = os.fork()
            if child:
                print("FACT child", self.seen, os.waitpid(child, 0)[1], flush=True)
                return
            say(f"switch interval {sys.getswitchinterval():.4f}")
            os._exit(5)

    x = np.random.rand(4000, 4).astype("float32")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, x.sum(1), batch_size=10, epochs=1, verbose=0, callbacks=[Forks()])
    print("FACT steps", int(model.optimizer.iterations.numpy()))
"""


def test_processes_that_train_are_native_and_said_not_to_be_measured(make_case: MakeCase) -> None:
    analysed = make_case(TRAINED_ELSEWHERE, training=TRAINING).alike("--budget", "0", facts=5)
    said = analysed.session.verdict.summary
    assert "in the script's own process" in said
    assert "which pipediag does not measure" in said
    others = analysed.session.other_processes
    assert others.count >= 3


def test_a_process_forked_in_the_middle_of_a_training_is_native(make_case: MakeCase) -> None:
    analysed = make_case(FORKED_IN_TRAINING).alike("--budget", "0", "--run-to-end")
    assert len(analysed.facts) > 20
    session = analysed.session
    assert session.notes == []
    assert [loop.steps for loop in session.loops if loop.role == "training"] == [400]
