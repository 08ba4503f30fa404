"""Describes the DataFrame that it gets, changes it in place and returns it."""


def run(mini_batch):
    print([str(column) for column in mini_batch.columns], [t.kind for t in mini_batch.dtypes])
    print(repr(mini_batch.index))
    mini_batch["count"] = len(mini_batch)
    return mini_batch
