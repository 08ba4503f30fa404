// The lines of a manifest, as text, CSV or JSON lines: what is taken for an item lies below the
// folder of the input and nowhere else, says the same when it is read again, and what it says of
// itself is JSON that its line has. The first byte of an input is the settings.
#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/manifest_line.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::string_view kBelow = "s3://bucket/in/";

void CheckName(std::string_view name) {
  Expect(!name.empty() && name.size() <= 4096, "a name is empty, or longer than a path");
  Expect(name.front() != '/' && name.back() != '/', "a name is no path below a folder");
  Expect(name.find('\0') == std::string_view::npos, "a name has a NUL byte");
  Expect(name.find("://") == std::string_view::npos, "a name is a URL");
  const std::string path = "/" + std::string(name) + "/";
  for (const char* part : {"/../", "/./", "//"}) {
    Expect(path.find(part) == std::string::npos, "a name leads elsewhere");
  }
  plan::PlanManifest text;
  text.path = "/list";
  text.below = kBelow;
  plan::ManifestLines lines(text);
  const auto again = lines.Read(name);
  Expect(again.ok() && *again && (*again)->name == name, "a name is another one the next time");
}

void CheckPin(const store::Pin& pin) {
  Expect(!pin.size || *pin.size <= uint64_t{1} << 63, "a size is none");
  const auto odd = [](char c) { return c <= ' ' || c > '~' || c == '"'; };
  Expect(std::none_of(pin.etag.begin(), pin.etag.end(), odd), "an ETag fits no header");
}

// A text that is not UTF-8 is JSON that Python alone reads.
bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void CheckMetadata(const plan::PlanManifest& manifest, std::string_view line,
                   const plan::ManifestEntry& entry) {
  if (manifest.format == api::ManifestFormat::kText) {
    Expect(entry.metadata.empty(), "a text says something");
    return;
  }
  if (manifest.format == api::ManifestFormat::kJsonLines) {
    Expect(entry.metadata == line, "an object was written anew");
  }
  if (!IsAscii(line)) return;
  const auto object = ParseObject(entry.metadata);
  Expect(object.has_value(), "what a line says is no object");
  Expect(lenient::Text(*object, manifest.column.c_str()).ends_with(entry.name),
         "a name is not what its column says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  constexpr api::ManifestFormat kFormats[] = {api::ManifestFormat::kText, api::ManifestFormat::kCsv,
                                              api::ManifestFormat::kJsonLines};
  plan::PlanManifest manifest;
  manifest.path = "/list";
  manifest.format = kFormats[data[0] % 4 % 3];
  if (data[0] / 4 % 2 != 0) manifest.below = kBelow;
  if (data[0] / 8 % 2 != 0) manifest.size_column = "size";
  if (data[0] / 16 % 2 != 0) manifest.etag_column = "etag";
  plan::ManifestLines lines(manifest);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool header = false;  // of an input whose columns were read
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t") == std::string::npos) continue;  // as the reader does
    const auto entry = lines.Read(line);
    if (!entry.ok()) {
      Expect(!entry.error().message.empty(), "nobody says what is wrong");
      // A manifest ends there; here the next line may be a good one, but for that of the columns.
      if (manifest.format == api::ManifestFormat::kCsv && !header) return 0;
      continue;
    }
    header = true;
    if (!*entry) continue;
    CheckName((*entry)->name);
    CheckPin((*entry)->pin);
    CheckMetadata(manifest, line, **entry);
  }
  return 0;
}
