// What the small servers of objects have in common, which tests of stores ask: requests as they
// came, answers, and all names of a listing.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http/target.h"
#include "store/store.h"

namespace parallelrun::store {

// One request, as it came.
struct Heard {
  std::string head;
  std::string method, path, query, body;

  explicit Heard(const std::string& text) : head(text.substr(0, text.find("\r\n\r\n") + 2)) {
    method = head.substr(0, head.find(' '));
    const size_t begin = method.size() + 1;
    const std::string target = head.substr(begin, head.find(' ', begin) - begin);
    path = PercentDecode(target.substr(0, target.find('?'))).value_or("");
    if (target.find('?') != std::string::npos) query = target.substr(target.find('?') + 1);
    body = text.substr(std::min(text.size(), head.size() + 2));
  }
  // "" if it is not there.
  std::string Header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

inline std::string Reply(int status, const std::string& body, const std::string& headers = "") {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                     headers, body);
}

inline Wanted Everything() {
  const auto yes = [](std::string_view) { return true; };
  return {yes, yes};
}

struct AllNames {
  std::vector<std::string> names;
  std::vector<Found> found;  // of those, where the listing told it
  std::string error;
};

inline AllNames ListAll(Store& store, const std::string& after = "", Wanted wanted = Everything()) {
  AllNames all;
  Result<std::unique_ptr<Listing>> listing = store.List(std::move(wanted), after);
  EXPECT_TRUE(listing.ok());
  while (true) {
    const Result<std::optional<Listed>> next = (*listing)->Next();
    if (!next.ok()) all.error = next.error().message;
    if (!next.ok() || !*next) return all;
    all.names.emplace_back((*next)->name);
    if ((*next)->found) all.found.push_back(*(*next)->found);
  }
}

}  // namespace parallelrun::store
