"""Entry script of the digits sample: tells which digit each image shows."""

import argparse
from pathlib import Path

import joblib
import numpy as np
from azureml_user.parallel_run import EntryScript
from PIL import Image


def init():
    global model, logger
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True, help="the fitted classifier, a joblib file")
    arguments, _ = parser.parse_known_args()  # the system's own arguments are there, too

    logger = EntryScript().logger
    model = joblib.load(arguments.model)
    logger.info("loaded %s", arguments.model)


def run(mini_batch):
    logger.info("%d images, the first is %s", len(mini_batch), mini_batch[0])
    pixels = np.stack([np.asarray(Image.open(path)).ravel() for path in mini_batch])
    digits = model.predict(pixels)
    return [f"{Path(path).name}: {digit}" for path, digit in zip(mini_batch, digits)]
