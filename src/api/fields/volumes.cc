// The volumes of a job: the sources that people write by hand, field by field, and those that
// Kubernetes alone judges.
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"

namespace parallelrun::api::fields {
namespace {

Field ReadOnly() { return Carried("readOnly", Boolean(), "Mounts it read-only."); }

Field FilesOf(const std::string& source, const std::string& name, const std::string& text) {
  const Shape key = Object({Carried("key", Text(kMostObjectName), "The key.").Required(),
                            Carried("path", Text(kMostText), "Its file.").Required(),
                            Carried("mode", Mode(), "Mode of the file.")});
  return Carried(source,
                 Object({Carried(name, Text(kMostObjectName), "Its name.").Required(),
                         Carried("items", ListOf(key, 100), "Only these keys."),
                         Carried("defaultMode", Mode(), "Mode of the files."),
                         Carried("optional", Boolean(), "Whether it may be missing.")}),
                 text);
}

FieldList MakeSources() {
  return {
      Carried("awsElasticBlockStore", Open(), "As in a pod."),
      Carried("azureDisk", Open(), "As in a pod."),
      Carried("azureFile", Open(), "As in a pod."),
      Carried("cinder", Open(), "As in a pod."),
      FilesOf("configMap", "name", "Files of a ConfigMap, read-only."),
      Carried(
          "csi",
          Object(
              {Carried("driver", Text(kMostObjectName), "Name of the driver.").Required(),
               ReadOnly(), Carried("fsType", AnyText(kMostName), "File system."),
               Carried("volumeAttributes", MapOf(AnyText(4096), 64), "What the driver asks for."),
               Carried("nodePublishSecretRef",
                       Object({Carried("name", Text(kMostObjectName), "Its name.").Required()}),
                       "Secret that the driver gets.")}),
          "A volume of a CSI driver, as of an object store."),
      Carried("downwardAPI", Open(), "As in a pod; read-only."),
      Carried("emptyDir",
              Object({Carried("medium", AnyText(kMostName), "Memory for a folder in memory."),
                      Carried("sizeLimit", Quantity(), "As 10Gi.")}),
              "An empty folder of each pod, lost with it."),
      Carried("ephemeral", Open(), "A claim for each pod"),
      Carried("fc", Open(), "As in a pod."),
      Carried("flexVolume", Open(), "As in a pod."),
      Carried("gcePersistentDisk", Open(), "As in a pod."),
      Carried("hostPath",
              Object({Carried("path", Text(kMostText), "The folder.").Required(),
                      Carried("type", AnyText(kMostName), "As in a pod.")}),
              "A folder of each machine, the same on all of them."),
      Carried("image",
              Object({Carried("reference", Text(kMostText), "The image.").Required(),
                      Carried("pullPolicy", Words({"Always", "IfNotPresent", "Never"}),
                              "As in a pod.")}),
              "The files of an image, read-only."),
      Carried("iscsi", Open(), "As in a pod."),
      Carried(
          "nfs",
          Object({Carried("server", Text(kMostObjectName), "Host name or address.").Required(),
                  Carried("path", Text(kMostText), "Folder that the server exports.").Required(),
                  ReadOnly()}),
          "A folder of an NFS server."),
      Carried("persistentVolumeClaim",
              Object({Carried("claimName", Text(kMostObjectName), "Name of the claim.").Required(),
                      ReadOnly()}),
              "A claim of this namespace. With more than one node it must allow ReadWriteMany."),
      Carried("portworxVolume", Open(), "As in a pod."),
      Carried("projected", Open(), "As in a pod; read-only."),
      FilesOf("secret", "secretName", "Files of a Secret, read-only."),
      Carried("vsphereVolume", Open(), "As in a pod."),
  };
}

}  // namespace

const FieldList& VolumeSources() {
  static const FieldList sources = MakeSources();
  return sources;
}

Shape VolumeShape() {
  FieldList fields = {
      Carried(
          "name",
          Text(kMostName)
              .With(
                  {R"(self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))",
                   R"(cannot name a volume: write lower-case letters, digits and "-", at most 63)"})
              .With({std::string("self != \"") + kStateVolume + "\"",
                     "is the name of the claim of state.volumeClaimTemplate: write another name"}),
          "Name that inputs and outputs give.")
          .Required()};
  std::string given;
  for (const Field& source : VolumeSources()) {
    given += (given.empty() ? "[has(self." : ", has(self.") + source.name + ")";
    fields.push_back(source);
  }
  given += "]";
  return Object(std::move(fields))
      .With({given + ".exists(x, x)",
             "has no source: write one, such as persistentVolumeClaim: {claimName: CLAIM}"})
      .With({given + ".filter(x, x).size() < 2", "has more than one source: keep exactly one"});
}

}  // namespace parallelrun::api::fields
