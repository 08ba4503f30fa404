// Stores of objects, and what a node keeps of them.

#include <algorithm>

#include "api/fields/bind.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/text.h"

namespace parallelrun::api::fields {
namespace {

void ReadStoreName(const Value& value, std::string& out) { ReadPlainName(value, "a store", out); }

constexpr const char* kUrls =
    "write s3://BUCKET/PREFIX, abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX or "
    "https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX";

// What follows a '?' may be a signature, which is shown to nobody.
void ReadStoreUrl(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString(kMostText);
  if (!text) return;
  const std::string shown = Quoted(text->substr(0, text->find('?')));
  const bool of_s3 = text->starts_with("s3://");
  if (!of_s3 && !text->starts_with("abfss://") && !text->starts_with("https://")) {
    value.Error(shown + " is no store that is known", kUrls);
  } else if (text->find('?') != std::string::npos) {
    value.Error(shown + " has a ? behind it, as before a signature, which is a secret",
                of_s3 ? "leave out what follows it, and give credentials by a Secret or the "
                        "environment; a ? that is part of a name stands in path"
                      : "leave it out, and set AZURE_STORAGE_SAS_TOKEN");
  } else {
    out = *text;
  }
}

constexpr const char* kKmsAlone = "is for aws:kms";
constexpr const char* kKmsAloneMend = "write algorithm: aws:kms, or leave it out";
constexpr const char* kNoKey = "is no key of KMS";
constexpr const char* kNoKeyMend = "write its id, its ARN, or alias/NAME";

// It goes into a header.
void ReadKmsKey(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString(kMostText);
  if (!text) return;
  const bool plain = std::all_of(text->begin(), text->end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ':' || c == '/';
  });
  if (!plain) return value.Error(Quoted(*text) + " " + kNoKey, kNoKeyMend);
  out = *text;
}

Shape EncryptionShape() {
  return Object(StoreEncryptionFields())
      .With({R"cel(!has(self.kmsKeyId) || self.algorithm == "aws:kms")cel",
             std::string(kKmsAlone) + ": " + kKmsAloneMend, ".kmsKeyId"});
}

void ReadEncryption(const Value& map, ObjectStore& store, Target target) {
  StoreEncryption& read = store.encryption.emplace();
  ReadObject(map, StoreEncryptionFields(), &read, target);
  const bool said = map.node.Find("algorithm") != nullptr;
  if (!said || read.kms_key_id.empty() || read.algorithm == Encryption::kKms) return;
  AddError(map.problems, JoinPath(map.path, "kmsKeyId"), kKmsAlone, kKmsAloneMend);
}

}  // namespace

const FieldList& StoreEncryptionFields() {
  static const FieldList fields = {
      Bound("algorithm", &StoreEncryption::algorithm, WordsOf<Encryption>(),
            "AES256: by keys of S3 itself. aws:kms: by a key of KMS.")
          .Required("write algorithm: AES256, or aws:kms"),
      Bound("kmsKeyId", &StoreEncryption::kms_key_id,
            Text(kMostText).With({R"RULE(self.matches("^[-A-Za-z0-9_:/]*$"))RULE",
                                  std::string(kNoKey) + ": " + kNoKeyMend}),
            "Id, ARN or alias of the key; AWS's own key for S3 if not given.", ReadKmsKey)
          .Otherwise("AWS's own for S3"),
  };
  return fields;
}

const FieldList& StoreCredentialFields() {
  static const FieldList fields = {
      Bound("secretName", &StoreCredentials::secret_name, Text(kMaxObjectName),
            "Secret of the job's namespace.")
          .Required("write the name of a Secret of the job's namespace")
          .OnlyInCluster(),
      Bound("accessKeyId", &StoreCredentials::access_key_id, Text(kMaxObjectName),
            "Key of it that holds the access key's id; AWS_ACCESS_KEY_ID if not given.")
          .OnlyInCluster()
          .UnlessInitial(),
      Bound("secretAccessKey", &StoreCredentials::secret_access_key, Text(kMaxObjectName),
            "Key of it that holds the secret access key; AWS_SECRET_ACCESS_KEY if not given.")
          .OnlyInCluster()
          .UnlessInitial(),
      Bound("sessionToken", &StoreCredentials::session_token, Text(kMaxObjectName),
            "Key of it that holds a session token; none if not given.")
          .OnlyInCluster(),
  };
  return fields;
}

