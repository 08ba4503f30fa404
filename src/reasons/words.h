// Every reason that the command, the operator, a coordinator, an agent or a worker process may
// give, in the order of docs/messages.md. A word that is not here cannot be said: Reason does not
// compile with it. What each means stands in entries.cc.
#pragma once

#include <string_view>

namespace parallelrun::reasons {

inline constexpr std::string_view kWords[] = {
    // How a job ends.
    "Complete", "Completed", "CompletedWithFailures", "ShutdownFailed", "ErrorThresholdExceeded",
    "AllowedFailedCountExceeded", "AllowedFailedPercentExceeded", "NothingSucceeded", "NoRows",
    "SideFilesUnusable", "ScriptUnusable", "InitFailed", "InitTimeout", "InputUnusable",
    "NoProgress", "FirstTaskTimeout", "LedgerUnreadable", "Canceled", "DeadlineExceeded",
    "StartupDeadlineExceeded", "NodeRestartLimitExceeded", "CoordinatorRestartLimitExceeded",
    "CoordinatorCannotStart", "OutputNotPublished", "JobFailed",
    // Why an attempt failed.
    "Exception", "BadReturn", "BadSideFile", "ShortReturn", "RunTimeout", "OverheadTimeout",
    "ProcessEnded", "OOMKilled", "LostTooOften", "InputChanged", "InputUnreadable", "Misfit",
    "SkippedRows", "NoSpace", "ScriptMissing", "ScriptInvalid", "PythonTooOld",
    // What the nodes of a job wait for, the worst first.
    "NamespaceTerminating", "NameTaken", "VolumeNotShared", "ConfigMapNotFound", "SecretNotFound",
    "PersistentVolumeClaimNotFound", "CodeChanged", "OutputTaken", "OldPods", "ImagePullBackOff",
    "InvalidImageName", "InvalidPodTemplate", "Refused", "PodSecurityViolation", "Forbidden",
    "CreateContainerConfigError", "CreateContainerError", "CoordinatorSilent", "QuotaExceeded",
    "CoordinatorUnreachable", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox",
    "Unschedulable", "VolumeNotBound", "CoordinatorPaused", "NodeSilent", "CrashLoopBackOff",
    "HostNotReady", "NodeBackOff", "NodeDisrupted", "ApplyFailed", "NameTerminating",
    "ImagePullSecretNotFound", "CreatingPods", "Starting", "AllReady",
    // How a node ended.
    "AgentGaveUp", "AgentCannotStart", "AgentNoRoom", "RuntimeInstallFailed", "Killed", "Error",
    "Deleted", "PodMissing",
    // Other conditions, and events.
    "Valid", "Invalid", "Pending", "Suspended", "Queued", "Suspending", "NotSuspended",
    "PodsCreated", "Failing", "Failed", "NotFinished", "NotStalled", "Started", "Scaled",
    "SpecWarning", "RunWarning", "ContinuedWithChanges", "NodeFailed", "NodeOutOfMemory",
    "NodeOutOfDisk", "CoordinatorRestarted"};

}  // namespace parallelrun::reasons
