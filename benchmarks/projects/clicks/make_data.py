"""Write the click log that the project trains on: eight CSV shards with a header line each."""

import argparse
from pathlib import Path

import numpy as np

CATEGORICAL = ["user", "item", "category", "city", "device", "hour"]
SIZES = [50_000, 20_000, 300, 1_000, 12, 24]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="data")
    parser.add_argument("--rows", type=int, default=160_000)
    parser.add_argument("--shards", type=int, default=8)
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    per_shard = args.rows // args.shards
    for shard in range(args.shards):
        columns = [rng.zipf(1.3, per_shard) % size for size in SIZES]
        price = rng.gamma(2.0, 10.0, per_shard)
        age = rng.integers(18, 80, per_shard)
        score = (columns[0] % 7 + columns[1] % 5) / 12.0
        label = rng.random(per_shard) < 0.2 + 0.6 * score
        with (out / f"clicks-{shard:02d}.csv").open("w") as file:
            file.write("label,price,age," + ",".join(CATEGORICAL) + "\n")
            for row in range(per_shard):
                ids = ",".join(
                    f"{name[0]}{values[row]}" for name, values in zip(CATEGORICAL, columns)
                )
                file.write(f"{int(label[row])},{price[row]:.2f},{age[row]},{ids}\n")


if __name__ == "__main__":
    main()
