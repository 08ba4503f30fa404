"""One dict for each JSON line; the numbers of the lines come from the context."""

import json


def run(mini_batch, mini_batch_context):
    base = mini_batch_context.global_row_index_lower_bound
    return [
        json.dumps({"line": base + number, "task": mini_batch.task_id, "text": row["text"]})
        for number, row in enumerate(mini_batch)
    ]
