// The objects of a job, as the API server gets them.
#include "operator/builders/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/parse.h"
#include "operator/builders/pod_template.h"
#include "operator/observed.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

class OperatorBuilders : public testing::Test {
 protected:
  OperatorBuilders() {
    options.runtime_image = "new@sha256:22";
    options.operator_namespace = "parallelrun-system";
    object = json::parse(R"({
      "apiVersion": "parallelrun.dev/v1alpha1", "kind": "ParallelRunJob",
      "metadata": {"name": "digits", "namespace": "default"},
      "spec": {
        "entryScript": "score.py", "code": {"configMap": {"name": "digits-code"}},
        "environment": {"image": "registry.example/digits:1", "env": [{"name": "HOME", "value": "/h"}],
                        "envFrom": [{"configMapRef": {"name": "settings"}}],
                        "imagePullSecrets": [{"name": "pull"}], "imagePullPolicy": "Always"},
        "volumes": [
          {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}},
          {"name": "out", "persistentVolumeClaim": {"claimName": "results"}},
          {"name": "work", "emptyDir": {}}],
        "inputs": [{"name": "images", "files": {"volume": "data", "path": "images"}}],
        "sideInputs": [{"name": "model", "volume": "data", "path": "model", "mountPath": "/models"}],
        "output": {"volume": "out"}, "sharedMemory": "1Gi",
        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "4Gi"}}}})");
  }

  BuildContext Context() {
    parsed = api::ReadJob(object, api::Target::kCluster);
    for (const api::Problem& problem : parsed.problems)
      ADD_FAILURE() << problem.field << problem.what;
    return {parsed.job.spec,
            {"default", "digits", "0a1b2c3d-0000-4000-8000-000000000001", {}},
            options,
            "runtime@sha256:11",
            8443,
            one_host};
  }
  json Worker() { return WorkerPod(Context(), 3, {7, 2}); }
  json Coordinator() { return CoordinatorPod(Context(), 4); }
  json& pod_template() { return object["spec"]["podTemplate"]; }

  static const json& Find(const json& list, const char* key, const std::string& value) {
    static const json kNone;
    for (const json& one : list) {
      if (one.value(key, "") == value) return one;
    }
    ADD_FAILURE() << "no " << key << " " << value << " in " << list.dump();
    return kNone;
  }

  OperatorOptions options;
  json object;
  api::ParsedJob parsed;
  bool one_host = false;
};

TEST_F(OperatorBuilders, AWorkerPodIsThisJobs) {
  const json pod = Worker();
  EXPECT_EQ(pod["metadata"]["name"], "digits-0a1b2-node-3-7");
  EXPECT_EQ(pod["metadata"]["labels"], json::parse(R"({
      "app.kubernetes.io/name": "parallelrun", "app.kubernetes.io/instance": "digits",
      "app.kubernetes.io/component": "node", "app.kubernetes.io/part-of": "parallelrun",
      "app.kubernetes.io/managed-by": "parallelrun",
      "parallelrun.dev/job": "digits", "parallelrun.dev/job-uid": "0a1b2c3d-0000-4000-8000-000000000001",
      "parallelrun.dev/role": "node", "parallelrun.dev/node": "3", "parallelrun.dev/incarnation": "7"})"));
  const json& owner = pod["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["controller"], true);
  EXPECT_EQ(owner["blockOwnerDeletion"], true);
  EXPECT_EQ(owner["uid"], "0a1b2c3d-0000-4000-8000-000000000001");
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["tolerations"][0]["tolerationSeconds"], 30);
  EXPECT_EQ(spec["imagePullSecrets"], json::parse(R"([{"name": "pull"}])"));
  const json& worker = spec["containers"][0];
  EXPECT_EQ(worker["command"],
            json::parse(R"(["/opt/parallelrun/lib/ld.so", "--library-path", "/opt/parallelrun/lib",
       "/opt/parallelrun/bin/parallelrun-agent", "--config", "/etc/parallelrun/agent.json", "--log-json",
       "--ready-file", "/var/lib/parallelrun/ready", "--drained-exit", "0"])"));
  EXPECT_EQ(worker["imagePullPolicy"], "Always");
  EXPECT_EQ(worker["envFrom"][0]["configMapRef"]["name"], "settings");
  EXPECT_EQ(Find(worker["env"], "name", "HOME")["value"], "/h") << "the user's value wins";
  EXPECT_EQ(Find(worker["env"], "name", "USER")["value"], "parallelrun");
  // A digest of it reads back what a plan needs.
  const PodDigest digest = DigestPod(pod);
  EXPECT_EQ(digest.index, 3);
  EXPECT_EQ(digest.incarnation, 7);
  EXPECT_EQ(digest.failures, 2);
  EXPECT_EQ(digest.job_uid, "0a1b2c3d-0000-4000-8000-000000000001");
}

