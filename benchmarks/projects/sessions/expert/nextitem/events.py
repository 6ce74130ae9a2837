"""Sessions of a shop from a JSON-lines log, padded to a length; the log is read once."""

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


def load(path, length):
    with open(path) as file:
        lines = file.readlines()
    padded = np.zeros((len(lines), length), dtype=np.int64)
    last = np.zeros(len(lines), dtype=np.int64)
    for row, line in enumerate(lines):
        events = json.loads(line)["events"]
        items = [int(event["item"].split("-")[1]) + 1 for event in events][-length - 1 :]
        padded[row, : len(items) - 1] = items[:-1]
        last[row] = items[-1]
    return padded, last
