#include "reasons/sections.h"

namespace parallelrun::reasons {
namespace {

constexpr uint8_t kObstacle = kCondition | kEvent;

constexpr Entry kWhatNodesWaitFor[] = {
    {"NamespaceTerminating", kObstacle, "The namespace is being deleted, and the job with it.",
     "Nothing. It is tried again every minute."},
    {"NameTaken", kObstacle, "An object that is not of this job has a name that the job needs.",
     "Delete that object, or give the job another name."},
    {"VolumeNotShared", kObstacle,
     "A PersistentVolumeClaim may be mounted by one host only (ReadWriteOnce), and that host has "
     "no room for all pods of the job; or by one pod only (ReadWriteOncePod).",
     "Use a ReadWriteMany class, or `nodeCount: 1`. If only the output lies there, "
     "`output.mountOnNodes: false` is enough."},
    {"ConfigMapNotFound", kObstacle, "The job names a ConfigMap that is not in its namespace.",
     "Create it. The job starts by itself within 5 seconds."},
    {"SecretNotFound", kObstacle, "The job names a Secret that is not in its namespace.",
     "Create it. The job starts by itself within 5 seconds."},
    {"PersistentVolumeClaimNotFound", kObstacle,
     "The job names a PersistentVolumeClaim that is not in its namespace.",
     "Create it. The job starts by itself within 5 seconds."},
    {"CodeChanged", kObstacle,
     "The job's copy of its code was deleted while it ran, and the ConfigMap of the code has "
     "changed.",
     "Give that ConfigMap its old content again, and delete the copy that the message names."},
    {"OutputTaken", kObstacle,
     "Another job writes the same output and is not over. One that has begun goes first, also "
     "while it is suspended; else the older one. With `onOutputTaken: Fail` this job has failed "
     "for it.",
     "Wait: this job starts within 5 seconds of the end of the other, and with `output.ifExists: "
     "Fail` it fails if that one has left an output. Or delete that job, or give one of them "
     "another `output.path`. One that has failed is deleted and created anew."},
    {"OldPods", kObstacle, "Pods of a deleted job of the same name are still ending.",
     "Nothing. The job starts when they are gone."},
    {"ImagePullBackOff", kObstacle, "The image cannot be pulled.",
     "Look at its name, at the registry, and at `environment.imagePullSecrets`. The message has "
     "the words of the kubelet and the field."},
    {"InvalidImageName", kObstacle, "The name of the image is no name of an image.",
     "Correct `environment.image`."},
    {"InvalidPodTemplate", kObstacle, "The API server refused a pod of the job.",
     "Correct the field that the message names, in `podTemplate`, `resources` or `volumes`."},
    {"Refused", kObstacle, "The API server refused another object of the job than a pod.",
     "The message says which, and why."},
    {"PodSecurityViolation", kObstacle,
     "The namespace has a Pod Security level that forbids what `podTemplate` asks for.",
     "Remove it from `podTemplate`, or run the job in another namespace."},
    {"Forbidden", kObstacle,
     "The operator lacks a right, or a policy of the cluster or a LimitRange of the namespace "
     "refused an object. A job that runs goes on.",
     "The message says which; of a LimitRange, what it wants in which field. The chart lists the "
     "rights that the operator needs."},
    {"CreateContainerConfigError", kObstacle,
     "The kubelet cannot make the container from its configuration, for example because a Secret "
     "lacks a key, or the image runs as root.",
     "Correct what the message names."},
    {"CreateContainerError", kObstacle, "The kubelet cannot create or start the container.",
     "The message has the words of the kubelet."},
    {"CoordinatorSilent", kObstacle,
     "The coordinator runs and has not answered the operator for 5 seconds; after 30 it is a "
     "Warning. What it does with its nodes goes on, and nothing is replaced. The numbers of the "
     "status are those of its last answer.",
     "Look at its pod and at its host. Where a NetworkPolicy is in the way, let the operator reach "
     "the port that the message names. It lifts by itself with the next answer."},
    {"QuotaExceeded", kObstacle,
     "The ResourceQuota of the namespace has no room for an object of the job, or wants requests "
     "or limits that the job does not name.",
     "Write the fields that the message names; or raise the quota, or lower `nodeCount` or "
     "`resources`. It is tried again every 5 seconds."},
    {"CoordinatorUnreachable", kObstacle,
     "Nodes have run for more than 15 seconds and have not come to their coordinator, which "
     "answers the operator: nearly always a network that denies it.",
     "Write the NetworkPolicy of the message, or look at the network plug-in of these hosts and at "
     "DNS. It lifts by itself. A node whose code is copied from a slow volume may take as long."},
    {"FailedMount", kObstacle, "The kubelet cannot mount a volume of the pod.",
     "The message has the words of the kubelet: look at the claim, the Secret or the ConfigMap "
     "that it names. Where a Secret lacks a key of a store, it says which, and the field."},
    {"FailedAttachVolume", kObstacle,
     "A volume cannot be attached to the host, for example because another host still holds it.",
     "If that host is gone for good, taint it "
     "`node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`."},
    {"FailedCreatePodSandBox", kObstacle, "The kubelet cannot make the sandbox of the pod.",
     "Look at the network plug-in and the container runtime of that host."},
    {"Unschedulable", kObstacle,
     "The scheduler finds no host for a pod. The message has its words and the field.",
     "Lower `resources`, correct node selectors and tolerations in `podTemplate`, or add hosts."},
    {"VolumeNotBound", kObstacle,
     "A claim has no volume: it is still being made, or it cannot be. Then the message has the "
     "words of the claim's own events, the event is a Warning, and `Stalled` is true until the "
     "claim is bound.",
     "Nothing while it is being made. Else do what the message says, as to create the StorageClass "
     "that the claim names: the job goes on by itself."},
    {"CoordinatorPaused", kObstacle,
     "The coordinator cannot write its ledger, for example because the disk is full. No new work "
     "is given out.",
     "Make room on the volume of the state. The job goes on by itself."},
    {"NodeSilent", kObstacle,
     "The coordinator has heard nothing of a node for 10 seconds: its host is cut off, frozen or "
     "gone. Its work goes on elsewhere.",
     "Nothing. The node goes on when it is heard again, and is made again once Kubernetes gives "
     "its host up."},
    {"CrashLoopBackOff", kObstacle,
     "A container ends again and again. The message has its last words.",
     "Fix what they say. For the coordinator, `coordinator.restartLimit` ends the job."},
    {"HostNotReady", kObstacle, "The host of a pod does not answer. Its work goes on elsewhere.",
     "Nothing. The pod is made again once Kubernetes gives the host up."},
    {"NodeBackOff", kObstacle,
     "A node failed and is made again at the time that the message gives. It says how the node "
     "ended, with the last error of `init()` where that failed.",
     "Fix that error. The other nodes go on with the work; too many failures end the job "
     "(`nodeRestartLimit`)."},
    {"NodeDisrupted", kObstacle,
     "A node was taken away: by a drain, a preemption, a lost host, a deleted pod, or by a host "
     "that runs short or has no room for it. It is made again, and nothing counts against a "
     "limit.",
     "Nothing. Where it is a Warning, look at the host that the pod was on: it has too little of "
     "what the message names, or the job requests less than it uses."},
    {"ApplyFailed", kObstacle,
     "The API server, or a webhook that it asks, fails again and again; or the copy of the code "
     "could not be read.",
     "Look at the webhook or the API server that the message names. It is tried again at least "
     "every 30 seconds."},
    {"NameTerminating", kObstacle, "An object of the same name is still being deleted.",
     "Nothing. It takes seconds."},
    {"ImagePullSecretNotFound", kObstacle,
     "A Secret of `environment.imagePullSecrets` is not in the namespace. A public image is pulled "
     "without it.",
     "Create it if the image is not public."},
    {"CreatingPods", kCondition, "The pods of the job are being made.", "Nothing."},
    {"Starting", kCondition, "The pods are made, and not all nodes have finished `init()`.",
     "Nothing. If it takes long, read the log of a node: `kubectl logs`."},
    {"AllReady", kCondition,
     "As many nodes are ready as `nodeCount` says, or, when all that is left runs, as can still "
     "have anything to do.",
     "Nothing."},
};

constexpr Entry kEndsOfANode[] = {
    {"AgentGaveUp", kNodeEnd | kFailure,
     "The node gave up: `init()` failed in its processes, or its coordinator did not answer for "
     "long.",
     "The message has the last error of `init()`. Fix it, and the node is made again."},
    {"AgentCannotStart", kNodeEnd | kFailure, "The program of the node cannot start.",
     "The message says why. Fix it, and the node is made again."},
    {"AgentNoRoom", kNodeEnd | kFailure, "There is no room on the node's disk to start in.",
     "Give the node more ephemeral storage, or make room on its host. It is made again."},
    {"RuntimeInstallFailed", kNodeEnd | kFailure,
     "The init container `runtime` could not copy the programs of ParallelRun into the pod.",
     "The message has its words: nearly always the image or the room on the host."},
    {"Killed", kNodeEnd | kFailure, "The program of the node was killed by a signal.",
     "Look for who did it: the kernel for want of memory, a probe, or somebody with `kubectl "
     "exec`."},
    {"Error", kNodeEnd | kFailure,
     "The program of the node ended with an exit code that is none of its own.",
     "Read its log: `kubectl logs` of the pod, or `sys/node` of the job's logs."},
    {"Deleted", kNodeEnd, "Somebody or something deleted the pod.", "Nothing: it is made again."},
    {"PodMissing", kNodeEnd, "The pod ended without a word of its containers.",
     "Nothing: it is made again."},
};

constexpr Entry kOtherConditions[] = {
    {"Valid", kCondition, "The job can be read.", "Nothing."},
    {"Invalid", kCondition | kEvent, "The job cannot be read as it is written.",
     "The message names every problem and how to fix it. `parallelrun validate --cluster FILE` "
     "says the same before you apply it."},
    {"Pending", kCondition, "Nothing is known yet.", "Nothing."},
    {"Suspended", kCondition | kEvent, "`spec.suspend` is true, and no pod of the job is left.",
     "Set `spec.suspend: false` to go on."},
    {"Queued", kCondition | kEvent,
     "The job has the label of a queue of Kueue, `kueue.x-k8s.io/queue-name`, and stands still "
     "until somebody admits it. ParallelRun does not speak to Kueue yet, so nothing does that by "
     "itself.",
     "Remove the label, and the job starts. Or have whatever runs the queue set the annotation "
     "`parallelrun.dev/admitted: \"true\"`."},
    {"Suspending", kCondition, "The pods of a job that is suspended are ending.", "Nothing."},
    {"NotSuspended", kCondition, "The job is not suspended.", "Nothing."},
    {"PodsCreated", kCondition, "All pods of the job are made.", "Nothing."},
    {"Failing", kCondition | kEvent, "The job has failed, and its pods are ending.",
     "The condition `FailureTarget` says why."},
    {"Failed", kCondition | kEvent, "The job has failed, and its pods are gone.",
     "The condition `Failed` says why: look up its reason on this page."},
    {"NotFinished", kCondition, "The job is not over.", "Nothing."},
    {"NotStalled", kCondition, "Nobody has to change anything.", "Nothing."},
};

constexpr Entry kOtherEvents[] = {
    {"Started", kEvent, "The first pods of the job are being made.", "Nothing."},
    {"Scaled", kEvent, "`nodeCount` has changed.", "Nothing."},
    {"SpecWarning", kEvent, "The job can be read, and something in it is most likely not meant so.",
     "Correct the field that the message names."},
    {"RunWarning", kEvent,
     "The job has found something that is no failure and most likely not meant so. The message "
     "says "
     "what; it stays in `status.warning`.",
     "Do what the message says before the next run."},
    {"ContinuedWithChanges", kEvent,
     "The job continues an earlier one, and something has changed since. The message says what.",
     "If that is not right, delete the job and apply it with `output.ifExists: Overwrite`."},
    {"NodeFailed", kEvent,
     "A node failed. The message says how; it is made again, later each time.",
     "Fix what the message says."},
    {"NodeOutOfMemory", kEvent, "The container of a node used more memory than it may.",
     "Raise `resources.limits.memory`, or lower `processCountPerNode`."},
    {"NodeOutOfDisk", kEvent,
     "The pod of a node was evicted, since it used more disk than its own limits allow.",
     "Raise `ephemeral-storage` of `resources.limits` or the `sizeLimit` of the volume that the "
     "message names, or have the script write less. It is made again, later each time."},
    {"CoordinatorRestarted", kEvent, "The coordinator was restarted. No result is lost.",
     "If it happens again, read its log: `kubectl logs --previous` of its pod."},
};

}  // namespace

std::span<const Entry> WhatNodesWaitFor() { return kWhatNodesWaitFor; }
std::span<const Entry> EndsOfANode() { return kEndsOfANode; }
std::span<const Entry> OtherConditions() { return kOtherConditions; }
std::span<const Entry> OtherEvents() { return kOtherEvents; }

}  // namespace parallelrun::reasons
