"""The wine sample: a table, cut into mini-batches of about 2 KB."""

import re

import pytest
from support.samples import make_data, words_to_run


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data("wine", tmp_path_factory.mktemp("wine"))


def expected(data):
    import joblib
    import pandas

    table = pandas.read_csv(data / "tables" / "wine.csv")
    model = joblib.load(data / "model" / "wine.joblib")
    predicted = model.predict(table.drop(columns=["id", "cultivar"]))
    rows = zip(table["id"], table["cultivar"], predicted)
    return "".join(f"{key} {cultivar} {digit}\n" for key, cultivar, digit in rows)


@pytest.mark.parametrize("size", ["2KB", "1000", "1MB"])
def test_rows_are_those_of_a_direct_computation(work, data, size):
    more = ["--set", f"spec.miniBatchSize={size}"]
    result = work.call(*words_to_run("wine", data, work.out, *more))
    assert result.code == 0, result
    assert (work.out / "wine/output/parallel_run_step.txt").read_text() == expected(data)
    length = (data / "tables" / "wine.csv").stat().st_size
    wanted = {"2KB": length // 2048, "1000": length // 1000, "1MB": 0}[size]
    batches = int(re.search(r"(\d+) succeeded, 0 failed, of", result.output).group(1))
    assert wanted <= batches <= wanted + 2
