"""What the log holds and how large the model is."""

CATEGORICAL = ["user", "item", "category", "city", "device", "hour"]
BUCKETS = {"user": 60_000, "item": 30_000, "category": 512, "city": 2_048, "device": 32, "hour": 48}
NUMERIC = ["price", "age"]
DEFAULTS = [0.0, 0.0, 0.0] + [""] * len(CATEGORICAL)
COLUMNS = ["label", *NUMERIC, *CATEGORICAL]
DIMENSION = 16
