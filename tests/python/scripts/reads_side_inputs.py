"""Side inputs by name, as data sets, and secrets."""

from azureml.core import Dataset, Run

run_context = Run.get_context()
workspace = run_context.experiment.workspace


def init():
    global labels, prices
    with open(run_context.input_datasets["labels"] + "/names.txt", encoding="utf-8") as file:
        labels = file.read().split()
    prices = Dataset.get_by_name(workspace, name="prices")


def run(mini_batch):
    with prices.mount() as mounted, open(f"{mounted.mount_point}/a.csv", encoding="utf-8") as file:
        first = file.readline().strip()
    return [
        labels,
        first,
        prices.to_path(),
        [path.rpartition("/")[2] for path in prices.download("copy", overwrite=True)],
        int(prices.to_pandas_dataframe()["price"].sum()),
        sorted(workspace.datasets),
        run_context.get_secret("db-password"),
        workspace.get_default_keyvault().get_secret(name="TOKEN"),
    ]