TEST_F(OperatorBuilders, APodWithoutResourcesAsksForALittle) {
  object["spec"].erase("resources");
  const json pod = Worker();
  const json little = json::parse(R"({"requests": {"cpu": "100m", "memory": "128Mi"}})");
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"], little);
  EXPECT_EQ(pod["spec"]["initContainers"][0]["resources"], little);
}

TEST(OperatorNames, TheLongestJobNameLeavesEveryObjectOneThatDnsTakes) {
  const JobIdentity job{
      "default", std::string(40, 'a'), "0a1b2c3d-0000-4000-8000-000000000001", {}};
  for (const std::string& name : {NodePodName(job, 4999, 999999), CoordinatorPodName(job, 9999),
                                  ServiceName(job), AccessSecretName(job), CodeSnapshotName(job)}) {
    EXPECT_LE(name.size(), 63U) << name;
  }
}

TEST_F(OperatorBuilders, ADeadHostKeepsANodeHalfAMinuteAndACoordinatorNotAtAll) {
  for (const auto& [pod, patience] : {std::pair{Worker(), 30}, std::pair{Coordinator(), 0}}) {
    for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
      const json& toleration = Find(pod["spec"]["tolerations"], "key", key);
      EXPECT_EQ(toleration["effect"], "NoExecute");
      EXPECT_EQ(toleration["tolerationSeconds"], patience);
    }
  }
}

