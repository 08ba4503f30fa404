"""As table scripts do: joins its result to the mini-batch by position, and returns the frame."""

import pandas as pd


def run(input_data: pd.DataFrame):
    result = [row["a"] * 2 for _, row in input_data.iterrows()]
    frame = input_data.copy().join(pd.DataFrame(result, columns=["double"]))
    frame["count"] = len(input_data)
    return frame.drop(columns=["a"])