const FieldList& StoreFields() {
  static const FieldList fields = {
      Bound("name", &ObjectStore::name, PlainName("a store"),
            "Name that inputs and the output give.", ReadStoreName)
          .Required(),
      Bound(
          "url", &ObjectStore::url,
          Text(kMostText).With({R"RULE(self.matches("^(s3|abfss|https)://[^?]*$"))RULE",
                                "is no store that is known: write s3://BUCKET/PREFIX, "
                                "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX or "
                                "https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX, without a "
                                "? and what follows it"}),
          "s3://BUCKET, abfss://CONTAINER@ACCOUNT.dfs.core.windows.net or "
          "https://ACCOUNT.blob.core.windows.net/CONTAINER; with /PREFIX for what is below it.",
          ReadStoreUrl)
          .Required(kUrls),
      Bound("region", &ObjectStore::region, Text(kMostName),
            "Of a bucket of S3; what AWS_REGION or the profile says if not given.")
          .Otherwise("AWS_REGION, or the profile's"),
      Bound(
          "endpoint", &ObjectStore::endpoint, Text(kMostText),
          "URL of the server. If not given, of S3 what AWS_ENDPOINT_URL_S3 or the profile says, or "
          "AWS's own; of Azure that of AZURE_STORAGE_CONNECTION_STRING, or the account's own.")
          .Otherwise("what the environment says, or the cloud's own"),
      Bound("pathStyle", &ObjectStore::path_style, Boolean(),
            "true: the bucket stands in the path of requests, false: in the host's name. If not "
            "given, in the host's name at AWS alone.")
          .Otherwise("false at AWS, true elsewhere"),
      Both<ObjectStore>(
          "credentials", Object(StoreCredentialFields()),
          "In a cluster: keys of a Secret. If not given, the identity of the pods, as by the "
          "serviceAccountName of podTemplate.",
          [](const ObjectStore& store) {
            return store.credentials.secret_name.empty()
                       ? nlohmann::json()
                       : WriteFields(StoreCredentialFields(), &store.credentials);
          },
          [](const Value& map, ObjectStore& store, Target target) {
            ReadObject(map, StoreCredentialFields(), &store.credentials, target);
          })
          .Otherwise("the pods' identity")
          .OnlyInCluster(),
      Bound("nodeCredentials", &ObjectStore::node_credentials, Boolean(),
            "In a cluster, of S3. true gives nodes the keys of this store, or leaves them to their "
            "own identity, for a script that asks it by itself, and that can then do all that they "
            "allow; false if not given.")
          .OnlyInCluster()
          .UnlessInitial(),
      Both<ObjectStore>(
          "encryption", EncryptionShape(),
          "Of S3: how what is written is encrypted, for a bucket whose policy refuses all else; as "
          "the bucket has it if not given.",
          [](const ObjectStore& store) {
            return store.encryption ? WriteFields(StoreEncryptionFields(), &*store.encryption)
                                    : nlohmann::json();
          },
          ReadEncryption)
          .Otherwise("as the bucket has it"),
  };
  return fields;
}

const FieldList& CacheFields() {
  static const FieldList fields = {
      Bound("size", &CacheOptions::size, Size(),
            "Bytes on the node's disk, as 20GB (powers of 1024). A mini-batch whose objects take "
            "more fails; 10GB if not given.")
          .Otherwise("10GB")
          .ToldToNodes("cacheBytes"),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
