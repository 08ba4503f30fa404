#include "base/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/escape.h"
#include "base/thread.h"

namespace parallelrun {
namespace {

thread_local const LogSubject* current = nullptr;

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
class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto since = message.time.time_since_epoch();
    const time_t whole = std::chrono::floor<std::chrono::seconds>(since).count();
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(since).count() % 1000;
    std::string text(message.payload.data(), message.payload.size());
    if (current != nullptr && format_ != LogFormat::kJson) text = current->prefix + ": " + text;
    std::string line;
    tm parts{};
    if (format_ == LogFormat::kTerminal) {
      localtime_r(&whole, &parts);
      line = fmt::format("{:02}:{:02}:{:02}.{:03} {} {}", parts.tm_hour, parts.tm_min, parts.tm_sec,
                         ms, LevelName(message.level), text);
    } else {
      gmtime_r(&whole, &parts);
      const std::string day =
          fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
      const std::string time =
          fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
      if (format_ == LogFormat::kTree) {
        line = fmt::format("{} {},{:03}|{}|{}|{}|{}", day, time, ms, LevelName(message.level),
                           getpid(), message.thread_id, text);
      } else {
        nlohmann::ordered_json object = {{"time", fmt::format("{}T{}.{:03}Z", day, time, ms)},
                                         {"level", LevelName(message.level)},
                                         {"message", text}};
        if (current != nullptr) object[current->kind] = current->fields;
        line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
      }
    }
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  const LogFormat format_;
};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// stderr, written to by who logs, or by a thread.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  ~StderrSink() override { (void)EndBackground(std::chrono::hours(1)); }

  void BeginBackground() {
    const std::lock_guard lock(queue_mutex_);
    if (background_) return;
    background_ = true;
    ends_ = false;
    thread_ = Thread("log", [this] { Run(); });
  }

  bool EndBackground(std::chrono::nanoseconds limit) {
    {
      const std::lock_guard lock(queue_mutex_);
      if (!background_) return true;
      ends_ = true;
    }
    wake_.notify_all();
    if (!thread_.JoinFor(limit)) return false;
    const std::lock_guard lock(queue_mutex_);
    background_ = false;
    return true;
  }

 private:
  static constexpr size_t kMostBytes = size_t{4} << 20;

  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    std::string line(buffer.data(), buffer.size());
    std::unique_lock lock(queue_mutex_);
    if (!background_ || ends_) {
      lock.unlock();
      return Write(line);
    }
    bytes_ += line.size();
    lines_.push_back(std::move(line));
    for (; bytes_ > kMostBytes; ++dropped_) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
    }
    lock.unlock();
    wake_.notify_all();
  }

  // Before the process leaves without an end: a moment is all that its last lines get.
  void flush_() override {
    std::unique_lock lock(queue_mutex_);
    if (!background_) return;
    wake_.wait_for(lock, std::chrono::seconds(2), [this] { return lines_.empty() && !writing_; });
  }

  void Run() {
    std::unique_lock lock(queue_mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ends_ || !lines_.empty(); });
      if (lines_.empty()) return;
      std::string text;
      if (const uint64_t dropped = std::exchange(dropped_, 0); dropped > 0) {
        text = fmt::format("[{} lines of this log were dropped: nobody read it]\n", dropped);
      }
      for (const std::string& line : lines_) text += line;
      lines_.clear();
      bytes_ = 0;
      writing_ = true;
      lock.unlock();
      Write(text);
      lock.lock();
      writing_ = false;
      wake_.notify_all();
    }
  }

  static void Write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;  // there is nobody left to tell
      text.remove_prefix(static_cast<size_t>(n));
    }
  }

  std::mutex queue_mutex_;  // guards all below but the thread
  std::condition_variable wake_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  bool writing_ = false;
  bool background_ = false;  // lines wait for the thread
  bool ends_ = false;
  Thread thread_;  // of who begins and ends it
};

std::shared_ptr<StderrSink>& TheStderrSink() {
  static std::shared_ptr<StderrSink> sink = std::make_shared<StderrSink>();
  return sink;
}

}  // namespace

void LogInBackground() { TheStderrSink()->BeginBackground(); }

bool EndBackgroundLog(std::chrono::nanoseconds limit) {
  return TheStderrSink()->EndBackground(limit);
}

void SetUpLogging(LogFormat format, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("", TheStderrSink());
  logger->set_formatter(std::make_unique<LineFormatter>(format));
  logger->set_level(SpdlogLevel(level));
  spdlog::set_default_logger(std::move(logger));
}

namespace {

class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(std::function<void(std::string)> take) : take_(std::move(take)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    take_(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  const std::function<void(std::string)> take_;
};

}  // namespace

void AlsoLogTo(std::function<void(std::string line)> take) {
  auto sink = std::make_shared<LineSink>(std::move(take));
  sink->set_formatter(std::make_unique<LineFormatter>(LogFormat::kTree));
  spdlog::default_logger()->sinks().push_back(std::move(sink));
}

LogScope::LogScope(const LogSubject& subject) : before_(current) { current = &subject; }
LogScope::~LogScope() { current = before_; }

void LogToFile(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sink->set_formatter(std::make_unique<LineFormatter>(LogFormat::kTree));
    spdlog::default_logger()->sinks().push_back(std::move(sink));
    spdlog::default_logger()->flush_on(spdlog::level::debug);
  } catch (const spdlog::spdlog_ex& error) {
    spdlog::warn("the log cannot be written to {}: {}", Printable(path, kShownLong), error.what());
  }
}

}  // namespace parallelrun
