"""Turn one line of the click log into ids."""

import json
import zlib

import numpy as np

BUCKETS = 50_000
QUERY_LENGTH = 8
TITLE_LENGTH = 24


def word_ids(text, length):
    ids = [1 + zlib.crc32(word.encode()) % BUCKETS for word in text.lower().split()]
    ids = ids[:length]
    return np.array(ids + [0] * (length - len(ids)), dtype=np.int32)


def age_bucket(days):
    return np.int32(min(9, int(np.log2(days + 1))))


def parse_line(line):
    row = json.loads(line)
    query = word_ids(row["query"], QUERY_LENGTH)
    title = word_ids(row["doc"]["title"], TITLE_LENGTH)
    return query, title, age_bucket(row["doc"]["age_days"]), np.float32(row["clicked"])
