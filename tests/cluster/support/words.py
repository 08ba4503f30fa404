"""What people read of a job, by `kubectl get` and `kubectl describe`, held to what they should.

An expected text is literal but for these:
"""

import re

VARIES = {
    "<pod>": r"[a-z0-9-]+",
    "<node>": r"node \d+",
    "<n>": r"\d+(?:\.\d+)?",
    "<eta>": r"(?: \d[\d.dhms]*)?",
    "<hex>": r"[0-9a-f]+",
    "<any>": r".*",
    "<either>": "(?:",
    "<or>": "|",
    "<end>": ")",
    "<more>": r"(?: \(and \d+ more\))?",
}


def pattern(text):
    """The regular expression of an expected text."""
    parts = re.split("(" + "|".join(VARIES) + ")", text)
    return "".join(VARIES.get(part) or re.escape(part) for part in parts)


def same(expected, told):
    return re.fullmatch(pattern(expected), told) is not None


def row_of(table):
    """The job's line of `kubectl get prj`, words apart by one space, without its age."""
    head, line = table.splitlines()[:2]
    age = head.index("AGE")
    return " ".join(line[:age].split())


def conditions_of(description):
    """By type, in the words of `kubectl describe`: "STATUS REASON: MESSAGE"."""
    block = re.search(r"^  Conditions:\n((?:    .*\n)+)", description, re.M)
    found = {}
    fields = {}
    for line in block[1].splitlines() if block else []:
        name, _, value = line.strip().partition(":")
        fields[name] = value.strip()
        if name == "Type":
            message = f": {fields['Message']}" if fields["Message"] else ""
            found[fields["Type"]] = f"{fields['Status']} {fields['Reason']}{message}"
            fields = {}
    return found


def events_of(description):
    """In the words of `kubectl describe`: "TYPE REASON: MESSAGE"."""
    told = description.partition("\nEvents:")[2]
    line = r"^  (Normal|Warning) +(\S+) +.+? +parallelrun-operator +(.+)$"
    return [f"{kind} {reason}: {text}" for kind, reason, text in re.findall(line, told, re.M)]


def lines_of(description):
    """The others, with the name of what each is part of: "NODES: NAME: VALUE"."""
    found = []
    around = []  # what a line may be part of: its indent and its name
    for line in description.partition("\nEvents:")[0].splitlines():
        indent = len(line) - len(line.lstrip())
        name, _, value = line.strip().partition(":")
        while around and around[-1][0] >= indent:
            around.pop()
        whole = f"{around[-1][1]}: " if around else ""
        found.append(f"{whole}{name}: {value.strip()}")
        if not value.strip():
            around.append((indent, name))
    return found


# The conditions of a job; what a test expects beside is put in place of these.
WORKS = {
    "Accepted": "True Valid: The job can be read.",
    "Suspended": "False NotSuspended: The job is not suspended.",
    "NodesReady": "True AllReady: 2 of 2 nodes are ready",
    "Complete": "False Pending: Nothing is known yet.",
    "Failed": "False Pending: Nothing is known yet.",
    "FailureTarget": "False Pending: Nothing is known yet.",
    "Finished": "False NotFinished: The job is not over.",
    "Reconciling": "False PodsCreated: All pods of the job are made.",
    "Stalled": "False NotStalled: Nobody has to change anything.",
}
OVER = {
    "Accepted": "True Valid: The job can be read.",
    "Suspended": "False Completed: the job is over",
    "NodesReady": "False Completed: the job is over",
    "Failed": "False Completed: the job has succeeded",
    "FailureTarget": "False Completed: the job has succeeded",
    "Finished": "True Completed: <any>",
    "Reconciling": "False Completed: the job is over",
    "Stalled": "False Completed: the job is over",
}


def failed(cause):
    """The conditions of a job that failed for `cause`, "REASON: MESSAGE"."""
    conditions = {kind: text.replace("Completed", "Failed") for kind, text in OVER.items()}
    true = ("Failed", "FailureTarget", "Finished", "Stalled")
    conditions |= dict.fromkeys(true, f"True {cause}")
    return {**conditions, "Complete": "False Failed: The job has failed, and its pods are gone."}


def differences(description, table, row, conditions, events, lines):
    """What is not told as expected, in lines; of events and lines there may be others too."""
    told = conditions_of(description)
    wrong = []
    if not same(row, row_of(table)):
        wrong.append(f"get: {row!r}, but it is {row_of(table)!r}")
    for kind in sorted({*conditions, *told}):
        expected, found = conditions.get(kind, "absent"), told.get(kind, "absent")
        if not same(expected, found):
            wrong.append(f"{kind}: {expected!r}, but it is {found!r}")
    for wanted, there in ((events, events_of(description)), (lines, lines_of(description))):
        missing = (one for one in wanted if not any(same(one, told) for told in there))
        wrong += [f"missing: {one!r}" for one in missing]
    return wrong
