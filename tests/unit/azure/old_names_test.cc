#include "azure/old_names.h"

#include <gtest/gtest.h>

#include "api/parse.h"
#include "azure/read_job.h"

namespace parallelrun::azure {
namespace {

TEST(OldNames, AreAnsweredWithTheNewOnes) {
  EXPECT_EQ(OldNameMend("append_row_file_name"), "write spec.output.fileName");
  EXPECT_EQ(OldNameMend("replicas"), "");
}

TEST(OldNames, AreWordsOfThisRoomAlone) {
  const nlohmann::json job = {{"spec", {{"instance_count", 2}}}};
  const auto mend = [](const api::ParsedJob& parsed) {
    for (const api::Problem& problem : parsed.problems) {
      if (problem.field == "spec.instance_count") return problem.mend;
    }
    return std::string("no problem");
  };
  EXPECT_EQ(mend(azure::ReadJob(job, api::Target::kLocal)), "write spec.nodeCount");
  EXPECT_EQ(mend(parallelrun::api::ReadJob(job, api::Target::kLocal)), "");
}

}  // namespace
}  // namespace parallelrun::azure
