#include "api/job_name.h"

#include <cctype>
#include <filesystem>

namespace parallelrun::api {

std::string JobNameOf(const std::string& script) {
  std::string name;
  for (const char c : std::filesystem::path(script).stem().string()) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 && byte < 0x80 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  while (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) == 0)
    name.erase(0, 1);
  name = name.substr(0, 40);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.size() < 3 ? "job-" + (name.empty() ? "run" : name) : name;
}

}  // namespace parallelrun::api
