"""A module of the user's own whose top-level code works for a while when it is imported."""

import hashlib

WORDS = [f"word{number}" for number in range(40_000)]


def bucket_of(word, buckets=5000):
    """A stable hash, slow as such things are in Python."""
    digest = word.encode()
    for _ in range(60):
        digest = hashlib.sha256(digest).digest()
    return int.from_bytes(digest[:8], "big") % buckets


BUCKETS = {word: bucket_of(word) for word in WORDS}
