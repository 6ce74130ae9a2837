"""The reader of a ResNet: JPEG images in TFRecords, parsed, decoded, cropped, flipped, batched."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FILES, IMAGES, SIDE, CROP = 8, 32, 320, 224
FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def write_files(folder):
    rng = np.random.default_rng(201)
    for number in range(FILES):
        with tf.io.TFRecordWriter(f"{folder}/train-{number:05d}") as writer:
            for _ in range(IMAGES):
                coarse = rng.integers(0, 255, size=(80, 80, 3)).astype(np.uint8)
                image = tf.cast(tf.image.resize(coarse, [SIDE, SIDE]), tf.uint8)
                jpeg = tf.io.encode_jpeg(image, quality=95).numpy()
                values = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
                    "label": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[int(rng.integers(10))])
                    ),
                }
                example = tf.train.Example(features=tf.train.Features(feature=values))
                writer.write(example.SerializeToString())


def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return example["image"], example["label"]


def decode_and_crop(jpeg, label):
    image = tf.io.decode_jpeg(jpeg, channels=3)
    image = tf.image.random_crop(image, [CROP, CROP, 3])
    image = tf.image.random_flip_left_right(image)
    return tf.image.convert_image_dtype(image, tf.float32), label


with tempfile.TemporaryDirectory() as folder:
    write_files(folder)
    files = sorted(str(path) for path in Path(folder).iterdir())
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.flat_map(tf.data.TFRecordDataset)
    dataset = dataset.shuffle(64)
    dataset = dataset.map(parse)
    dataset = dataset.map(decode_and_crop)
    dataset = dataset.batch(16)

    model = keras.Sequential(
        [
            keras.Input(shape=(CROP, CROP, 3)),
            keras.layers.AveragePooling2D(8),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss)
    model.fit(dataset, epochs=1000, verbose=2)
