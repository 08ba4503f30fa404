// What the pods of a job are made of: code, environment, resources, templates, the coordinator.
#include "api/fields/bind.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/parse_parts.h"

namespace parallelrun::api::fields {
namespace {

Shape KeyOf(const std::string& what) {
  return Object({Carried("name", Text(kMostObjectName), "The " + what + ".").Required(),
                 Carried("key", Text(kMostObjectName), "The key.").Required(),
                 Carried("optional", Boolean(), "Whether it may be missing.")});
}

Shape WholeOf() {
  return Object({Carried("name", Text(kMostObjectName), "Its name.").Required(),
                 Carried("optional", Boolean(), "Whether it may be missing.")});
}

Shape VariableSource() {
  return Object(
             {Carried("configMapKeyRef", KeyOf("ConfigMap"), "A key of a ConfigMap."),
              Carried("secretKeyRef", KeyOf("Secret"), "A key of a Secret."),
              Carried(
                  "fieldRef",
                  Object({Carried("fieldPath", Text(kMostText), "As in metadata.name.").Required(),
                          Carried("apiVersion", Text(kMostName), "Version of the path; v1.")}),
                  "A field of the pod."),
              Carried("resourceFieldRef",
                      Object({Carried("resource", Text(kMostObjectName), "As in limits.memory.")
                                  .Required(),
                              Carried("containerName", Text(kMostName), "The container."),
                              Carried("divisor", Quantity(), "The unit; 1 if not given.")}),
                      "A request or limit of the container.")})
      .With({"[has(self.configMapKeyRef), has(self.secretKeyRef), has(self.fieldRef), "
             "has(self.resourceFieldRef)].exists_one(x, x)",
             "needs exactly one of configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef"});
}

Shape Variable() {
  constexpr size_t kMostOfValue = 32768;
  return Object(
             {Carried("name",
                      Text(kMostText).With({R"(!self.contains("="))",
                                            "cannot name a variable: write name and value apart"}),
                      "Name of the variable.")
                  .Required(),
              Carried("value", AnyText(kMostOfValue), "Its value; numbers are quoted."),
              Carried("valueFrom", VariableSource(), "Where its value comes from instead.")})
      .With({"!(has(self.value) && has(self.valueFrom))",
             "has both value and valueFrom: keep one of them"});
}

Shape VariablesOf() {
  return Object({Carried("prefix", AnyText(kMostObjectName), "Goes before each name."),
                 Carried("configMapRef", WholeOf(), "A ConfigMap."),
                 Carried("secretRef", WholeOf(), "A Secret.")})
      .With({"has(self.configMapRef) != has(self.secretRef)",
             "needs exactly one source: write configMapRef or secretRef: {name: NAME}"});
}

Shape PullSecret() {
  return Object({Carried("name", Text(kMostObjectName), "Name of the Secret.").Required()});
}

void ReadTemplate(const Value& map, nlohmann::json& out) { out = ReadPodTemplate(map); }
void ReadAmounts(const Value& map, nlohmann::json& out) { out = ReadResources(map); }

}  // namespace

Shape CodeShape() {
  return Object(
             {Carried(
                  "configMap",
                  Object({Carried("name", Text(kMostObjectName), "Name of the ConfigMap.")
                              .Required()}),
                  "A ConfigMap of this namespace that holds plain files, or one code.tar.gz with "
                  "folders, of at most 1 MiB. It is copied once, when the job starts."),
              Carried("volume", Text(kMostName),
                      "One of spec.volumes, which holds the code in the folder path."),
              Carried("path", Path("write it without the first \"/\""),
                      "With volume: the folder in it. Alone it is a folder on the user's machine, "
                      "which only the command line can pack."),
              Carried("image",
                      Object({Carried("path",
                                      Text(kMostText).With(
                                          {R"(self.startsWith("/"))",
                                           "is relative: write the folder in the image, "
                                           "as in /app"}),
                                      "Absolute path of the folder in the image, as /app.")
                                  .Required()}),
                      "The code is in the worker's image already.")})
      .With({"has(self.configMap) || has(self.volume) || has(self.image) || has(self.path)",
             "has no source: write exactly one of configMap, volume (with path) and image"})
      .With({"[has(self.configMap), has(self.volume), has(self.image)].filter(x, x).size() + "
             "(has(self.path) && !has(self.volume) ? 1 : 0) < 2",
             "has more than one source: write exactly one of configMap, volume (with path) and "
             "image"})
      .With({"!has(self.path) || has(self.volume) || has(self.configMap) || has(self.image)",
             "is a folder on your machine, which a cluster cannot see: use `parallelrun render` or "
             "`parallelrun submit`, which pack it",
             ".path"});
}

const FieldList& EnvironmentFields() {
  static const FieldList fields = {
      Bound("image", &Environment::image, Text(kMostText),
            "Any image with python3 (3.8 or newer), and pandas if the input is tabular.")
          .RequiredInCluster("write an image with python3")
          .ToldToNodes("image")
          .In(kOperator),
      Bound("python", &Environment::python, Text(kMostText),
            "The interpreter, on the path of the image or absolute.")
          .ToldToNodes("python")
          .ServerFills(),
      Bound("imagePullPolicy", &Environment::image_pull_policy,
            Words({"Always", "IfNotPresent", "Never"}), "As in a pod.")
          .In(kOperator),
      Bound("env", &Environment::env, ListOf(Variable(), 100),
            "Variables of the worker processes, as in a pod.", ReadEnv),
      Bound("envFrom", &Environment::env_from, ListOf(VariablesOf(), 100),
            "ConfigMaps and Secrets whose keys become variables.", ReadEnvFrom)
          .In(kOperator),
      Bound("imagePullSecrets", &Environment::image_pull_secrets, ListOf(PullSecret(), 16),
            "Secrets for pulling the image.",
            [](const Value& list, nlohmann::json& out) {
              for (const Value& item : list.List(16)) {
                CheckShape(item, PullSecret());
                out.push_back(WithoutNulls(item.node));
              }
            })
          .In(kOperator),
  };
  return fields;
}

Shape ResourcesShape() {
  constexpr size_t kMostAmounts = 32;
  const Shape claim =
      Object({Carried("name", Text(kMostName), "One of the pod's resourceClaims.").Required(),
              Carried("request", Text(kMostName), "One request of it.")});
  return Object(
      {Carried("limits", MapOf(Quantity(), kMostAmounts),
               "What it may use at most, as 4Gi of memory."),
       Carried("requests", MapOf(Quantity(), kMostAmounts),
               "What is set aside for it; the limits if not given."),
       Carried("claims", ListOf(claim, 16), "Dynamically allocated devices, as in a container.")});
}

Shape PodTemplateShape() {
  constexpr size_t kMostOfAnnotation = 32768;
  return Object({Carried("metadata",
                         Object({Carried("labels", MapOf(AnyText(kMostName), 64), "Labels."),
                                 Carried("annotations", MapOf(AnyText(kMostOfAnnotation), 64),
                                         "Annotations.")}),
                         "Labels and annotations of the pods."),
                 Carried("spec", Open(),
                         "A pod's spec; the container named worker is merged into the job's.")});
}

const FieldList& CoordinatorFields() {
  static const FieldList fields = {
      Bound(
          "resources", &CoordinatorOptions::resources, ResourcesShape(),
          "What the coordinator gets; requests of 100m CPU and 128Mi, limits of 1 CPU and 512Mi if "
          "not given.",
          ReadAmounts)
          .In(kOperator),
      Bound(
          "podTemplate", &CoordinatorOptions::pod_template, PodTemplateShape(),
          "Merged into the coordinator's pod, on top of spec.podTemplate without its nodeSelector "
          "and affinity.",
          ReadTemplate)
          .In(kOperator),
      Bound("restartLimit", &CoordinatorOptions::restart_limit, Whole(0),
            "Restarts without a new durable result before the job fails.")
          .ServerFills(),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