TEST_F(OperatorBuilders, AUsersProgramHasAHomeAndAnImageItMayWriteTo) {
  object["spec"]["environment"].erase("env");
  const json pod = Worker();
  const json& worker = pod["spec"]["containers"][0];
  EXPECT_EQ(Find(worker["env"], "name", "HOME")["value"], "/var/lib/parallelrun/home");
  EXPECT_EQ(Find(worker["env"], "name", "LOGNAME")["value"], "parallelrun");
  EXPECT_EQ(Find(worker["env"], "name", "XDG_CACHE_HOME")["value"],
            "/var/lib/parallelrun/home/.cache");
  EXPECT_FALSE(worker["securityContext"].contains("readOnlyRootFilesystem"));
  EXPECT_EQ(Coordinator()["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
            true);
}

TEST_F(OperatorBuilders, EveryObjectHasTheInstallationsLabelsAndOursWin) {
  options.job_labels = {{"team", "vision"},
                        {"parallelrun.dev/job", "mine"},
                        {"app.kubernetes.io/name", "mine"},
                        {"app.kubernetes.io/part-of", "mine"}};
  options.image_pull_secrets = {"pull", "mirror"};
  const BuildContext context = Context();
  for (const json& thing :
       {Worker(), Coordinator(), CoordinatorService(context, 1), CoordinatorNetworkPolicy(context),
        CoordinatorBudget(context), AccessSecret(context.identity, {}, options.job_labels),
        CodeSnapshot(context.identity, json::object(), options.job_labels)}) {
    const json& labels = thing["metadata"]["labels"];
    EXPECT_EQ(labels["team"], "vision") << thing["kind"];
    EXPECT_EQ(labels["parallelrun.dev/job"], "digits") << thing["kind"];
    EXPECT_EQ(labels["app.kubernetes.io/name"], "parallelrun") << thing["kind"];
    EXPECT_EQ(labels["app.kubernetes.io/instance"], "digits") << thing["kind"];
    EXPECT_EQ(labels["app.kubernetes.io/part-of"], "parallelrun") << thing["kind"];
    EXPECT_EQ(labels["app.kubernetes.io/managed-by"], "parallelrun") << thing["kind"];
  }
  EXPECT_EQ(Coordinator()["metadata"]["labels"]["app.kubernetes.io/component"], "coordinator");
  EXPECT_EQ(Worker()["spec"]["imagePullSecrets"],
            json::parse(R"([{"name": "pull"}, {"name": "mirror"}])"));
}

TEST_F(OperatorBuilders, TheInitContainerHasTheWorkersResourcesAndThePinnedImage) {
  const json pod = Worker();
  const json& init = pod["spec"]["initContainers"][0];
  EXPECT_EQ(init["image"], "runtime@sha256:11");
  EXPECT_EQ(init["resources"], pod["spec"]["containers"][0]["resources"]);
  EXPECT_EQ(init["resources"]["limits"]["nvidia.com/gpu"], 1);
}

TEST_F(OperatorBuilders, VolumesAreMountedAsTheyAreUsed) {
  const json worker = Worker();
  const json& mounts = worker["spec"]["containers"][0]["volumeMounts"];
  EXPECT_EQ(Find(mounts, "mountPath", "/mnt/data")["readOnly"], true);
  EXPECT_FALSE(Find(mounts, "mountPath", "/mnt/out").contains("readOnly"));
  EXPECT_EQ(
      Find(mounts, "mountPath", "/models"),
      json::parse(
          R"({"name": "data", "mountPath": "/models", "subPath": "model", "readOnly": true})"));
  EXPECT_EQ(Find(mounts, "mountPath", "/opt/code")["readOnly"], true);
  EXPECT_EQ(Find(mounts, "mountPath", "/mnt/work")["name"], "work") << "the user's own volume";
  EXPECT_EQ(Find(mounts, "mountPath", "/var/lib/parallelrun")["name"], "parallelrun-work");
  const json& volumes = worker["spec"]["volumes"];
  EXPECT_EQ(Find(volumes, "name", "parallelrun-shm")["emptyDir"],
            json::parse(R"({"medium": "Memory", "sizeLimit": "1073741824"})"));
  EXPECT_EQ(Find(volumes, "name", "parallelrun-access")["secret"]["items"],
            json::parse(R"([{"key": "agent.json", "path": "agent.json"},
                            {"key": "ca.crt", "path": "ca.crt"},
                            {"key": "node-3.json", "path": "node.json"}])"));
  const json coordinator = Coordinator();
  const json& there = coordinator["spec"]["containers"][0]["volumeMounts"];
  EXPECT_EQ(Find(there, "mountPath", "/mnt/data")["readOnly"], true);
  Find(there, "mountPath", "/mnt/out");
  EXPECT_EQ(coordinator.dump().find("node-3.json"), std::string::npos);
}

TEST_F(OperatorBuilders, AnOutputOfTheCoordinatorAloneIsNotOnNodes) {
  object["spec"]["output"]["mountOnNodes"] = false;
  EXPECT_EQ(Worker().dump().find("/mnt/out"), std::string::npos);
  EXPECT_NE(Coordinator().dump().find("/mnt/out"), std::string::npos);
}

TEST_F(OperatorBuilders, PodsHaveTheKeysOfStoresThatTheJobNamesAndNoMore) {
  object["spec"]["stores"] = json::parse(R"([
      {"name": "photos", "url": "s3://photos", "credentials": {"secretName": "read-only"}},
      {"name": "results", "url": "s3://results",
       "credentials": {"secretName": "writer", "accessKeyId": "id", "secretAccessKey": "key",
                       "sessionToken": "token"}},
      {"name": "public", "url": "s3://public"}])");
  object["spec"]["inputs"] = json::parse(R"([{"name": "images", "files": {"store": "photos"}}])");
  object["spec"]["output"] = {{"store", "results"}};
  object["spec"]["logs"] = {{"volume", "out"}};
  object["spec"]["state"] = {{"volume", "out"}};
  const json coordinator = Coordinator();
  const json& mounts = coordinator["spec"]["containers"][0]["volumeMounts"];
  EXPECT_EQ(Find(mounts, "mountPath", "/etc/parallelrun-stores/photos"), json::parse(R"(
      {"name": "parallelrun-store-0", "mountPath": "/etc/parallelrun-stores/photos",
       "readOnly": true})"));
  Find(mounts, "mountPath", "/etc/parallelrun-stores/results");
  const json& volumes = coordinator["spec"]["volumes"];
  EXPECT_EQ(Find(volumes, "name", "parallelrun-store-0")["secret"], json::parse(R"(
      {"secretName": "read-only", "defaultMode": 288,
       "items": [{"key": "AWS_ACCESS_KEY_ID", "path": "accessKeyId"},
                 {"key": "AWS_SECRET_ACCESS_KEY", "path": "secretAccessKey"}]})"));
  EXPECT_EQ(Find(volumes, "name", "parallelrun-store-1")["secret"]["items"], json::parse(R"(
      [{"key": "id", "path": "accessKeyId"}, {"key": "key", "path": "secretAccessKey"},
       {"key": "token", "path": "sessionToken"}])"));
  EXPECT_EQ(coordinator.dump().find("/etc/parallelrun-stores/public"), std::string::npos);

  const json worker = Worker();
  for (const char* of_keys : {"writer", "read-only", "parallelrun-store"}) {
    EXPECT_EQ(worker.dump().find(of_keys), std::string::npos)
        << of_keys << ": a script could read it";
  }
  EXPECT_EQ(worker.dump().find("/mnt/out"), std::string::npos)
      << "logs and state are the coordinator's";

  object["spec"]["inputs"][0]["files"]["access"] = "Uri";
  EXPECT_EQ(Worker().dump().find("parallelrun-store"), std::string::npos);
  object["spec"]["stores"][0]["nodeCredentials"] = true;
  const json given = Worker();
  EXPECT_EQ(Find(given["spec"]["containers"][0]["volumeMounts"], "mountPath",
                 "/etc/parallelrun-stores/photos")["readOnly"],
            true);
  EXPECT_EQ(Find(given["spec"]["volumes"], "name", "parallelrun-store-0"),
            Find(Coordinator()["spec"]["volumes"], "name", "parallelrun-store-0"));
  EXPECT_EQ(given.dump().find("writer"), std::string::npos) << "of that store alone";
  object["spec"]["stores"][0].erase("nodeCredentials");
  object["spec"]["sideInputs"] = json::parse(R"([{"name": "model", "store": "photos"}])");
  EXPECT_EQ(Worker().dump().find("parallelrun-store"), std::string::npos);
  object["spec"].erase("sideInputs");
  object["spec"]["logs"] = {{"store", "results"}};
  Find(Coordinator()["spec"]["containers"][0]["volumeMounts"], "mountPath",
       "/etc/parallelrun-stores/results");
  EXPECT_EQ(Worker().dump().find("parallelrun-store"), std::string::npos)
      << "nodes send their logs to the coordinator";
}

// A node whose objects took what its limit left to the script was evicted by its own cache.
TEST_F(OperatorBuilders, ANodeAsksForTheRoomOfItsObjects) {
  const auto storage = [this](const char* part) {
    const json resources = Worker()["spec"]["containers"][0]["resources"];
    return resources.value(part, json::object()).value("ephemeral-storage", "");
  };
  EXPECT_EQ(storage("requests"), "") << "nothing of this job lies in a store";
  object["spec"]["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  object["spec"]["inputs"] = json::parse(R"([{"name": "images", "files": {"store": "photos"}}])");
  object["spec"]["cache"] = {{"size", "10KB"}};
  const int64_t room = 11264 + (int64_t{64} << 20);  // a tenth of it, and 64 MiB
  EXPECT_EQ(storage("requests"), std::to_string(room));
  EXPECT_EQ(storage("limits"), "") << "one that nobody wrote would evict";
  object["spec"]["resources"]["limits"]["ephemeral-storage"] = "1Gi";
  const std::string grown = std::to_string(room + (int64_t{1} << 30));
  EXPECT_EQ(storage("limits"), grown);
  EXPECT_EQ(storage("requests"), grown) << "as Kubernetes has it where none is written";
  object["spec"]["resources"]["requests"] = {{"ephemeral-storage", "1Ki"}};
  EXPECT_EQ(storage("requests"), std::to_string(room + 1024));
  EXPECT_EQ(storage("limits"), grown);
  pod_template() = json::parse(R"({"spec": {"containers": [
      {"name": "worker", "resources": {"limits": {"ephemeral-storage": "2Gi"}}}]}})");
  EXPECT_EQ(storage("limits"), std::to_string(room + (int64_t{2} << 30))) << "the template's";
  const json pod = Worker();
  EXPECT_EQ(pod["spec"]["initContainers"][0]["resources"],
            pod["spec"]["containers"][0]["resources"]);
  EXPECT_EQ(Find(pod["spec"]["volumes"], "name", "parallelrun-work")["emptyDir"], json::object())
      << "a limit of its own would evict before the pod's";
  EXPECT_FALSE(Coordinator()["spec"]["containers"][0]["resources"]["requests"].contains(
      "ephemeral-storage"));
  object["spec"]["inputs"][0]["files"]["access"] = "Uri";
  EXPECT_EQ(storage("requests"), "1Ki");
  EXPECT_EQ(storage("limits"), "2Gi") << "as it was written";
  object["spec"]["sideInputs"] = json::parse(R"([{"name": "model", "store": "photos"}])");
  EXPECT_EQ(storage("limits"), std::to_string(room + (int64_t{2} << 30))) << "of a side input";
}

TEST_F(OperatorBuilders, TheClaimOfTheStateIsMadeForTheCoordinatorAlone) {
  object["metadata"]["uid"] = Context().identity.uid;
  object["spec"]["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  object["spec"]["inputs"] = json::parse(R"([{"name": "images", "files": {"store": "photos"}}])");
  object["spec"]["output"] = {{"store", "photos"}, {"path", "scores"}};
  object["spec"]["inputs"][0]["files"]["path"] = "in";
  object["spec"].erase("volumes");
  object["spec"].erase("sideInputs");
  object["spec"]["state"] = json::parse(R"({"volumeClaimTemplate": {
      "metadata": {"labels": {"tier": "bronze", "parallelrun.dev/job": "another"},
                   "annotations": {"note": "1"}},
      "spec": {"resources": {"requests": {"storage": "1Gi"}}}}})");
  const json claim = StateClaim(Context());
  EXPECT_EQ(claim["metadata"]["name"], "digits-0a1b2-state");
  EXPECT_EQ(claim["metadata"]["labels"]["tier"], "bronze");
  EXPECT_EQ(claim["metadata"]["labels"]["parallelrun.dev/job"], "digits") << "ours win";
  EXPECT_EQ(claim["metadata"]["annotations"]["note"], "1");
  EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["kind"], "ParallelRunJob");
  EXPECT_EQ(claim["spec"], json::parse(R"({"accessModes": ["ReadWriteOnce"],
                                           "resources": {"requests": {"storage": "1Gi"}}})"));
  const json coordinator = Coordinator();
  EXPECT_EQ(Find(coordinator["spec"]["volumes"], "name", "parallelrun-state"), json::parse(R"(
      {"name": "parallelrun-state", "persistentVolumeClaim": {"claimName": "digits-0a1b2-state"}})"));
  const json& mount = Find(coordinator["spec"]["containers"][0]["volumeMounts"], "mountPath",
                           "/mnt/parallelrun-state");
  EXPECT_FALSE(mount.contains("readOnly"));
  EXPECT_EQ(Worker().dump().find("parallelrun-state"), std::string::npos);
}

