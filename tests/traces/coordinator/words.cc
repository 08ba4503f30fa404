#include "tests/traces/coordinator/words.h"

#include <spdlog/fmt/fmt.h>

#include <variant>
#include <vector>

namespace parallelrun::trace {
namespace {

std::string OfLease(job::BatchId id, const job::Fence& fence) {
  return Say(job::LeaseName{id, fence});
}

struct Sayer {
  std::string operator()(const job::UnknownRecord& r) const {
    return fmt::format("a record of type {}, which is not known", r.type);
  }
  std::string operator()(const job::SealRecord&) const { return ""; }
  std::string operator()(const job::SettingsRecord& r) const {
    return fmt::format("settings of generation {}", r.generation);
  }
  std::string operator()(const job::PlanChunkRecord& r) const {
    return fmt::format("plan: {} mini-batches from {} on", r.Batches(), r.first);
  }
  std::string operator()(const job::PlanEndRecord& r) const {
    return fmt::format("plan ends: {} mini-batches, {} items", r.batches, r.items);
  }
  std::string operator()(const job::RowsRecord& r) const {
    return fmt::format("part of the rows of {}", OfLease(r.id, r.fence));
  }
  std::string operator()(const job::ResultRecord& r) const {
    return fmt::format("result of {}, node {}: {} items, {} rows", OfLease(r.id, r.fence), r.node,
                       r.items_succeeded, r.row_count);
  }
  std::string operator()(const job::FailedRecord& r) const {
    const char* ends[] = {"again", "failed for good", "split"};
    // Of a pod that was killed nobody says under which lease it failed.
    const std::string of = r.fence.number == 0 ? job::MiniBatchText(r.id) : OfLease(r.id, r.fence);
    return fmt::format("failed attempt of {}, node {}: {}; {}: {}", of, r.node,
                       ends[static_cast<size_t>(r.end)], r.kind, r.message);
  }
  std::string operator()(const job::LostRecord& r) const {
    return fmt::format("loss of {}", OfLease(r.id, r.fence));
  }
  std::string operator()(const job::VerdictRecord& r) const {
    return fmt::format("verdict: {}",
                       r.outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed");
  }
  std::string operator()(const job::PublishedRecord& r) const {
    return fmt::format("published: {}, {} bytes, {} rows", r.path, r.bytes, r.rows);
  }
  std::string operator()(const job::HeaderRecord& r) const {
    return fmt::format("header: {}", r.line.substr(0, r.line.find('\n')));
  }
  std::string operator()(const job::StartedRecord& r) const {
    return fmt::format("{} {}", OfLease(r.id, r.fence), r.begun ? "has begun" : "was handed back");
  }
  std::string operator()(const job::TypesRecord& r) const {
    return fmt::format("types of input {}", r.input);
  }
  std::string operator()(const job::CompanyRecord& r) const {
    std::string ids;
    for (const job::BatchId id : r.ids) ids += (ids.empty() ? "" : ", ") + job::MiniBatchText(id);
    if (r.most == job::kHeldOnce) return "held at a death: " + ids;
    return fmt::format("held at deaths, at most {} together from now on: {}", r.most, ids);
  }
  std::string operator()(const job::SkippedRecord& r) const {
    return fmt::format("{} items of {} left out as unreadable", r.items, OfLease(r.id, r.fence));
  }
  std::string operator()(const job::ShutdownRecord& r) const {
    const char* const ends[] = {"",       "is to be run", "has ended",
                                "failed", "was cut off",  "is lost"};
    return fmt::format("shutdown() of process {} of node {} {}{}{}", r.process, r.node,
                       ends[static_cast<size_t>(r.end)], r.message.empty() ? "" : ": ", r.message);
  }
  std::string operator()(const job::AgainRecord& r) const {
    return fmt::format("results of process {} of node {} are void", r.process, r.node);
  }
};

}  // namespace

std::string Say(const job::LeaseName& name) {
  return fmt::format("{}@{}.{}", job::MiniBatchText(name.id), name.fence.epoch, name.fence.number);
}

std::string Say(const job::Incarnation& incarnation) {
  return fmt::format("{}.{}", incarnation.epoch, incarnation.number);
}

std::string Say(const Result<job::ExchangeReply>& reply) {
  if (!reply.ok()) {
    return fmt::format("error {}: {}", CodeName(reply.error().code), reply.error().message);
  }
  std::vector<std::string> parts;
  const auto add = [&parts](const char* what, const auto& names, const auto& say) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + say(name);
    if (!text.empty()) parts.push_back(fmt::format("{} {}", what, text));
  };
  const auto name = [](const job::LeaseName& lease) { return Say(lease); };
  add("leased", reply->leased, [](const job::Leased& l) { return OfLease(l.id, l.fence); });
  add("settled", reply->settled, name);
  add("refused", reply->refused, name);
  add("adopted", reply->adopted, [](const job::Adopted& a) {
    return OfLease(a.id, a.old_fence) + " as " + OfLease(a.id, a.fence);
  });
  if (!reply->header.empty()) parts.push_back(fmt::format("the header is {}", reply->header));
  if (reply->directive == job::Directive::kDrain) parts.emplace_back("drain");
  if (reply->directive == job::Directive::kFinish) parts.emplace_back("finish");
  if (reply->directive == job::Directive::kClose) parts.emplace_back("close");
  if (reply->directive == job::Directive::kWhere) parts.emplace_back("where are the processes?");
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string Say(const job::Record& record) { return std::visit(Sayer(), record); }

}  // namespace parallelrun::trace
