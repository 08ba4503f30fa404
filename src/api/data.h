// What a job reads and writes, as plain data: a part of job.h, where its conventions stand, for
// those who know data and nothing else of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parallelrun::api {

enum class InputKind { kFiles, kTabular, kJsonLines };
enum class Access { kPath, kUri };
// Which inputs without an item are no mistake: none, those whose place is there, all.
enum class AllowEmpty { kNever, kExisting, kMissing };
// What the lines of a manifest are.
enum class ManifestFormat { kText, kCsv, kJsonLines };
// What becomes of a file that a manifest names in several lines.
enum class Duplicates { kFail, kKeep };
enum class TabularFormat { kCsv, kTsv, kParquet };
enum class HeaderMode { kAllFiles, kFirstFile, kNone };
enum class ColumnType { kInteger, kNumber, kBoolean, kText };
enum class Typing { kOnce, kPerMiniBatch };
enum class BadRows { kFail, kSkip };
enum class OutputAction { kAppendRow, kSummaryOnly };
enum class OutputFormat { kText, kJsonl, kCsv, kParquet };
enum class OutputOrder { kMiniBatch, kCompletion };
enum class SideFiles { kDirect, kStaged };
enum class Encryption { kAes256, kKms };
enum class IfExists { kFail, kResume, kOverwrite, kRetryFailed };

// Which keys of a Secret in the job's namespace a cluster asks a store with.
struct StoreCredentials {
  std::string secret_name;  // empty: the pods' own identity
  std::string access_key_id = "AWS_ACCESS_KEY_ID";
  std::string secret_access_key = "AWS_SECRET_ACCESS_KEY";
  std::string session_token;  // empty: there is none
  bool operator==(const StoreCredentials&) const = default;
};

// How S3 is asked to encrypt what is written.
struct StoreEncryption {
  Encryption algorithm = Encryption::kAes256;
  std::string kms_key_id;  // empty: with kKms, AWS's own key for S3
  bool operator==(const StoreEncryption&) const = default;
};

// Where objects lie: a bucket, or what is below a prefix of it.
struct ObjectStore {
  std::string name;
  std::string url;                 // s3://bucket/prefix
  std::string region;              // empty, as the next: what the tools around S3 are set to
  std::string endpoint;            // of a server other than AWS
  std::optional<bool> path_style;  // none: as the endpoint suggests
  StoreCredentials credentials = {};
  bool node_credentials = false;                   // nodes have its keys too, and their scripts
  std::optional<StoreEncryption> encryption = {};  // none: as the bucket has it
  bool operator==(const ObjectStore&) const = default;
};

struct VolumePath {
  std::string volume;
  std::string path;
  bool operator==(const VolumePath&) const = default;
};

struct TabularOptions {
  TabularFormat format = TabularFormat::kCsv;
  std::string delimiter;     // default: "," (TSV: a tab)
  std::string quote = "\"";  // "None": fields are not quoted
  HeaderMode header = HeaderMode::kAllFiles;
  std::string encoding = "utf-8";
  bool quoted_newlines = true;
  Typing typing = Typing::kOnce;
  std::map<std::string, ColumnType> dtypes = {};  // by column: in place of what is decided
  std::vector<std::string> na_values = {};        // stand for a missing value, too
  bool keep_default_na = true;
  int32_t skip_rows = 0;     // lines at the front of each file
  std::string comment = {};  // one character, or empty
  std::string escape = {};   // likewise
  BadRows bad_rows = BadRows::kFail;
  uint64_t max_field_size = uint64_t{1} << 20;  // bytes
  bool operator==(const TabularOptions&) const = default;
};

// The file that names the files of an input, one a line.
struct Manifest {
  std::string path;  // relative to the volume of the input, or below its store's URL
  ManifestFormat format = ManifestFormat::kText;
  std::string column = "path";   // but of kText: the one that holds the path
  std::string size_column = {};  // likewise: the bytes of the file; empty: none
  std::string etag_column = {};  // of an object; empty: none
  Duplicates duplicates = Duplicates::kFail;
  bool operator==(const Manifest&) const = default;
};

struct Input {
  std::string name;
  InputKind kind = InputKind::kFiles;
  VolumePath from;           // of an input in a store only the path; "a/" is no object
  std::string store = {};    // empty: it lies on the volume
  std::string pattern = {};  // empty: every file
  std::vector<std::string> exclude = {};
  Access access = Access::kPath;          // kFiles only; kUri wants a store
  std::string partition_format = {};      // relative to the path; empty: none
  std::optional<Manifest> manifest = {};  // kFiles only; of what lies below the path
  AllowEmpty allow_empty = AllowEmpty::kNever;
  TabularOptions tabular = {};  // kTabular only
  bool operator==(const Input&) const = default;
};

struct SideInput {
  std::string name;
  VolumePath from;              // of one in a store only the path; "a/" is no object
  std::string store = {};       // empty: it lies on the volume
  std::string mount_path = {};  // empty: where the volume is mounted
  bool operator==(const SideInput&) const = default;
};

struct Output {
  VolumePath to;           // default path: <job>/output; in a store only the path
  std::string store = {};  // empty: on the volume
  OutputAction action = OutputAction::kAppendRow;
  std::string file_name = "parallel_run_step.txt";
  OutputFormat format = OutputFormat::kText;  // whatever the file is called
  std::vector<std::string> columns;           // kCsv, kParquet; empty: those of the first rows
  bool nan_as_null = false;  // also infinite numbers; of tables those inside of values
  bool provenance = false;   // but of kText: columns that say where a row comes from
  SideFiles side_files = SideFiles::kDirect;  // what the script writes itself
  OutputOrder order = OutputOrder::kMiniBatch;
  IfExists if_exists = IfExists::kFail;
  bool mount_on_nodes = true;
  bool operator==(const Output&) const = default;
};

struct Logs {
  VolumePath to;           // default path: <job>/logs; in a store only the path
  std::string store = {};  // empty: on the volume
  bool operator==(const Logs&) const = default;
};

// Each of inputs, sideInputs and stores has at most so many.
inline constexpr size_t kMaxInputs = 32;

}  // namespace parallelrun::api
