"""The second argument of run()."""

import json


def run(input_data, context):
    seen = {
        "minibatch_index": context.minibatch_index,
        "retry_count": context.retry_count,
        "lower_bound": context.global_row_index_lower_bound,
        "keys": context.partition_key_value,
        "dataset": str(context.dataset),
        "absent": getattr(context, "absent", "default"),
    }
    if context.item_metadata is not None:
        seen["item_metadata"] = context.item_metadata
    return [json.dumps(seen)] * len(input_data)
