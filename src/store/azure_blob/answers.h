// The answers of Azure Blob Storage, and of Entra ID, which gives tokens for it, taken apart. Pure,
// and within bounds: a server may send what it likes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "store/objects/refusal.h"

namespace parallelrun::store::azure_blob {

struct ListedBlob {
  std::string name;
  uint64_t size = 0;
  std::string etag;  // without its quotes (PlainEtag)
  // It stands for a folder, and is none of its contents: the folders of an account with a
  // hierarchical namespace are listed so, and tools lay such blobs into others.
  bool is_folder = false;
};

struct ListPage {
  std::vector<ListedBlob> blobs;
  std::vector<std::string> folders;  // with a delimiter: "a/" in place of all that is below
  std::string marker;                // of the next page; empty: this is the last
};

// kCorrupt for what is not the answer of List Blobs.
Result<ListPage> ParseListPage(const std::string& body);

// Nothing where the body is not an error's.
std::optional<ErrorBody> ParseErrorBody(const std::string& body);

struct Token {
  std::string text;
  std::optional<Duration> life;
};

// The JSON that Entra ID answers when it gives a token. kCorrupt for anything else.
Result<Token> ParseToken(const std::string& body);

// The same when it gives none: what it says of that, or "".
std::string ParseTokenError(const std::string& body);

}  // namespace parallelrun::store::azure_blob
