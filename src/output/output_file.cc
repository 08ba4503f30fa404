#include "output/output_file.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>

#include <vector>

namespace parallelrun::output {
namespace {

constexpr size_t kReadBlock = size_t{1} << 20;

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* held = EVP_MD_CTX_new();
  Context() = default;
  ~Context() { EVP_MD_CTX_free(held); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->held, EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  EVP_DigestUpdate(context_->held, bytes.data(), bytes.size());
}

Sha256::Digest Sha256::Finish() {
  Digest digest{};
  EVP_DigestFinal_ex(context_->held, digest.data(), nullptr);
  EVP_DigestInit_ex(context_->held, nullptr, nullptr);  // the same function again
  return digest;
}

Result<std::string> DamageOf(uint64_t size, const ReadBytes& read, const job::Published& published,
                             const std::function<void()>& step) {
  if (size != published.bytes) {
    return fmt::format("has {} bytes, {} were published", size, published.bytes);
  }
  Sha256 digest;
  std::vector<char> block(kReadBlock);
  for (uint64_t at = 0; at < size;) {
    const Result<size_t> got = read(at, block);
    if (!got.ok()) return got.error();
    if (*got == 0) return std::string("changes while it is read");
    digest.Add({block.data(), *got});
    at += *got;
    step();
  }
  if (digest.Finish() == published.sha256) return std::string();
  return std::string("has other bytes than were published");
}

Result<std::string> DamageOf(const Files& files, const std::string& path,
                             const job::Published& published, const std::function<void()>& step) {
  const Result<std::unique_ptr<File>> file = files.OpenRead(path);
  if (!file.ok() && file.error().code == Code::kNotFound) return std::string("is not there");
  if (!file.ok()) return file.error();
  const Result<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.error();
  const auto read = [&](uint64_t offset, std::span<char> to) {
    return (*file)->ReadInto(offset, to);
  };
  return DamageOf(*size, read, published, step);
}

}  // namespace parallelrun::output
