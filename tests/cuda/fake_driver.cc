// SPDX-License-Identifier: Apache-2.0
// A fake libcuda.so.1 of a driver that does not work. FAKE_DRIVER_VERSION is the CUDA version that
// it supports (1000 major + 10 minor), FAKE_DRIVER_INIT the result of cuInit. It has only the
// functions that the runtime calls before it gives up.
#include <cstdlib>
#include <string_view>

namespace {

constexpr int kNotSupported = 801;

int Setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : 0;
}

int NotSupported() { return kNotSupported; }

}  // namespace

extern "C" {

int cuInit(unsigned) { return Setting("FAKE_DRIVER_INIT"); }

int cuDriverGetVersion(int* version) {
  *version = Setting("FAKE_DRIVER_VERSION");
  return 0;
}

int cuGetExportTable(const void**, const void*) { return kNotSupported; }

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, int* status) {
  const std::string_view wanted = name;
  *function = reinterpret_cast<void*>(NotSupported);
  if (wanted == "cuInit") *function = reinterpret_cast<void*>(cuInit);
  if (wanted == "cuDriverGetVersion") *function = reinterpret_cast<void*>(cuDriverGetVersion);
  if (wanted == "cuGetExportTable") *function = reinterpret_cast<void*>(cuGetExportTable);
  if (wanted == "cuGetProcAddress") *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  if (status) *status = 0;
  return 0;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
