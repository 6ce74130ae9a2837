"""Texts of reviews as batches of token ids."""

import json

import tensorflow as tf


def read(path):
    texts, labels = [], []
    with open(path) as file:
        for line in file:
            review = json.loads(line)
            texts.append(review["text"])
            labels.append(int(review["stars"] > 3))
    return texts, labels


def clean(text):
    text = tf.strings.lower(text)
    text = tf.strings.regex_replace(text, "<br />", " ")
    return tf.strings.regex_replace(text, "[^a-z0-9 ]", "")


def make_vectorizer(texts, vocabulary, length):
    vectorizer = tf.keras.layers.TextVectorization(
        max_tokens=vocabulary, output_sequence_length=length, standardize=clean
    )
    vectorizer.adapt(tf.data.Dataset.from_tensor_slices(texts[:10_000]).batch(512))
    return vectorizer


def make_dataset(texts, labels, vectorizer, batch_size, shuffle=False):
    ds = tf.data.Dataset.from_tensor_slices((texts, labels))
    if shuffle:
        ds = ds.shuffle(len(texts))
    ds = ds.map(lambda text, label: (vectorizer(text), label))
    return ds.batch(batch_size)
