"""Writes the data of the digits sample: `make_data.py FOLDER`.

    FOLDER/images/0000.png ... 1796.png   scikit-learn's handwritten digits, 8x8 grey
    FOLDER/model/digits.joblib            a classifier fitted on the first half of them
    FOLDER/labels.csv                     file, digit, part (fit or unseen)

Nothing is downloaded. Every file appears whole under its name, labels.csv last, so a second call
finds it and returns at once, and a call after an interrupted one starts again.
"""

import argparse
import csv
import io
import os
import sys
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)


def make(folder: Path) -> int:
    import joblib
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    digits = load_digits()
    grey = (digits.images * 15).astype(np.uint8)  # from 0..16 to 0..240
    half = len(grey) // 2

    model = SVC(gamma="scale").fit(grey[:half].reshape(half, -1), digits.target[:half])
    pickled = io.BytesIO()
    joblib.dump(model, pickled)
    write(folder / "model" / "digits.joblib", pickled.getvalue())

    labels = io.StringIO()
    rows = csv.writer(labels, lineterminator="\n")
    rows.writerow(["file", "digit", "part"])
    for index, (pixels, digit) in enumerate(zip(grey, digits.target)):
        name = f"{index:04}.png"
        png = io.BytesIO()
        Image.fromarray(pixels).save(png, "PNG")
        write(folder / "images" / name, png.getvalue())
        rows.writerow([name, digit, "fit" if index < half else "unseen"])
    write(folder / "labels.csv", labels.getvalue().encode())
    return len(grey)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the data of the digits sample.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder

    last = folder / "labels.csv"
    if last.exists() and last.stat().st_mtime >= Path(__file__).stat().st_mtime:
        return
    try:
        count = make(folder)
    except ImportError as error:
        sys.exit(f"make_data.py: {error}; on Debian: apt install python3-sklearn python3-pil")
    except OSError as error:
        sys.exit(f"make_data.py: {error}")
    print(f"wrote {count} images, their labels and a model to {folder}")


if __name__ == "__main__":
    main()
