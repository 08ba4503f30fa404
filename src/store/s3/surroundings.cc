#include "store/s3/surroundings.h"

#include <fcntl.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "base/small_file.h"

namespace parallelrun::store::s3 {
namespace {

constexpr size_t kMostFile = 1024 * 1024;
constexpr std::string_view kBlank = " \t\r\n";

constexpr std::array kVariables{"AWS_ACCESS_KEY_ID",
                                "AWS_SECRET_ACCESS_KEY",
                                "AWS_SESSION_TOKEN",
                                "AWS_WEB_IDENTITY_TOKEN_FILE",
                                "AWS_ROLE_ARN",
                                "AWS_ROLE_SESSION_NAME",
                                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                "AWS_PROFILE",
                                "AWS_SHARED_CREDENTIALS_FILE",
                                "AWS_CONFIG_FILE",
                                "AWS_EC2_METADATA_DISABLED",
                                "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                "AWS_REGION",
                                "AWS_DEFAULT_REGION",
                                "AWS_ENDPOINT_URL_S3",
                                "AWS_ENDPOINT_URL",
                                "AWS_ENDPOINT_URL_STS",
                                "AWS_CA_BUNDLE",
                                "HOME"};

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The profile that a line "[profile x]" begins; "": none that is of use.
std::string SectionName(std::string_view line, bool config) {
  constexpr std::string_view kPrefix = "profile ";
  std::string_view name = Trimmed(line.substr(1, line.find(']') - 1));
  if (config && name != "default") {
    if (!name.starts_with(kPrefix)) return "";
    name = Trimmed(name.substr(kPrefix.size()));
  }
  return std::string(name);
}

Result<Profiles> ReadProfiles(const std::string& path, bool config) {
  const Result<std::string> text = ReadTrimmed(path);
  if (!text.ok() && text.error().code == Code::kNotFound) return Profiles();
  if (!text.ok()) return text.error();
  return ParseProfiles(*text, config);
}

std::string FirstOf(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

std::string Surroundings::Variable(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::string Surroundings::ProfileName() const {
  return FirstOf({Variable("AWS_PROFILE"), "default"});
}

std::string Surroundings::Setting(const std::string& name) const {
  const auto profile = profiles.find(ProfileName());
  if (profile == profiles.end()) return "";
  const auto setting = profile->second.find(name);
  return setting == profile->second.end() ? "" : setting->second;
}

std::string Surroundings::Region(const std::string& of_job) const {
  return FirstOf({of_job, Variable("AWS_REGION"), Variable("AWS_DEFAULT_REGION"), Setting("region"),
                  "us-east-1"});
}

std::string Surroundings::Endpoint(const std::string& of_job) const {
  return FirstOf({of_job, Variable("AWS_ENDPOINT_URL_S3"), Variable("AWS_ENDPOINT_URL"),
                  Setting("endpoint_url")});
}

Profiles ParseProfiles(std::string_view text, bool config) {
  Profiles profiles;
  std::string name;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with('[')) {
      name = SectionName(line, config);
      if (!name.empty()) profiles[name];
      continue;
    }
    const size_t equals = line.find('=');
    const bool nested = line.starts_with(' ') || line.starts_with('\t');
    const bool comment = line.starts_with('#') || line.starts_with(';');
    if (name.empty() || nested || comment || equals == std::string_view::npos) continue;
    const std::string_view value = Trimmed(line.substr(equals + 1));
    if (!value.empty()) profiles[name][std::string(Trimmed(line.substr(0, equals)))] = value;
  }
  return profiles;
}

Profiles Merged(const Profiles& config, const Profiles& credentials) {
  Profiles merged = credentials;
  for (const auto& [name, profile] : config) merged[name].insert(profile.begin(), profile.end());
  return merged;
}

Result<std::string> ReadTrimmed(const std::string& path) {
  const Result<std::string> text =
      ReadSmallFile(path, kMostFile, O_NONBLOCK);  // a pipe must not hold us
  if (!text.ok()) return text.error();
  return std::string(Trimmed(*text));
}

Result<Surroundings> ReadSurroundings() {
  Surroundings read;
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
    if (value != nullptr && *value != '\0') read.variables[name] = value;
  }
  const std::string folder = read.Variable("HOME") + "/.aws/";
  const Result<Profiles> config =
      ReadProfiles(FirstOf({read.Variable("AWS_CONFIG_FILE"), folder + "config"}), true);
  if (!config.ok()) return config.error();
  const Result<Profiles> credentials = ReadProfiles(
      FirstOf({read.Variable("AWS_SHARED_CREDENTIALS_FILE"), folder + "credentials"}), false);
  if (!credentials.ok()) return credentials.error();
  read.profiles = Merged(*config, *credentials);
  return read;
}

}  // namespace parallelrun::store::s3
