"""Write reviews as JSON lines."""

import json
import pathlib

import numpy as np

WORDS = [f"word{i}" for i in range(20_000)]


def main():
    out = pathlib.Path("data")
    out.mkdir(exist_ok=True)
    rng = np.random.default_rng(2)
    for split, rows in (("train", 40_000), ("test", 6_000)):
        with (out / f"{split}.jsonl").open("w") as file:
            for _ in range(rows):
                stars = int(rng.integers(1, 6))
                ids = (rng.zipf(1.3, rng.integers(40, 160)) * stars) % len(WORDS)
                text = " ".join(WORDS[i] for i in ids) + "! <br />"
                file.write(json.dumps({"text": text.title(), "stars": stars}) + "\n")


if __name__ == "__main__":
    main()