TEST_F(OperatorBuilders, AStateInAStoreLeavesNoClaim) {
  object["spec"]["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  object["spec"]["inputs"] = json::parse(R"([{"name": "images", "files": {"store": "photos"}}])");
  object["spec"]["inputs"][0]["files"]["path"] = "in";
  object["spec"]["output"] = {{"store", "photos"}, {"path", "scores"}};
  object["spec"]["state"] = {{"store", "photos"}};
  object["spec"].erase("volumes");
  object["spec"].erase("sideInputs");
  EXPECT_TRUE(Context().spec.state.claim_template.is_null());
  const json coordinator = Coordinator();
  EXPECT_EQ(Find(coordinator["spec"]["volumes"], "name", "parallelrun-state"),
            json::parse(R"({"name": "parallelrun-state", "emptyDir": {}})"));
  EXPECT_EQ(coordinator.dump().find("persistentVolumeClaim"), std::string::npos);
  EXPECT_EQ(Worker().dump().find("parallelrun-state"), std::string::npos);
  object["spec"].erase("state");
  EXPECT_EQ(Coordinator(), coordinator) << "where the output is";
}

TEST_F(OperatorBuilders, PodsPassPodSecurityRestricted) {
  for (const json& pod : {Worker(), Coordinator()}) {
    const json& security = pod["spec"]["securityContext"];
    EXPECT_EQ(security["runAsNonRoot"], true);
    EXPECT_EQ(security["runAsUser"], 65532);
    EXPECT_EQ(security["fsGroup"], 65532);
    EXPECT_EQ(security["fsGroupChangePolicy"], "OnRootMismatch");
    EXPECT_EQ(security["seccompProfile"]["type"], "RuntimeDefault");
    json containers = pod["spec"]["containers"];
    if (pod["spec"].contains("initContainers")) {
      containers.push_back(pod["spec"]["initContainers"][0]);
    }
    for (const json& container : containers) {
      EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
      EXPECT_EQ(container["securityContext"]["capabilities"]["drop"], json::parse(R"(["ALL"])"));
    }
  }
  options.pod_security_defaults = false;
  EXPECT_EQ(Worker().dump().find("securityContext"), std::string::npos);
}

TEST_F(OperatorBuilders, TheCoordinatorHasItsDefaults) {
  const json pod = Coordinator();
  EXPECT_EQ(pod["metadata"]["name"], "digits-0a1b2-coordinator-4");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "OnFailure");
  EXPECT_EQ(pod["spec"]["tolerations"][0]["tolerationSeconds"], 0);
  const json& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["image"], "runtime@sha256:11");
  EXPECT_EQ(container["resources"], json::parse(R"({"requests": {"cpu": "100m", "memory": "128Mi"},
                                                     "limits": {"cpu": "1", "memory": "512Mi"}})"));
  EXPECT_EQ(container["ports"][0]["name"], "https");
  EXPECT_EQ(container["ports"][1]["name"], "metrics");
  EXPECT_EQ(container["readinessProbe"]["exec"]["command"][5], "/var/lib/parallelrun/ready");
  EXPECT_GE(container["readinessProbe"]["periodSeconds"], 30)
      << "one that meets a coordinator that has just ended leaves a Warning event";
  EXPECT_EQ(container["livenessProbe"]["httpGet"]["path"], "/healthz");
  EXPECT_FALSE(container.contains("startupProbe"))
      << "would bound how long it may read a ledger or compare files";
}

