// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls, for the one target that the program is linked with. `fuzz_NAME --write
// DIRECTORY` writes the target's seeds and reproducers to DIRECTORY/seeds, its dictionary to
// DIRECTORY/dictionary (if it has one) and the length of its longest input to DIRECTORY/longest.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/log.h"
#include "target.h"

namespace syntra {

// Weak: all but one are missing.
#define SYNTRA_FUZZ_TARGET(name) extern const Target fuzz_##name __attribute__((weak));
#include "targets.def"
#undef SYNTRA_FUZZ_TARGET

namespace {

const Target& Linked() {
  const Target* const targets[] = {
#define SYNTRA_FUZZ_TARGET(name) &fuzz_##name,
#include "targets.def"
#undef SYNTRA_FUZZ_TARGET
  };
  return **std::ranges::find_if(targets, [](const Target* target) { return target != nullptr; });
}

// AFL's format, which libFuzzer reads: every byte as \xNN.
std::string DictionaryLine(std::string_view token) {
  std::string line = "\"";
  for (const char c : token) line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return line + "\"\n";
}

void WriteNew(const Path& path, std::string_view content) { File::CreateNew(path).Write(content); }

void WriteInputs(const Path& directory) {
  CreateDirectories(directory / "seeds");
  int number = 0;
  const auto add = [&](const std::string& input) {
    WriteNew(directory / "seeds" / fmt::format("{:04}", number++), input);
  };
  for (const std::string& seed : Linked().seeds()) add(seed);
  for (const Path& path : ReproducersOf(Linked())) add(ReadWholeFile(path));
  std::string dictionary;
  for (const std::string& token : Linked().tokens) dictionary += DictionaryLine(token);
  if (!dictionary.empty()) WriteNew(directory / "dictionary", dictionary);
  WriteNew(directory / "longest", std::to_string(Linked().longest));
}

}  // namespace
}  // namespace syntra

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  using namespace syntra;
  Log().set_level(spdlog::level::off);
  if (*count != 3 || std::string_view((*arguments)[1]) != "--write") return 0;
  try {
    WriteInputs((*arguments)[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::exit(1);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  syntra::Accepts(syntra::Linked(), {reinterpret_cast<const char*>(data), size});
  return 0;
}
