// SPDX-License-Identifier: Apache-2.0
// The messages of a program with CUDA when the driver does not work.
#include "base/error.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Driver : public TinyRun {
 protected:
  Outcome TrainOn(const std::string& device, int version, int init) const {
    return Run(Pretrain("run", {"train.device=" + device, "train.steps=4"}),
               {.environment = {"LD_LIBRARY_PATH=" SYNTRA_FAKE_DRIVER_FOLDER,
                                fmt::format("FAKE_DRIVER_VERSION={}", version),
                                fmt::format("FAKE_DRIVER_INIT={}", init)}});
  }
  void ExpectRefusal(const Outcome& outcome, const std::string& reason) const {
    EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::kResources));
    EXPECT_TRUE(outcome.Says("no GPU to compute on: " + reason)) << outcome.err;
    EXPECT_TRUE(outcome.Says("set train.device: CPU")) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(Directory("run") / "checkpoints"));
  }
};

constexpr int kNow = 99000;  // newer than any CUDA runtime

TEST_F(Driver, TooOld) {
  ExpectRefusal(TrainOn("CUDA", 11040, 0),
                "the NVIDIA driver is too old: it supports CUDA 11.4, this build needs ");
}

TEST_F(Driver, ShowsNoGpu) {
  constexpr int kNoDevice = 100;
  ExpectRefusal(TrainOn("CUDA", kNow, kNoDevice), "the NVIDIA driver shows no GPU");
}

TEST_F(Driver, DoesNotStart) {
  constexpr int kUnknown = 999;
  ExpectRefusal(TrainOn("CUDA", kNow, kUnknown), "CUDA cannot start: ");
}

TEST_F(Driver, IsNotNeededForTheCpu) { EXPECT_EQ(TrainOn("CPU", 11040, 0).code, 0); }

}  // namespace
}  // namespace syntra
