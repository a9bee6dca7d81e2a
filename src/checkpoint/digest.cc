// XXH3-128 over memory and files.
#include "checkpoint/digest.h"

#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "core/buffer.h"

namespace syntra {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

void Rewind(const File& file) {
  if (lseek(file.descriptor(), 0, SEEK_SET) < 0) {
    const int error_number = errno;
    Fail(ExitCode::kResources, "cannot seek in {}: {}", file.path().string(),
         SystemErrorText(error_number));
  }
}

}  // namespace

FileDigest DigestOfFile(File& file) {
  DigestStream stream;
  const Buffer block(kBlockBytes, "checkpoint verification");
  FileDigest result{};
  Rewind(file);
  while (const size_t count = file.Read({block.data(), block.size()})) {
    stream.Add({block.data(), count});
    result.bytes += static_cast<int64_t>(count);
  }
  result.digest = ToHex(stream.Finish());
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
