#include "operator/job_log.h"

#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace parallelrun {
namespace {

thread_local const JobLabel* current = nullptr;

const char* LevelName(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug: return "DEBUG";
    case spdlog::level::info: return "INFO";
    case spdlog::level::warn: return "WARNING";
    default: return "ERROR";
  }
}

// Formats on the thread that logs, as the sinks are synchronous.
class JobFormatter final : public spdlog::formatter {
 public:
  explicit JobFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto since = message.time.time_since_epoch();
    const time_t whole = std::chrono::floor<std::chrono::seconds>(since).count();
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(since).count() % 1000;
    const std::string_view text(message.payload.data(), message.payload.size());
    tm parts{};
    gmtime_r(&whole, &parts);
    const std::string time =
        fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                    parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
    std::string line;
    if (format_ == LogFormat::kJson) {
      nlohmann::ordered_json object = {
          {"time", time}, {"level", LevelName(message.level)}, {"message", text}};
      if (current != nullptr) {
        object["job"] = {
            {"namespace", current->name_space}, {"name", current->name}, {"uid", current->uid}};
      }
      line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    } else {
      line = fmt::format("{} {} ", time, LevelName(message.level));
      if (current != nullptr) line += fmt::format("{}/{}: ", current->name_space, current->name);
      line += text;
    }
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JobFormatter>(format_);
  }

 private:
  const LogFormat format_;
};

}  // namespace

JobLogScope::JobLogScope(const JobLabel& label) : before_(current) { current = &label; }
JobLogScope::~JobLogScope() { current = before_; }

void SetUpOperatorLogging(LogFormat format, LogLevel level) {
  SetUpLogging(format, level);
  spdlog::default_logger()->set_formatter(std::make_unique<JobFormatter>(format));
}

}  // namespace parallelrun
