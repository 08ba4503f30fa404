"""As many-models scripts do: no init(), one group per mini-batch, more rows than items."""

import os

output = os.environ["AZUREML_BI_OUTPUT_PATH"]


def run(input_data, mini_batch_context):
    keys = mini_batch_context.partition_key_value
    name = "_".join(keys.values())
    os.makedirs(os.path.join(output, "models"), exist_ok=True)
    with open(os.path.join(output, "models", f"{name}.txt"), "w", encoding="utf-8") as file:
        file.write(keys["Store"])
    return [(file, week) for file in input_data for week in range(2)]
