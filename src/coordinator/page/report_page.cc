#include "coordinator/page/report_page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <spdlog/fmt/fmt.h>

#include <array>
#include <nlohmann/json.hpp>

#include "coordinator/page/assets.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

}  // namespace

std::string JsonForHtml(const json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', true, json::error_handler_t::replace)) {
    switch (c) {
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += c;
    }
  }
  return text;
}

std::string HashSource(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> base64{};
  const int size = EVP_EncodeBlock(base64.data(), digest.data(), SHA256_DIGEST_LENGTH);
  return fmt::format("'sha256-{}'", std::string_view(reinterpret_cast<const char*>(base64.data()),
                                                     static_cast<size_t>(size)));
}

std::string ReportPage(const json& data) {
  return fmt::format(
      "<!DOCTYPE html>\n"
      "<html lang=\"en\">\n"
      "<head>\n"
      "<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
      "style-src {}; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>ParallelRun</title>\n"
      "<style>{}</style>\n"
      "</head>\n"
      "<body>\n"
      "<main id=\"page\"></main>\n"
      "<noscript>This report needs JavaScript; job_result.txt beside it is plain text.</noscript>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script>{}</script>\n"
      "</body>\n"
      "</html>\n",
      HashSource(kPageScript), HashSource(kPageStyle), kPageStyle, JsonForHtml(data), kPageScript);
}

}  // namespace parallelrun::coordinator
