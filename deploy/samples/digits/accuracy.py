"""Compares the output of the digits sample with the labels: `accuracy.py OUTPUT LABELS`.

Prints the number of rows and the accuracy on the images that the model was not fitted on. Fails
when the rows are not exactly one for each image, in the order of the images.
"""

import csv
import sys


def main(output: str, labels: str) -> None:
    try:
        with open(labels, newline="") as file:
            expected = list(csv.DictReader(file))
        with open(output) as file:
            rows = [line.rstrip("\n").partition(": ") for line in file]
    except OSError as error:
        sys.exit(f"accuracy.py: {error}")

    if [row[0] for row in rows] != [label["file"] for label in expected]:
        sys.exit(
            f"{output} should hold one row for each of the {len(expected)} images of {labels}, "
            f"in their order; it holds {len(rows)} rows that are not these"
        )
    unseen = [
        row[2] == label["digit"] for row, label in zip(rows, expected) if label["part"] == "unseen"
    ]
    print(f"rows       {len(rows)}, one for each image, in order")
    print(f"accuracy   {sum(unseen) / len(unseen):.1%} of the {len(unseen)} unseen images")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
