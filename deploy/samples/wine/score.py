"""Entry script of the wine sample: tells which cultivar each row of measurements is of."""

import argparse

import joblib
from azureml_user.parallel_run import EntryScript


def init():
    global model
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True, help="the fitted classifier, a joblib file")
    arguments, _ = parser.parse_known_args()  # the system's own arguments are there, too

    model = joblib.load(arguments.model)
    EntryScript().logger.info("loaded %s", arguments.model)


def run(mini_batch):
    """Gets a pandas DataFrame; every row of the DataFrame returned becomes one line."""
    result = mini_batch[["id", "cultivar"]].copy()
    result["predicted"] = model.predict(mini_batch.drop(columns=["id", "cultivar"]))
    return result
