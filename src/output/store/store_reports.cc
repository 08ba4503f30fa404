#include "output/store/store_reports.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "output/store/part_sender.h"

namespace parallelrun::output {
namespace {

constexpr uint64_t kOneRequest = uint64_t{16} << 20;  // in memory
constexpr size_t kPiece = size_t{1} << 20;
constexpr int kPutTries = 10;  // each of which found another object in the report's place
constexpr char kBytes[] = "parallelrun-bytes";

store::Marks MarksOf(const OutputMark& mark, uint64_t bytes) {
  store::Marks marks = output::MarksOf(mark);
  marks[kBytes] = std::to_string(bytes);
  return marks;
}

// `add` gets all of it, piece by piece.
template <typename Add>
Status ReadAll(const Report& report, uint64_t bytes, const Add& add) {
  std::string piece;
  for (uint64_t offset = 0; offset < bytes; offset += piece.size()) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(kPiece, bytes - offset)));
    const Result<size_t> read = report.read(offset, piece);
    if (!read.ok()) return read.error();
    if (*read < piece.size()) return Error{Code::kInvalid, "it became shorter while it was read"};
    if (Status added = add(piece); !added.ok()) return added;
  }
  return {};
}

Status PutSmall(store::WriteStore& store, const std::string& name, const Report& report,
                uint64_t bytes, const store::Marks& marks, const store::Expected& expected) {
  std::string text;
  const Status read = ReadAll(report, bytes, [&](const std::string& piece) {
    text += piece;
    return Status();
  });
  return read.ok() ? store.Put(name, text, expected, marks) : read;
}

Status PutLarge(store::WriteStore& store, const std::string& name, const Report& report,
                uint64_t bytes, const store::Marks& marks, const store::Expected& expected) {
  Result<std::unique_ptr<store::Upload>> upload = store.Begin(name, marks);
  if (!upload.ok()) return upload.error();
  Status sent;
  {
    PartSender sender(**upload, PlanParts(bytes, store.parts()), store.parts().most);
    sent = ReadAll(report, bytes, [&](const std::string& piece) { return sender.Add(piece); });
    if (sent.ok()) sent = sender.Finish();
  }
  if (sent.ok()) sent = (*upload)->Complete(expected);
  if (sent.ok()) return sent;
  const Status ended = store.EndUpload(name, (*upload)->id());
  if (!ended.ok()) spdlog::warn("an upload is left behind: {}", ended.error().message);
  return sent;
}

// The mark of what stands in the output's place: asked only where another run's report is there.
Result<std::optional<OutputMark>> MarkOfOutput(store::WriteStore& store,
                                               const ReportOptions& options,
                                               const std::optional<store::Stored>& report) {
  if (!report) return std::optional<OutputMark>();
  const std::optional<OutputMark> mark = MarkOf(report->marks);
  if (!mark || mark->run_id == options.mark.run_id) return std::optional<OutputMark>();
  const Result<std::optional<store::Stored>> there = store.Look(options.output);
  if (!there.ok()) return there.error();
  return *there ? MarkOf((*there)->marks) : std::optional<OutputMark>();
}

}  // namespace

std::string ReportNameOf(const std::string& output, const std::string& report) {
  return output + ".run/" + report;
}

StoreStep NextReportStep(const std::optional<store::Stored>& there, const OutputMark& own,
                         const std::optional<OutputMark>& of_output) {
  StoreStep step;
  if (!there) return step;
  step.kind = StoreStep::Kind::kForeign;
  const std::optional<OutputMark> mark = MarkOf(there->marks);
  const auto bytes = there->marks.find(kBytes);
  if (!mark || bytes == there->marks.end() || bytes->second != std::to_string(there->found.size)) {
    step.why = "is there, and no run has put it there: move it away";
    return step;
  }
  if (mark->run_id == own.run_id && mark->generation > own.generation) {
    step.why = "is there, of a later try of this run";
    return step;
  }
  if (mark->run_id != own.run_id && of_output && of_output->run_id == mark->run_id) {
    step.why = "is there, of the run whose output is there";
    return step;
  }
  step.kind = StoreStep::Kind::kComplete;
  step.expected = there->found.version;
  return step;
}

Status PutReport(store::WriteStore& store, const ReportOptions& options, const Report& report) {
  const std::string name = ReportNameOf(options.output, report.name);
  const uint64_t bytes = report.bytes.value_or(0);
  const store::Marks marks = MarksOf(options.mark, bytes);
  for (int i = 0; i < kPutTries; ++i) {
    const Result<std::optional<store::Stored>> there = store.Look(name);
    if (!there.ok()) return there.error();
    if (!*there && !report.bytes) return {};
    const auto of_output = MarkOfOutput(store, options, *there);
    if (!of_output.ok()) return of_output.error();
    const StoreStep step = NextReportStep(*there, options.mark, *of_output);
    if (step.kind == StoreStep::Kind::kForeign) {
      // Where this run has nothing to say, nothing is in its way.
      if (!report.bytes) return {};
      return Error{Code::kExists, store.Location(name) + " " + step.why};
    }
    if (Status newest = options.newest(); !newest.ok()) return newest;
    const auto put = bytes <= kOneRequest ? PutSmall : PutLarge;
    Status done = put(store, name, report, bytes, marks, step.expected);
    if (done.ok()) return done;
    // What was looked at is another by now, or gone: it is judged anew.
    const bool gone = done.error().code == Code::kNotFound && step.expected;
    if (done.error().code != Code::kStale && !gone) return done;
  }
  return Error{Code::kExists,
               store.Location(name) + " appears again and again: end what writes it"};
}

}  // namespace parallelrun::output
