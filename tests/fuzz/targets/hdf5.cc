// SPDX-License-Identifier: Apache-2.0
// HDF5 files of others. HDF5 reads them in a process of its own and may crash there; here that is a
// refusal, and what it answers lies within the file.
#include "checkpoint/hdf5_contents.h"

#include <cstring>

#include "checkpoint/shard.h"
#include "fuzz/target.h"
#include "tests/checkpoint/forged.h"

namespace syntra {
namespace {

// With the checksums of the metadata put right, as who means harm would.
std::string Repaired(std::string_view input) {
  static const std::vector<Summed> blocks = [] { return FindSummed(fuzz_hdf5.seeds()[0]); }();
  std::string file(input);
  for (const Summed& block : blocks) {
    if (block.begin + block.size + 4 > file.size()) continue;
    const uint32_t sum = Lookup3(std::string_view(file).substr(block.begin, block.size));
    std::memcpy(file.data() + block.begin + block.size, &sum, sizeof sum);
  }
  return file;
}

void Run(std::string_view input) {
  const std::string file = Repaired(input);
  const Hdf5Contents contents = ContentsOfHdf5(std::as_bytes(std::span(file)), "file.h5");
  for (const auto& [name, entry] : contents.tensors) {
    SYNTRA_CHECK(entry.offset >= 0 &&
                 entry.offset <= static_cast<int64_t>(file.size() - entry.type.bytes()));
  }
}

std::vector<std::string> Seeds() {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const uint16_t halves[2] = {0x3f80, 0x4000};
  TensorRecord records[] = {
      {"a/b/value", {DType::kF32, {2, 3}}, std::as_bytes(std::span(values)).data()},
      {"half", {DType::kBF16, {2}}, std::as_bytes(std::span(halves)).data()},
      {"step", {DType::kI32, {}}, std::as_bytes(std::span(values)).data()}};
  TensorRecord* const list[] = {&records[0], &records[1], &records[2]};
  const ShardFrame frame = MakeShardFrame(list);
  std::string file(frame.bytes, '\0');
  for (const auto& [offset, content] : frame.pieces) {
    std::memcpy(&file[offset], content.data(), content.size());
  }
  for (size_t i = 0; i < std::size(records); ++i) {
    std::memcpy(&file[frame.offsets[i]], records[i].data, records[i].type.bytes());
  }
  return {file};
}

}  // namespace

// A shortage of memory is HDF5's answer to sizes that are made up.
const Target fuzz_hdf5 = {.name = "hdf5",
                          .refusals = {ExitCode::kCheckpoint, ExitCode::kResources},
                          .run = Run,
                          .seeds = Seeds,
                          .tokens = {"OHDR", "OCHK", "FRHP", "BTHD", "\xff\xff\xff\xff"},
                          .mutations = 200};

}  // namespace syntra
