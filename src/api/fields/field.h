// One field of the spec: what it is called, what it may be, who fills it in, whether it may change
// while the job runs, where it acts, and what people are told. The lists of them (sections.h) are
// the one source of the CustomResourceDefinition, of how a job is read and written, of the
// operator's check of the served schema and of `parallelrun explain`. Plain data; made once, then
// read by any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace parallelrun::api {
struct Value;
enum class Target;
}  // namespace parallelrun::api

namespace parallelrun::api::fields {

struct Field;
using FieldList = std::vector<Field>;

// What the API server asks beyond type and bounds, in CEL. It is evaluated where it stands;
// `field`, as ".inputs", is what the message then names.
struct CelRule {
  std::string rule;
  std::string message;
  std::string field = {};
};

// What a value may be.
struct Shape {
  enum class Kind : uint8_t {
    kBoolean,
    kWhole,   // of 32 bits
    kMode,    // of a file; bounded, without a width
    kNumber,  // bounds are whole
    kText,
    kPath,      // of a folder or file below a volume
    kWord,      // one of `words`
    kSize,      // "1MB" or a number
    kQuantity,  // Kubernetes' "512Mi" or a number
    kObject,    // of `fields`
    kOpen,      // an object that Kubernetes alone judges
    kList,      // of `items`
    kMap,       // of `items` by any name
  };
  // How server-side apply merges two versions of a list.
  enum class Merge : uint8_t { kUnsaid, kByName, kAsSet, kWhole };

  Kind kind = Kind::kText;
  int64_t least = 0;  // of a number; of a text's characters, of a list's items
  int64_t most = 0;   // likewise, and of a map's entries
  std::vector<std::string> words = {};
  std::shared_ptr<const FieldList> fields = nullptr;
  std::shared_ptr<const Shape> items = nullptr;
  Merge merge = Merge::kUnsaid;
  std::vector<CelRule> rules = {};

  Shape With(CelRule rule) const&;
};

// When a field of an existing job may change. Of the top fields of the spec: what lies below
// follows.
enum class Change : uint8_t { kNever, kAnyTime, kWhileSuspended, kOnlyOn };

// Who does something about a field.
enum Acts : uint16_t {
  kCommand = 1,      // `parallelrun`, before anything is started
  kCoordinator = 2,  // the coordinator: its plan, its rules, the output
  kWorker = 4,       // the node's agent and the worker processes
  kOperator = 8,     // the operator, with the pods it makes: nothing in a local run
};

// Where a field says nothing, because another field of the same object has some value. `allowed` is
// CEL over that object, and `applies` the same question to the object as read.
struct Condition {
  std::string allowed;
  std::string message;
  std::function<bool(const void* owner)> applies;
  std::string what;  // of a problem in a job file, and its mend
  std::string mend;
};

enum class Need : uint8_t { kNone, kInCluster, kAlways };

struct Field {
  std::string name;
  Shape shape;
  std::string text;  // for people; at most 300 characters

  Need need = Need::kNone;
  std::string missing = {};  // the mend where it is needed and not there
  Change change = Change::kNever;
  uint16_t acts = 0;
  // It changes nothing in a local run, though others than the operator act on it in a cluster.
  bool only_in_cluster = false;
  // The API server writes the default into the job. It must not where a predefined argument may set
  // the field: what is there wins over the argument.
  bool server_fills = false;
  std::string otherwise = {};                     // the default in words, where no constant is
  std::vector<const Condition*> conditions = {};  // each must allow it

  // Who continues a run may say it anew: it does not decide what a mini-batch is.
  bool anew = false;

  // From a job file into `owner`, the struct of job.h that the list is of, with what is wrong added
  // to the value's problems; and out of it, null: it is left out. Without them the field is part of
  // an object that is carried through as it is, or the reader of its section does it.
  std::function<void(const Value& value, void* owner, Target target)> read = nullptr;
  std::function<nlohmann::json(const void* owner)> write = nullptr;
  std::function<nlohmann::json()> initial = nullptr;  // `write` of an owner that nobody changed
  bool unless_initial = false;  // the default is left out: it then reads as plans of before
  // By which name worker processes hear of it, unless it has its default; "": they do not.
  std::string worker_name = {};
  // By which name nodes hear of it, whatever it is; "": they do not. A size is a number there, and
  // a text that is not given is empty.
  std::string node_name = {};
  // The value, as JSON text, that says the same as none: a running job is told of it by that. ""
  // where there always is a value.
  std::string as_none = {};

  Field&& Required(std::string mend = "") &&;
  Field&& RequiredInCluster(std::string mend) &&;
  Field&& Changes(Change when) &&;
  Field&& In(uint16_t acting) &&;
  Field&& OnlyInCluster() &&;
  Field&& ServerFills() &&;
  Field&& Otherwise(std::string words) &&;
  Field&& UnlessInitial() &&;
  Field&& Anew() &&;
  Field&& ToldToWorkers(std::string as) &&;
  Field&& ToldToNodes(std::string as) &&;
  Field&& SameAsNone(std::string json) &&;
  Field&& On(std::vector<const Condition*> all) &&;
};

}  // namespace parallelrun::api::fields
