// Errors as values. Expected failures (input, disk, network, peers) travel as `Status` or
// `Result<T>`; a programmer's error is an assert; an impossible environment ends the process.
// A message says what happened, where, and what to do; `Error::With` adds the place on the way up.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace parallelrun {

enum class Code {
  kInvalid,      // the caller's input is wrong; the same call fails again
  kNotFound,     // the named thing is not there
  kExists,       // the named thing is there already
  kStale,        // superseded by a newer epoch, incarnation or fence
  kUnavailable,  // not now: a later try may succeed
  kNoSpace,      // disk or quota is full; nothing was changed
  kCorrupt,      // stored bytes are not what was written
  kPermission,   // not allowed
  kTimeout,      // a named wait reached its limit
  kInternal,     // the system refused something that should work
};

const char* CodeName(Code code);

struct Error {
  Code code;
  std::string message;

  // The same error with `place` in front: "<place>: <message>".
  [[nodiscard]] Error With(const std::string& place) const;
};

// Error from errno `number`: ENOSPC and EDQUOT become kNoSpace, ENOENT kNotFound, and so on.
// `what` names the call and its object, as in "write /x/y".
[[nodiscard]] Error ErrnoError(int number, const std::string& what);

// A value or why there is none. `E` is Error, or a struct of its room that says more.
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(E error) : held_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(held_); }
  explicit operator bool() const { return ok(); }

  // The value; only after ok().
  T& value() { return assert(ok()), *std::get_if<T>(&held_); }
  const T& value() const { return assert(ok()), *std::get_if<T>(&held_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // The error; only after !ok().
  const E& error() const { return assert(!ok()), *std::get_if<E>(&held_); }

 private:
  std::variant<T, E> held_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Status(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return assert(!ok_), error_; }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace parallelrun
