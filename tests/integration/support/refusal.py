"""What a job that cannot run must look like to the user."""

import os

# A stack trace of ours, or a C++ library's last words.
CRASH_WORDS = (
    "Traceback",
    "terminate called",
    "what():",
    "free():",
    "Segmentation",
    "unexpectedly",
)


def expect_refusal(work, result, *words, code=None):
    """Ended before any time limit of a job, with one message that holds `words`, and with nothing
    in the output folder."""
    assert result.code in ((1, 2) if code is None else (code,)), result
    for word in words:
        assert word in result.output, (word, result)
    for word in CRASH_WORDS:
        assert word not in result.output, (word, result)
    if words:
        assert result.output.count(words[0]) == 1, result  # said once
    expect_no_output(work)


def expect_no_output(work):
    folder = work.output.parent
    assert not folder.is_dir() or os.listdir(folder) == []