// Asked again and again it would leave a Warning event for each time that it fails.
TEST_F(OperatorBuilders, AProbeWaitsForTheFileThatTheProgramMakes) {
  for (const auto& [pod, probe] :
       {std::pair(Worker(), "startupProbe"), std::pair(Coordinator(), "readinessProbe")}) {
    const json& container = pod["spec"]["containers"][0];
    const json& program = container["command"];
    const auto option = std::find(program.begin(), program.end(), "--ready-file");
    ASSERT_NE(option, program.end());
    const json& waits = container[probe]["exec"]["command"];
    EXPECT_EQ(waits[3], "/opt/parallelrun/bin/parallelrun-agent");
    EXPECT_EQ(waits[4], "await");
    EXPECT_EQ(waits[5], *std::next(option));
    EXPECT_GE(container[probe]["timeoutSeconds"], 3600);
  }
  EXPECT_GT(Worker()["spec"]["containers"][0]["startupProbe"]["failureThreshold"], 1'000'000)
      << "init() may take as long as it needs";
}

// A pod that was told to go and has is Completed, not in Error.
TEST_F(OperatorBuilders, WhoIsToldToGoEndsWithZero) {
  for (const json& pod : {Worker(), Coordinator()}) {
    const json& program = pod["spec"]["containers"][0]["command"];
    const auto option = std::find(program.begin(), program.end(), "--drained-exit");
    ASSERT_NE(option, program.end());
    EXPECT_EQ(*std::next(option), "0");
  }
}

