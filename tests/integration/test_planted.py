"""What others put into the log folder while a job runs: no link is followed, no result suffers."""

from support.workspace import ECHO

HELD = ECHO.replace("from steps import note", "from steps import note, wait_for").replace(
    "    return", '    wait_for("planted")\n    return'
)


def start(work):
    rows = work.files(4)
    work.script(HELD)
    work.job(isolateFailures=True)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("calls")) == 2, "both processes are at work")
    return rows, command


def test_reports_are_not_written_through_links(work):
    rows, command = start(work)
    theirs = work.root / "theirs"
    theirs.mkdir()
    names = ("job_result.txt", "job_error.txt", "readme.txt", "user/error.txt")
    reports = ("processed_mini-batches.csv", "node_summary.csv", "process_summary.csv")
    for name in (*names, *(f"sys/job_report/{report}" for report in reports), "user/metrics.jsonl"):
        victim = theirs / name.replace("/", "-")
        victim.write_text("not yours\n")
        for planted in (work.logs / name, work.logs / f"{name}.tmp"):
            planted.parent.mkdir(parents=True, exist_ok=True)
            planted.symlink_to(victim)
    for overview in work.logs.glob("job_progress_overview.*"):
        overview.unlink()
        overview.symlink_to(theirs / "job_result.txt")
    work.make("planted")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows
    for victim in theirs.iterdir():
        assert victim.read_text() == "not yours\n", victim
    assert "Succeeded" in (work.logs / "job_result.txt").read_text()
    assert not (work.logs / "job_result.txt").is_symlink()
    table = work.logs / "sys/job_report/processed_mini-batches.csv"
    assert len(table.read_text().splitlines()) == 5
    assert not table.is_symlink()


def test_a_log_folder_that_is_a_link_gets_no_report(work):
    rows, command = start(work)
    theirs = work.root / "theirs"
    theirs.mkdir()
    (work.logs / "sys/job_report").symlink_to(theirs)
    work.make("planted")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows
    assert list(theirs.iterdir()) == []
    assert "the reports of the job are not complete" in work.log_text("sys/master_role.txt")


def test_a_report_that_cannot_be_renamed_changes_no_verdict(work):
    """Its name is that of a folder that is not empty: no rename can take it."""
    rows, command = start(work)
    for name in (
        "sys/job_report/processed_mini-batches.csv",
        "job_result.txt",
        "dead-letter.jsonl",
    ):
        (work.logs / name / "in").mkdir(parents=True)
    work.make("planted")
    result = command.wait()
    assert result.code == 0, result
    assert "unexpectedly" not in result.output
    assert "Succeeded (Complete)" in result.output
    assert work.rows() == rows
    log = work.log_text("sys/master_role.txt")
    assert "the reports of the job are not complete" in log
    assert "processed_mini-batches.csv" in log
