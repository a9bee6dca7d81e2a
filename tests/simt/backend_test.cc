// SPDX-License-Identifier: Apache-2.0
// What the backend knows of GPUs by name, and what it asks of drivers and libraries.
#include "kernels/cuda/backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace syntra {
namespace {

TEST(PeakFlops, AreThoseOfTheProduct) {
  const auto expect = [](const char* gpu, double bf16, double f32) {
    EXPECT_DOUBLE_EQ(PeakFlopsOf(gpu, DType::kBF16), 1e12 * bf16) << gpu;
    EXPECT_DOUBLE_EQ(PeakFlopsOf(gpu, DType::kF32), 1e12 * f32) << gpu;
  };
  expect("NVIDIA H100 80GB HBM3 (GPU 0)", 989.4, 67);
  expect("NVIDIA H100 PCIe (GPU 1)", 756, 51);
  expect("NVIDIA H200 (GPU 0)", 989.4, 67);
  expect("NVIDIA H200 NVL (GPU 0)", 835.5, 60);
  expect("NVIDIA GH200 480GB (GPU 0)", 989.4, 67);
  expect("NVIDIA GB200 (GPU 0)", 2500, 80);
  expect("NVIDIA A100-SXM4-80GB (GPU 0)", 312, 19.5);
  expect("NVIDIA A10 (GPU 0)", 125, 31.2);
  expect("NVIDIA A10G (GPU 0)", 70, 35);
  expect("NVIDIA L4 (GPU 0)", 121, 30.3);
  expect("NVIDIA L40", 181, 90.5);
  expect("NVIDIA L40S", 362, 91.6);
  expect("A40", 149.7, 37.4);
}

TEST(PeakFlops, AreUnknownOfOtherProducts) {
  for (const char* gpu : {"NVIDIA RTX A4000 (GPU 0)", "NVIDIA A10M (GPU 0)", "NVIDIA A100X (GPU 0)",
                          "NVIDIA RTX A1000 (GPU 0)", "Quadro XA40 (GPU 0)", "NVIDIA L400", ""}) {
    EXPECT_TRUE(std::isnan(PeakFlopsOf(gpu, DType::kBF16))) << gpu;
  }
}

TEST(Driver, NeedsLargeKernelParameters) {
  EXPECT_THROW(RequireDriver("a GPU", 12000), Error);
  EXPECT_NO_THROW(RequireDriver("a GPU", 12010));
  EXPECT_NO_THROW(RequireDriver("a GPU", 13000));
}

}  // namespace
}  // namespace syntra
