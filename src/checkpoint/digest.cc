// XXH3-128 over memory and files.
#include "checkpoint/digest.h"

#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "core/buffer.h"

namespace syntra {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

std::string Hexadecimal(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (const unsigned char byte : canonical.digest) text += fmt::format("{:02x}", byte);
  return text;
}

void Rewind(const File& file) {
  if (lseek(file.descriptor(), 0, SEEK_SET) < 0) {
    const int error_number = errno;
    Fail(ExitCode::kResources, "cannot seek in {}: {}", file.path().string(),
         SystemErrorText(error_number));
  }
}

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

std::string DigestOf(std::span<const std::byte> bytes) {
  return Hexadecimal(XXH3_128bits(bytes.data(), bytes.size()));
}

FileDigest DigestOfFile(File& file) {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  SYNTRA_CHECK(state && XXH3_128bits_reset(state.get()) == XXH_OK);
  const Buffer block(kBlockBytes, "checkpoint verification");
  FileDigest result{};
  Rewind(file);
  while (const size_t count = file.Read({block.data(), block.size()})) {
    SYNTRA_CHECK(XXH3_128bits_update(state.get(), block.data(), count) == XXH_OK);
    result.bytes += static_cast<int64_t>(count);
  }
  result.digest = Hexadecimal(XXH3_128bits_digest(state.get()));
  return result;
}

bool ReadFromStart(File& file, std::span<std::byte> bytes) {
  Rewind(file);
  while (!bytes.empty()) {
    const size_t count = file.Read(bytes);
    if (count == 0) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

}  // namespace syntra
