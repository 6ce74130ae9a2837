"""Sessions of a shop from a JSON-lines log, padded to a length."""

import json

import numpy as np


def write_log(path, sessions=30_000, items=5_000, seed=4):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for number in range(sessions):
            start = int(rng.integers(items))
            viewed = (start + np.cumsum(rng.integers(0, 4, rng.integers(5, 30)))) % items
            events = [{"item": f"sku-{i}", "ms": int(rng.integers(10**6))} for i in viewed]
            file.write(json.dumps({"session": number, "events": events}) + "\n")


class SessionLog:
    def __init__(self, path, length):
        self.path = path
        self.length = length

    def __call__(self):
        with open(self.path) as file:
            for line in file:
                events = json.loads(line)["events"]
                items = [int(event["item"].split("-")[1]) + 1 for event in events]
                items = items[-self.length - 1 :]
                padded = np.zeros(self.length, dtype=np.int64)
                padded[: len(items) - 1] = items[:-1]
                yield padded, np.int64(items[-1])