TEST_F(OperatorBuilders, TheUsersPodTemplateWinsButForWhatMakesAPodThisJobs) {
  pod_template() = json::parse(R"({
    "metadata": {"labels": {"team": "vision", "parallelrun.dev/job-uid": "stolen"},
                 "annotations": {"a": "b", "parallelrun.dev/failures": "0"}},
    "spec": {
      "restartPolicy": "Always", "serviceAccountName": "robot", "nodeSelector": {"gpu": "yes"},
      "securityContext": {"runAsUser": 1000},
      "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"},
                      {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute",
                       "operator": "Exists", "tolerationSeconds": 300}],
      "containers": [
        {"name": "worker", "command": ["sh"], "args": ["-c", "true"],
         "env": [{"name": "EXTRA", "value": "1"}, {"name": "USER", "value": "me"}],
         "resources": {"limits": {"cpu": "2"}}},
        {"name": "proxy", "image": "proxy:1"}]}})");
  const json pod = Worker();
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(pod["metadata"]["labels"]["parallelrun.dev/job-uid"],
            "0a1b2c3d-0000-4000-8000-000000000001");
  EXPECT_EQ(pod["metadata"]["annotations"]["a"], "b");
  EXPECT_EQ(pod["metadata"]["annotations"]["parallelrun.dev/failures"], "2");
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["serviceAccountName"], "robot");
  EXPECT_EQ(spec["securityContext"]["runAsUser"], 1000);
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(spec["tolerations"].size(), 3U);
  EXPECT_EQ(Find(spec["tolerations"], "key", "node.kubernetes.io/unreachable")["tolerationSeconds"],
            300);
  const json& worker = Find(spec["containers"], "name", "worker");
  EXPECT_EQ(worker["command"][0], "/opt/parallelrun/lib/ld.so");
  EXPECT_FALSE(worker.contains("args"));
  EXPECT_EQ(Find(worker["env"], "name", "USER")["value"], "me");
  EXPECT_EQ(Find(worker["env"], "name", "EXTRA")["value"], "1");
  EXPECT_EQ(worker["resources"]["limits"],
            json::parse(R"({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 1})"));
  EXPECT_EQ(spec["initContainers"][0]["resources"], worker["resources"]);
  Find(spec["containers"], "name", "proxy");

  // The coordinator inherits it, but for resources, nodeSelector and affinity.
  const json coordinator = Coordinator();
  EXPECT_FALSE(coordinator["spec"].contains("nodeSelector"));
  EXPECT_EQ(coordinator["spec"]["restartPolicy"], "OnFailure");
  EXPECT_EQ(coordinator["spec"]["serviceAccountName"], "robot");
  EXPECT_EQ(coordinator["spec"]["containers"].size(), 2U);
  EXPECT_EQ(coordinator["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1");
  object["spec"]["coordinator"]["podTemplate"] = json::parse(
      R"({"spec": {"nodeSelector": {"pool": "small"},
          "containers": [{"name": "coordinator", "image": "other", "env": [{"name": "A", "value": "1"}]}]}})");
  const json own = Coordinator();
  EXPECT_EQ(own["spec"]["nodeSelector"]["pool"], "small");
  EXPECT_EQ(own["spec"]["containers"][0]["image"], "runtime@sha256:11");
  EXPECT_EQ(own["spec"]["containers"][0]["env"][0]["name"], "A");
}

TEST_F(OperatorBuilders, OddTemplatesAreLeftToTheApiServerToRefuse) {
  for (const char* text :
       {R"({"spec": {"containers": "x", "volumes": 3, "affinity": "y", "tolerations": {}}})",
        R"({"metadata": {}, "spec": {"containers": [1, {"name": 2}, {}]}})",
        R"({"spec": {"initContainers": [null], "imagePullSecrets": [5]}})"}) {
    pod_template() = json::parse(text);
    one_host = true;
    const json pod = Worker();
    EXPECT_EQ(pod["metadata"]["labels"]["parallelrun.dev/node"], "3");
    Coordinator();
  }
}

TEST_F(OperatorBuilders, OneHostIsAnAffinityBesideTheUsersOwn) {
  one_host = true;
  pod_template() = json::parse(R"({"spec": {"affinity": {"podAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}}})");
  const json pod = Worker();
  const json& terms =
      pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[1]["topologyKey"], "kubernetes.io/hostname");
  EXPECT_EQ(Coordinator()["spec"]["affinity"]["podAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]
                             .size(),
            1U);
}

