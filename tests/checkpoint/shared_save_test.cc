// SPDX-License-Identifier: Apache-2.0
// A checkpoint that several processes write together is the one that a single process writes; where
// one of them did not write what it says, or left something out, there is none.
#include "checkpoint/shared_save.h"

#include <gmock/gmock.h>

#include "checkpoint/layout.h"
#include "tests/checkpoint/sample.h"

namespace syntra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const SaveOptions kOptions{.shard_bytes = 600};

class SharedSaves : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    root_ = scratch_ / "shared";
  }

  // As the processes tell each other of it.
  std::vector<FilePart> Write(const SharedSave& save, const Sample& sample) const {
    std::string written;
    for (const int process : {2, 0, 1}) {
      const Manifest outline = ParseManifest(ToText(frame_.outline));
      written += ToText(WriteParts(save.directory(), outline, sample.Part(process, 3)));
    }
    return ParseFileParts(written);
  }

  // That the checkpoint is refused, and leaves the older one alone, if this is done to what was
  // written.
  void ExpectRefused(const std::function<void(const Path&, std::vector<FilePart>*)>& change) {
    const Sample sample(20);
    {
      SharedSave save(root_, sample.info, frame_, kOptions);
      std::vector<FilePart> written = Write(save, sample);
      change(save.directory(), &written);
      EXPECT_THAT(ErrorOf([&] { save.Commit(written); }), HasSubstr("is not what was written"));
    }
    EXPECT_THAT(DirectoryNames(root_), ElementsAre(StepName(10)));
  }

  Path root_;
  const CheckpointFrame frame_ = MakeFrame(Sample(0).Records(), kOptions.shard_bytes);
};

TEST_F(SharedSaves, AreThoseOfOneProcess) {
  const std::string model = "a tokenizer";
  const FileRecord file{"tokenizer.model", model};
  for (const int64_t step : {10, 20, 20, 30}) {  // one frame for all; one step twice
    const Sample sample(step);
    SharedSave save(root_, sample.info, frame_, kOptions, {file});
    save.Commit(Write(save, sample));
    SaveCheckpoint(scratch_ / "alone", sample.info, sample.Records(), kOptions, {&file, 1});
  }
  EXPECT_THAT(DirectoryNames(root_), ElementsAre(StepName(20), StepName(30)));
  for (const int64_t step : {20, 30}) {
    const Path shared = root_ / StepName(step), alone = scratch_ / "alone" / StepName(step);
    ASSERT_EQ(DirectoryNames(shared), DirectoryNames(alone));
    for (const std::string& name : DirectoryNames(shared)) {
      EXPECT_EQ(ReadFile(shared / name), ReadFile(alone / name)) << name;
    }
    Checkpoint checkpoint(shared);
    EXPECT_TRUE(Sample(step).Matches(checkpoint));
  }
}

TEST_F(SharedSaves, HoldWhatTheirWritersSay) {
  Sample(10).Save(root_);
  ExpectRefused([](const Path&, std::vector<FilePart>* written) { written->pop_back(); });
  ExpectRefused(
      [](const Path&, std::vector<FilePart>* written) { written->push_back(written->front()); });
  ExpectRefused([](const Path& directory, std::vector<FilePart>* written) {
    const Path path = directory / written->front().file;
    std::string bytes = ReadFile(path);
    bytes[written->front().offset] ^= 1;
    OverwriteFile(path, bytes);
  });
  ExpectRefused([](const Path& directory, std::vector<FilePart>* written) {
    std::filesystem::resize_file(directory / written->front().file, 100);
  });
}

TEST_F(SharedSaves, AreRemovedUnlessTheyAreCommitted) {
  Sample(10).Save(root_);
  {
    const SharedSave save(root_, Sample(20).info, frame_, kOptions);
    EXPECT_EQ(DirectoryNames(root_).size(), 2u);
  }
  EXPECT_THAT(DirectoryNames(root_), ElementsAre(StepName(10)));
}

}  // namespace
}  // namespace syntra
