"""Write click logs of a search engine as JSON lines, in a few files."""

import json
import os
import random

WORDS = [f"w{number}" for number in range(20_000)]
FILES, ROWS = 4, 10_000


def words(rng, low, high):
    return [WORDS[int(len(WORDS) * rng.random() ** 3)] for _ in range(rng.randint(low, high))]


def main(directory="data"):
    os.makedirs(directory, exist_ok=True)
    rng = random.Random(7)
    for number in range(FILES):
        with open(os.path.join(directory, f"clicks-{number}.jsonl"), "w") as file:
            for _ in range(ROWS):
                query = words(rng, 1, 6)
                title = words(rng, 4, 20)
                if rng.random() < 0.5:
                    title[: len(query)] = query
                overlap = len(set(query) & set(title)) / len(query)
                row = {
                    "query": " ".join(query),
                    "doc": {"title": " ".join(title), "age_days": rng.randint(0, 900)},
                    "clicked": int(rng.random() < 0.2 + 0.6 * overlap),
                }
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