// Both nodes of a job were on one of two idle hosts, and one reclaimed host stopped the job.
TEST_F(OperatorBuilders, PodsGoToTheHostsWithTheFewestNodesOfTheJob) {
  const json spread = json::parse(R"([{
      "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
      "labelSelector": {"matchLabels": {
          "parallelrun.dev/job-uid": "0a1b2c3d-0000-4000-8000-000000000001",
          "parallelrun.dev/role": "node"}}}])");
  for (const json& pod : {Worker(), Coordinator()}) {
    EXPECT_EQ(pod["spec"].value("topologySpreadConstraints", json()), spread);
    EXPECT_FALSE(pod["spec"].contains("affinity"))
        << "a coordinator's would draw nodes together on the other hosts";
  }
  one_host = true;
  EXPECT_FALSE(Worker()["spec"].contains("topologySpreadConstraints"));
  EXPECT_FALSE(Coordinator()["spec"].contains("topologySpreadConstraints"));
}

TEST_F(OperatorBuilders, WhatThePodWishesAlreadyWinsOverTheSpread) {
  const auto spread = [](const json& pod) {
    return pod["spec"].value("topologySpreadConstraints", json());
  };
  for (const char* wish :
       {R"({"topologySpreadConstraints": []})",
        R"({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]})",
        R"({"affinity": {"podAffinity": {}}})",
        R"({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}})",
        R"({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {}}]}}})"}) {
    pod_template() = {{"spec", json::parse(wish)}};
    EXPECT_EQ(spread(Worker()), pod_template()["spec"].value("topologySpreadConstraints", json()))
        << wish;
    object["spec"]["coordinator"]["podTemplate"] = pod_template();
    EXPECT_EQ(spread(Coordinator()), spread(Worker())) << wish;
  }
  for (const char* none :
       {R"({"nodeSelector": {"pool": "spot"}})", R"({"affinity": {}})",
        R"({"topologySpreadConstraints": null, "affinity": {"podAffinity": null}})",
        R"({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}}}})"}) {
    pod_template() = {{"spec", json::parse(none)}};
    EXPECT_EQ(spread(Worker()).size(), 1U) << none;
  }
}

// The two would count alike, and the host that failed is the one without a node of the job.
TEST_F(OperatorBuilders, AHostToAvoidWinsOverTheSpread) {
  const auto spread_of = [this](std::map<std::string, int32_t> failed_hosts) {
    return WorkerPod(Context(), 3, {4, 5, std::move(failed_hosts)})["spec"].contains(
        "topologySpreadConstraints");
  };
  EXPECT_TRUE(spread_of({{"host-a", 1}})) << "once is nothing to avoid it for";
  EXPECT_FALSE(spread_of({{"host-a", 2}}));
}

TEST_F(OperatorBuilders, AHostToAvoidIsAWishBesideTheUsersOwn) {
  pod_template() = json::parse(R"({"spec": {"affinity": {"nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}}}})");
  const json pod = WorkerPod(Context(), 3, {4, 5, {{"host-a", 2}, {"host-b", 1}, {"host-c.x", 2}}});
  EXPECT_EQ(pod["metadata"]["annotations"]["parallelrun.dev/failed-hosts"],
            "host-a=2,host-b=1,host-c.x=2");
  EXPECT_EQ(DigestPod(pod).failed_hosts,
            (std::map<std::string, int32_t>{{"host-a", 2}, {"host-b", 1}, {"host-c.x", 2}}));
  EXPECT_EQ(pod["spec"]["affinity"]["nodeAffinity"], json::parse(R"({
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}},
        {"weight": 100, "preference": {"matchFields": [
          {"key": "metadata.name", "operator": "NotIn", "values": ["host-a"]},
          {"key": "metadata.name", "operator": "NotIn", "values": ["host-c.x"]}]}}]})"));
  for (const char* odd : {"x", "=", "a=1,b", "a=99999999999"}) {
    json changed = pod;
    changed["metadata"]["annotations"]["parallelrun.dev/failed-hosts"] = odd;
    EXPECT_LE(DigestPod(changed).failed_hosts.size(), 1U) << odd;
  }
}

