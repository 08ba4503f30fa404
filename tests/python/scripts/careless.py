"""Swallows the failure of its own init(), and then returns nothing."""

model = None


def init():
    global model
    try:
        with open("no-such-model", encoding="utf-8") as file:
            model = file.read()
    except OSError as error:
        print("init failed:", error)


def run(mini_batch):
    if model is None:
        print("no model")
        return None
    return mini_batch
