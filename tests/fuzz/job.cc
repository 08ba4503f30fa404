// The job parser: any text is a job or a list of problems; what is a job is read back as the same.
#include <nlohmann/json.hpp>

#include "api/parse.h"
#include "api/to_json.h"
#include "tests/fuzz/expect.h"

using parallelrun::CanonicalText;
using parallelrun::ParsedJob;
using parallelrun::ReadJob;
using parallelrun::Target;
using parallelrun::ToJson;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Target target : {Target::kLocal, Target::kCluster}) {
    const ParsedJob job = ReadJob(text, {}, target);
    if (!job.ok()) continue;
    const std::string canonical = CanonicalText(ToJson(job.job));
    const ParsedJob again = ReadJob(canonical, {}, target);
    Expect(again.ok(), "a canonical job is refused");
    Expect(CanonicalText(ToJson(again.job)) == canonical, "a canonical job changes when read back");
  }
  return 0;
}