// All pods hold an emptyDir, which keeps their hosts from Cluster Autoscaler unless a pod says
// otherwise.
TEST_F(OperatorBuilders, AutoscalersHearWhetherTheyMayTakeTheHosts) {
  const std::string evict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  const std::string keep = "karpenter.sh/do-not-disrupt";
  for (const json& pod : {Worker(), Coordinator()}) {
    EXPECT_EQ(pod["metadata"]["annotations"].value(evict, ""), "true");
    EXPECT_FALSE(pod["metadata"]["annotations"].contains(keep));
  }
  for (const char* avoids : {"Budget", "Avoid"}) {
    object["spec"]["disruption"] = avoids;
    for (const json& pod : {Worker(), Coordinator()}) {
      EXPECT_EQ(pod["metadata"]["annotations"].value(evict, ""), "false");
      EXPECT_EQ(pod["metadata"]["annotations"].value(keep, ""), "true");
    }
  }
  pod_template() = {{"metadata", {{"annotations", {{evict, "true"}}}}}};
  object["spec"]["coordinator"]["podTemplate"] = {
      {"metadata", {{"annotations", {{keep, "false"}}}}}};
  EXPECT_EQ(Worker()["metadata"]["annotations"].value(evict, ""), "true") << "the user's own";
  EXPECT_EQ(Worker()["metadata"]["annotations"].value(keep, ""), "true");
  EXPECT_EQ(Coordinator()["metadata"]["annotations"].value(evict, ""), "true");
  EXPECT_EQ(Coordinator()["metadata"]["annotations"].value(keep, ""), "false");
}

TEST_F(OperatorBuilders, TheServiceSelectsOneIncarnation) {
  const json one = CoordinatorService(Context(), 1);
  const json two = CoordinatorService(Context(), 2);
  EXPECT_EQ(one["metadata"]["name"], "digits-0a1b2-coordinator");
  EXPECT_EQ(one["spec"]["selector"]["parallelrun.dev/incarnation"], "1");
  EXPECT_EQ(one["spec"]["ports"][0]["port"], 8443);
  EXPECT_EQ(one["spec"]["publishNotReadyAddresses"], true);
  EXPECT_NE(one["metadata"]["annotations"][kContentAnnotation],
            two["metadata"]["annotations"][kContentAnnotation]);
}

TEST_F(OperatorBuilders, TheNetworkPolicyLetsInTheJobAndTheOperator) {
  const json policy = CoordinatorNetworkPolicy(Context());
  const json& from = policy["spec"]["ingress"][0]["from"];
  EXPECT_EQ(from[0]["podSelector"]["matchLabels"]["parallelrun.dev/job-uid"],
            "0a1b2c3d-0000-4000-8000-000000000001");
  EXPECT_EQ(from[1]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
            "parallelrun-system");
  EXPECT_EQ(from[1]["podSelector"]["matchLabels"]["app.kubernetes.io/component"], "operator");
  EXPECT_EQ(policy["spec"]["policyTypes"], json::parse(R"(["Ingress"])"));
  EXPECT_EQ(policy["spec"]["ingress"].size(), 1U) << "nobody is named who may read the metrics";
  options.metrics_namespaces = {"monitoring", "teams"};
  const json named = CoordinatorNetworkPolicy(Context());
  EXPECT_EQ(named["spec"]["ingress"][1], json::parse(R"({
    "from": [{"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name",
      "operator": "In", "values": ["monitoring", "teams"]}]}}],
    "ports": [{"protocol": "TCP", "port": 9102}]})"));
}

TEST_F(OperatorBuilders, TheBudgetKeepsTheCoordinatorAlone) {
  const json budget = CoordinatorBudget(Context());
  EXPECT_EQ(budget["spec"], json::parse(R"({
    "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow",
    "selector": {"matchLabels": {"parallelrun.dev/role": "coordinator",
      "parallelrun.dev/job-uid": "0a1b2c3d-0000-4000-8000-000000000001"}}})"));
  const auto selected = [&budget](const json& pod) {
    const json& labels = pod["metadata"]["labels"];
    for (const auto& [key, value] : budget["spec"]["selector"]["matchLabels"].items()) {
      if (labels.value(key, json()) != value) return false;
    }
    return true;
  };
  EXPECT_TRUE(selected(Coordinator()));
  EXPECT_FALSE(selected(Worker()));
}

TEST_F(OperatorBuilders, SecretsAndCodeAreCarriedAsTheyAre) {
  const JobIdentity job = Context().identity;
  const json secret = AccessSecret(job, {{"viewer", "abc"}, {"empty", ""}}, {{"team", "vision"}});
  EXPECT_EQ(secret["data"]["viewer"], "YWJj");
  EXPECT_EQ(secret["data"]["empty"], "");
  EXPECT_EQ(secret["metadata"]["labels"]["team"], "vision");
  const json source = {{"data", {{"score.py", "x"}}}, {"binaryData", {{"code.tar.gz", "AA=="}}}};
  const json copy = CodeSnapshot(job, source);
  EXPECT_EQ(copy["immutable"], true);
  EXPECT_EQ(copy["data"], source["data"]);
  EXPECT_EQ(copy["binaryData"], source["binaryData"]);
  EXPECT_EQ(copy["metadata"]["annotations"][kContentAnnotation], CodeDigest(source));
  EXPECT_NE(CodeDigest({{"data", {{"a", "bc"}}}}), CodeDigest({{"data", {{"ab", "c"}}}}));
}

}  // namespace
}  // namespace parallelrun::operators
