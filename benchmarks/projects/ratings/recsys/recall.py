"""Recall at ten of held-out ratings, after each epoch."""

from collections import defaultdict

import numpy as np
import tensorflow as tf


class RecallAtTen(tf.keras.callbacks.Callback):
    def __init__(self, users, items, n_items, max_users=300):
        super().__init__()
        self.relevant = defaultdict(set)
        for user, item in zip(users, items):
            self.relevant[int(user)].add(int(item))
        self.users = sorted(self.relevant)[:max_users]
        self.n_items = n_items

    def on_epoch_end(self, epoch, logs=None):
        hits = total = 0
        all_items = np.arange(self.n_items)
        for user in self.users:
            user_ids = np.full(self.n_items, user)
            scores = self.model.predict((user_ids, all_items), batch_size=2048, verbose=0)
            top = np.argsort(-scores)[:10]
            hits += len(self.relevant[user] & set(top.tolist()))
            total += min(10, len(self.relevant[user]))
        print(f" recall@10 {hits / total:.4f}")
