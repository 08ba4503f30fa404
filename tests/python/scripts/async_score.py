"""Several mini-batches at once, one thread each; the first argument says how they end."""

import sys
import threading

how = sys.argv[1] if len(sys.argv) > 1 else "reversed"
lock = threading.Lock()
finished = {}
processing = {}


def init():
    print("init")


def enqueue(input_data, mini_batch_context):
    if how == "refuse" and mini_batch_context.minibatch_index == 1:
        raise ValueError("not now")
    with lock:
        processing[mini_batch_context.minibatch_index] = (input_data, mini_batch_context)
        # The last of three finishes first.
        if how != "hold" and (how != "reversed" or len(processing) == 3):
            threading.Thread(target=work, args=(sorted(processing, reverse=True),)).start()


def work(indices):
    for index in indices:
        with lock:
            if index not in processing:
                continue
            data, context = processing[index]
            error = ValueError("bad batch") if how == "raise" and index == 1 else None
            entry = {"ret": list(data), "mini_batch_context": context, "exception": error}
            if how != "lose":
                finished[str(index) if how == "strings" else index] = entry
            del processing[index]


def check_all_tasks_processed() -> bool:
    with lock:
        return not processing


def get_finished_batch_result():
    global finished
    with lock:
        result, finished = finished, {}
    return result


def get_processing_batch_number() -> int:
    with lock:
        return len(processing)


def shutdown():
    print("shutdown")
