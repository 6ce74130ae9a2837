"""Train two towers for retrieval."""

import argparse
import dataclasses

import tensorflow as tf

from retrieval.config import Config
from retrieval.data import load, train_batches
from retrieval.trainer import Trainer


def config_of_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for field in dataclasses.fields(Config):
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(flag, type=type(field.default), default=field.default)
    return Config(**vars(parser.parse_args()))


def main():
    config = config_of_arguments()
    tf.keras.utils.set_random_seed(3)
    train, valid, items = load(config)
    trainer = Trainer(config, items)
    trainer.fit(train_batches(train, config), train_batches(valid, config))


if __name__ == "__main__":
    main()
