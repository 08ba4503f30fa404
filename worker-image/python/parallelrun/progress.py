"""How far a job is, shown from Python: by tqdm where it is, else in a line, or not at all."""

from __future__ import annotations

import html
import sys
import warnings
from typing import Any, Protocol, Sequence


class Shown(Protocol):
    """Shows progress events (docs/events.md), and the failures that were heard of until then."""

    def show(self, progress: dict[str, Any], failed: Sequence[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


def progress_for(name: str) -> Shown:
    """What this place can show: tqdm's bar, a notebook's display, a terminal's line, nothing."""
    notebook = _in_notebook()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not notebook and not terminal:
        return _Nothing()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a notebook has no widgets: it shows text then
            from tqdm.auto import tqdm  # type: ignore[import-not-found,import-untyped]
        return _Tqdm(tqdm, name)
    except ImportError:
        return _Notebook(name) if notebook else _Line()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def settled(progress: dict[str, Any]) -> int:
    """Mini-batches that have succeeded or failed."""
    batches = progress["miniBatches"]
    return int(batches["succeeded"] + batches["failed"])


def line(progress: dict[str, Any]) -> str:
    """As `61 of 180 mini-batches, 20.5/s, 2 failed, 6 s left`."""
    batches = progress["miniBatches"]
    total = batches["total"]
    text = f"{settled(progress)} of {'at least ' if total is None else ''}{batches['planned']}"
    text += f" mini-batches, {progress['perSecond']:.1f}/s"
    if batches["failed"]:
        text += f", {batches['failed']} failed"
    if progress["secondsRemaining"] is not None:
        text += f", {progress['secondsRemaining']} s left"
    slowest = progress.get("slowest")
    if slowest and slowest["seconds"] >= 10:
        text += f", the slowest for {slowest['seconds']:.0f} s"
    return text if progress["phase"] == "Running" else f"{text}, {progress['phase']}"


class _Nothing:
    def show(self, progress: dict[str, Any], failed: Sequence[dict[str, Any]]) -> None:
        pass

    def close(self) -> None:
        pass


class _Tqdm:
    def __init__(self, tqdm: Any, name: str) -> None:
        self._tqdm = tqdm
        self._name = name
        self._bar: Any = None

    def show(self, progress: dict[str, Any], failed: Sequence[dict[str, Any]]) -> None:
        batches = progress["miniBatches"]
        if self._bar is None:
            self._bar = self._tqdm(
                desc=self._name,
                unit=" mini-batches",
                initial=batches["before"],  # so that the rate is this run's
                total=batches["total"],
            )
        self._bar.total = batches["total"]
        if batches["failed"]:
            self._bar.set_postfix(failed=batches["failed"], refresh=False)
        self._bar.update(settled(progress) - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Line:
    """One line of a terminal, rewritten."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, progress: dict[str, Any], failed: Sequence[dict[str, Any]]) -> None:
        text = line(progress)
        if text != self._last:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        self._last = text

    def close(self) -> None:
        if self._last:
            sys.stderr.write("\n")
        self._last = ""


class _Notebook:
    """A display that is updated, of a notebook without tqdm."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle: Any = None
        self._last = ""

    def show(self, progress: dict[str, Any], failed: Sequence[dict[str, Any]]) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        batches = progress["miniBatches"]
        total = batches["total"]
        bar = f"<progress value='{settled(progress)}' max='{total}'></progress> " if total else ""
        text = bar + html.escape(f"{self._name}: {line(progress)}")
        if failed:
            last = failed[-1]
            text += "<br>" + html.escape(f"{last['type']}: {last['message']}"[:300])
        if text == self._last:
            return
        self._last = text
        if self._handle is None:
            self._handle = display(HTML(text), display_id=True)
        else:
            self._handle.update(HTML(text))

    def close(self) -> None:
        pass
