"""Writes the data of the wine sample: `make_data.py FOLDER`.

    FOLDER/tables/wine.csv      scikit-learn's wine table: id, 13 measurements, cultivar
    FOLDER/model/wine.joblib    a classifier fitted on the rows with an even id

Nothing is downloaded. Every file appears whole under its name, wine.csv last, so a second call
finds it and returns at once, and a call after an interrupted one starts again.
"""

import argparse
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
    from sklearn.datasets import load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    wine = load_wine(as_frame=True)
    even = wine.data.iloc[::2]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(even, wine.target[even.index])
    pickled = io.BytesIO()
    joblib.dump(model, pickled)
    write(folder / "model" / "wine.joblib", pickled.getvalue())

    table = wine.data.assign(cultivar=wine.target)
    csv = table.to_csv(index_label="id", lineterminator="\n")
    write(folder / "tables" / "wine.csv", csv.encode())
    return len(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the data of the wine sample.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder

    last = folder / "tables" / "wine.csv"
    if last.exists() and last.stat().st_mtime >= Path(__file__).stat().st_mtime:
        return
    try:
        count = make(folder)
    except ImportError as error:
        sys.exit(f"make_data.py: {error}; on Debian: apt install python3-sklearn python3-pandas")
    except OSError as error:
        sys.exit(f"make_data.py: {error}")
    print(f"wrote a table of {count} rows and a model to {folder}")


if __name__ == "__main__":
    main()
