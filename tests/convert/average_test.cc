// SPDX-License-Identifier: Apache-2.0
// The mean of a run's checkpoints as one model.
#include "convert/average.h"

#include <gmock/gmock.h>

#include <map>

#include "checkpoint/layout.h"
#include "convert/convert.h"
#include "convert/sample_checkpoint.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Averaging : public ScratchTest {};

TEST_F(Averaging, TheMeanOfCheckpointsIsThatOfTheNewest) {
  const Path run = scratch_ / "run", out = scratch_ / "mean";
  const ModelConfig model = SampleModel("");
  const float sharpness[] = {5, 1, 1.7f, 0.3f};
  for (int64_t step = 0; step < 4; ++step) SaveSample(run, model, sharpness[step], step);
  const Conversion done = Convert(run, out, kSafetensorsFormat, {}, {}, 3);
  EXPECT_THAT(done.source, HasSubstr("the mean of 3 checkpoints of " + run.string()));
  EXPECT_THAT(done.source, HasSubstr("(steps 3, 2, 1)"));

  const StoredModel mean = kSafetensorsFormat.open(out, {});
  std::map<std::string, std::vector<long double>> sums;
  for (int64_t step = 1; step < 4; ++step) {
    const StoredModel one = kSyntraFormat.open(run / kCheckpointsFolder / StepName(step), {});
    for (const auto& [name, type] : one.parameters->tensors()) {
      std::vector<float> values(type.shape.size());
      one.parameters->Read(name, values);
      sums[name].resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sums[name][i] += values[i];
    }
  }
  ASSERT_EQ(mean.parameters->tensors().size(), sums.size());
  for (const auto& [name, sum] : sums) {
    std::vector<float> values(sum.size());
    mean.parameters->Read(name, values);
    for (size_t i = 0; i < sum.size(); ++i) {
      ASSERT_EQ(values[i], static_cast<float>(sum[i] / 3)) << name << " " << i;
    }
  }
}

// The mean of random vectors that were redrawn in between would be shorter ones.
TEST_F(Averaging, WhatIsNotTrainedIsTheNewests) {
  const Path run = scratch_ / "run", out = scratch_ / "mean";
  const ModelConfig model = SampleModel(TrialMixers().at("performer"));
  SaveSample(run, model, 5, 0);
  SaveSample(run, model, 1, 1);
  Convert(run, out, kSafetensorsFormat, {}, {}, 2);
  const StoredModel mean = kSafetensorsFormat.open(out, {});
  const StoredModel newest = kSyntraFormat.open(run / kCheckpointsFolder / StepName(1), {});
  const auto values = [](const StoredModel& of, const Parameter& parameter) {
    std::vector<float> read(parameter.shape.size());
    of.parameters->Read(parameter.name, read);
    return read;
  };
  const ParameterStore parameters = DeclareParameters(Model(model));
  int fixed = 0;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) continue;
    EXPECT_EQ(values(mean, parameter), values(newest, parameter)) << parameter.name;
    ++fixed;
  }
  EXPECT_GT(fixed, 0);
}

TEST_F(Averaging, AMeanNeedsThatManyEqualModels) {
  const auto complaint = [&](const Path& input, int average, ExitCode code) {
    return ErrorOf([&] { Convert(input, scratch_ / "out", kSyntraFormat, {}, {}, average); }, code);
  };
  const Path run = scratch_ / "run";
  SaveSample(run, SampleModel(""));
  EXPECT_THAT(
      complaint(run, 2, ExitCode::kConfig),
      AllOf(HasSubstr("holds 1 checkpoint, fewer than the 2"), HasSubstr("checkpoint.keep")));
  EXPECT_THAT(complaint(Golden("t5_v1_0"), 2, ExitCode::kConfig), HasSubstr("0 checkpoints"));
  SaveSample(run, SampleModel(TrialMixers().at("random")), 1, 8);
  EXPECT_THAT(complaint(run, 2, ExitCode::kCheckpoint), HasSubstr("their models"));
  SaveSample(run, SampleModel(""), 1, 8, Golden("..") / "checkpoint/version_1/tiny.model");
  EXPECT_THAT(complaint(run, 2, ExitCode::kCheckpoint), HasSubstr("or their tokenizers differ"));
  SaveSample(run, SampleModel(""), 1, 8);
  std::filesystem::resize_file(run / kCheckpointsFolder / StepName(7) / kManifestName, 100);
  EXPECT_THAT(complaint(run, 2, ExitCode::kCheckpoint), HasSubstr(StepName(7)));
  const Path link = run / kCheckpointsFolder / StepName(9);
  std::filesystem::create_directory_symlink(run / kCheckpointsFolder / StepName(8), link);
  EXPECT_THAT(complaint(run, 2, ExitCode::kCheckpoint),
              HasSubstr(link.string() + " is not a directory"));
  EXPECT_FALSE(Exists(scratch_ / "out"));
}

}  // namespace
}  // namespace syntra
