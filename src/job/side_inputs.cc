#include "job/side_inputs.h"

#include <optional>
#include <string_view>

#include "base/hex.h"
#include "base/json.h"

namespace parallelrun::job {
namespace {

using Json = nlohmann::json;

constexpr size_t kObjectParts = 3;  // name, size, version

std::optional<std::string> BytesOf(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const std::optional<uint64_t> byte = ParseHex(digits.substr(i, 2));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

// False: it is no object.
bool ReadObject(const Json& value, SideObject& object) {
  if (!value.is_array() || value.size() != kObjectParts || !value[0].is_string() ||
      !value[1].is_number_unsigned() || !value[2].is_string()) {
    return false;
  }
  std::optional<std::string> version = BytesOf(value[2].get_ref<const std::string&>());
  if (!version) return false;
  object = {value[0].get<std::string>(), value[1].get<uint64_t>(), *std::move(version)};
  return true;
}

}  // namespace

uint64_t SideInput::bytes() const {
  uint64_t sum = 0;
  for (const SideObject& object : objects) sum += object.size;
  return sum;
}

std::string SideInputMark(const std::string& name) { return "\x01" + name + "\x01"; }

Json SideInputsJson(const std::vector<SideInput>& side_inputs) {
  Json list = Json::array();
  for (const SideInput& side : side_inputs) {
    Json objects = Json::array();
    for (const SideObject& object : side.objects) {
      objects.push_back({object.name, object.size, Hex(object.version)});
    }
    list.push_back({{"name", side.name},
                    {"store", side.store},
                    {"url", side.url},
                    {"root", side.root},
                    {"oneObject", side.one_object},
                    {"objects", std::move(objects)}});
  }
  return list;
}

Result<std::vector<SideInput>> ParseSideInputs(const Json& list) {
  std::vector<SideInput> side_inputs;
  for (const Json& value : list) {
    Members in(value, "a side input");
    SideInput& side = side_inputs.emplace_back();
    side.name = in.Text("name");
    side.store = in.Text("store");
    side.url = in.Text("url");
    side.root = in.Text("root");
    side.one_object = in.Boolean("oneObject");
    for (const Json& object : in.Value("objects", Json::value_t::array)) {
      if (!ReadObject(object, side.objects.emplace_back()))
        in.Fail("\"objects\" holds another thing");
    }
    if (side.objects.empty()) in.Fail("\"objects\" is empty");
    if (!in.status().ok()) return in.status().error();
  }
  return side_inputs;
}

std::string SideUrlsWantedText(const SideUrlsWanted& wanted) {
  return Json{{"sideInput", wanted.side_input}, {"first", wanted.first}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Result<SideUrlsWanted> ParseSideUrlsWanted(std::string_view text) {
  const std::optional<Json> object = ParseObject(text);
  if (!object) return Error{Code::kInvalid, "no JSON object that names objects of a side input"};
  Members in(*object, "the call for URLs");
  SideUrlsWanted wanted{in.Text("sideInput"), in.Unsigned("first", kMostSideObjects)};
  if (!in.status().ok()) return in.status().error();
  return wanted;
}

std::string SideUrlsText(const SideUrls& urls) {
  return Json{{"seconds", urls.seconds}, {"urls", urls.urls}}.dump(-1, ' ', false,
                                                                   Json::error_handler_t::replace);
}

Result<SideUrls> ParseSideUrls(std::string_view text) {
  const Error wrong{Code::kInvalid, "the answer to a call for URLs is malformed"};
  const std::optional<Json> object = ParseObject(text);
  if (!object) return wrong;
  Members in(*object, "the answer to a call for URLs");
  SideUrls urls{in.U32("seconds"), {}};
  for (const Json& url : in.Value("urls", Json::value_t::array)) {
    if (!url.is_string()) return wrong;
    urls.urls.push_back(url.get<std::string>());
  }
  if (!in.status().ok()) return in.status().error();
  if (urls.urls.empty()) return wrong;
  return urls;
}

}  // namespace parallelrun::job
