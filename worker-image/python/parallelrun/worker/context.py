"""The two arguments of run()."""

import json


class MiniBatch(list):
    """A list of file paths with the id of the mini-batch, the same over retries."""

    task_id = 0


class MiniBatchContext:
    """The optional second argument of run()."""

    def __init__(self, index, retries, first_item, keys):
        self.minibatch_index = index
        self.retry_count = retries
        self.global_row_index_lower_bound = first_item
        self.partition_key_value = json.loads(keys) if keys else {}
        self.dataset = None
        self.item_metadata = None

    def __repr__(self):
        return (
            f"MiniBatchContext(minibatch_index={self.minibatch_index}, "
            f"retry_count={self.retry_count}, "
            f"global_row_index_lower_bound={self.global_row_index_lower_bound}, "
            f"partition_key_value={self.partition_key_value}, dataset={self.dataset})"
        )


class Subset:
    """The part of the input that a mini-batch is; for people to read."""

    def __init__(self, source, first_item, items):
        self.source = source
        self.first_item = first_item
        self.items = items

    def __repr__(self):
        return f"Subset(source={self.source!r}, first_item={self.first_item}, items={self.items})"
