// SPDX-License-Identifier: Apache-2.0
// NCCL as a table of functions, filled when GPUs first need it: machines with one GPU or none lack
// it. The parts of nccl.h that are used are declared here again, since that header includes CUDA's,
// which a build for CPUs lacks; tests/dist/nccl_header_test.cc compares them with the original.
#pragma once

#include <cstddef>
#include <string>

namespace syntra::nccl {

struct Comm;  // ncclComm

struct Id {  // ncclUniqueId
  char bytes[128];
};

// ncclConfig_t as NCCL 2.14 had it; newer ones see by `version` what is in it.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kInProgress = 7,
};
enum DataType : int { kInt8 = 0, kFloat32 = 7 };
enum Operation : int { kSum = 0 };

// Types of functions; never defined. Streams are cudaStream_t, counts are of elements.
struct Interface {
  static Result ncclGetVersion(int* version);
  static Result ncclGetUniqueId(Id* id);
  static Result ncclCommInitRankConfig(Comm** comm, int ranks, Id id, int rank, Config* config);
  static Result ncclCommFinalize(Comm* comm);
  static Result ncclCommDestroy(Comm* comm);
  static Result ncclCommAbort(Comm* comm);
  static Result ncclCommGetAsyncError(Comm* comm, Result* error);
  static Result ncclGroupStart();
  static Result ncclGroupEnd();
  static const char* ncclGetErrorString(Result result);
  static const char* ncclGetLastError(Comm* comm);
  static Result ncclAllReduce(const void* send, void* receive, size_t count, DataType type,
                              Operation operation, Comm* comm, void* stream);
  static Result ncclReduce(const void* send, void* receive, size_t count, DataType type,
                           Operation operation, int root, Comm* comm, void* stream);
  static Result ncclReduceScatter(const void* send, void* receive, size_t received, DataType type,
                                  Operation operation, Comm* comm, void* stream);
  static Result ncclAllGather(const void* send, void* receive, size_t sent, DataType type,
                              Comm* comm, void* stream);
  static Result ncclBroadcast(const void* send, void* receive, size_t count, DataType type,
                              int root, Comm* comm, void* stream);
};

#define SYNTRA_NCCL_FUNCTIONS(F) \
  F(ncclGetVersion)              \
  F(ncclGetUniqueId)             \
  F(ncclCommInitRankConfig)      \
  F(ncclCommFinalize)            \
  F(ncclCommDestroy)             \
  F(ncclCommAbort)               \
  F(ncclCommGetAsyncError)       \
  F(ncclGroupStart)              \
  F(ncclGroupEnd)                \
  F(ncclGetErrorString)          \
  F(ncclGetLastError)            \
  F(ncclAllReduce)               \
  F(ncclReduce)                  \
  F(ncclReduceScatter)           \
  F(ncclAllGather)               \
  F(ncclBroadcast)

struct Library {
#define SYNTRA_FUNCTION(name) decltype(&Interface::name) name;
  SYNTRA_NCCL_FUNCTIONS(SYNTRA_FUNCTION)
#undef SYNTRA_FUNCTION

  std::string Version() const;  // "2.28.9"
};

// Throws Error(kResources), saying what to do, if libnccl.so.2 is not there or too old.
const Library& Load();

}  // namespace syntra::nccl
