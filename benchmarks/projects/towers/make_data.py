"""Write interactions of users with items, and a table of items."""

import os

import numpy as np
import pandas as pd

USERS, ITEMS, ROWS = 8_000, 4_000, 60_000


def main(directory="data"):
    os.makedirs(directory, exist_ok=True)
    rng = np.random.default_rng(5)
    taste, topic = rng.integers(0, 20, USERS), rng.integers(0, 20, ITEMS)
    by_topic = [np.flatnonzero(topic == number) for number in range(20)]
    user = rng.integers(0, USERS, ROWS)
    item = rng.integers(0, ITEMS, ROWS)
    liked = rng.random(ROWS) < 0.7
    item[liked] = [rng.choice(by_topic[taste[one]]) for one in user[liked]]
    frame = pd.DataFrame(
        {"user": user, "item": item, "when": np.sort(rng.integers(0, 10**6, ROWS))}
    )
    frame["device"] = rng.choice(["phone", "desktop", "tablet"], ROWS)
    frame.to_csv(os.path.join(directory, "interactions.csv"), index=False)
    items = pd.DataFrame({"item": np.arange(ITEMS), "topic": topic})
    items["price"] = rng.gamma(2.0, 20.0, ITEMS).round(2)
    items.to_csv(os.path.join(directory, "items.csv"), index=False)


if __name__ == "__main__":
    main()
