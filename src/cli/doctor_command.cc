// SPDX-License-Identifier: Apache-2.0
// syntra doctor [--json]: describes this machine and its libraries.
#include <dlfcn.h>
#include <dnnl.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <hdf5.h>
#include <hwloc.h>
#include <mpi.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>

#include "base/control_group.h"
#include "base/error.h"
#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/rank_cores.h"
#include "core/thread.h"
#include "data/sentence_piece.h"
#include "dist/nccl_library.h"
#include "kernels/cpu/peak.h"
#include "kernels/cuda.h"

namespace syntra {
namespace {

struct Fact {
  std::string section;  // "cpu", "memory", ...
  std::string name;
  std::string value;
};
struct MachineReport {
  std::vector<Fact> facts;
  std::vector<std::string> warnings;  // probable causes of trouble, and what to do about them
};

// The value after "name :" in the first line of that name.
std::string ValueOf(const std::string& text, std::string_view name) {
  for (const std::string& line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (StripSpace(std::string_view(line).substr(0, colon)) == name) {
      return std::string(StripSpace(std::string_view(line).substr(colon + 1)));
    }
  }
  return "";
}

// The driver may be missing. It stays loaded: unloading such libraries is not safe.
std::string CudaDriverVersion() {
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return "not found";
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(handle, "cuDriverGetVersion"));
  int version = 0;
  return get && get(&version) == 0 ? CudaVersionText(version) : "found";
}

// The version of the library that ranks would load. If there is none: why, if it `is_needed`.
std::string NcclVersion(bool is_needed) {
  try {
    return nccl::Load().Version();
  } catch (const Error& error) {
    return is_needed ? error.what() : "not found";
  }
}

// Never fails: what cannot be found out is left out or said to be unknown. Starts neither MPI nor
// CUDA.
class Examination {
 public:
  MachineReport Run() {
    Program();
    Cpu();
    Topology();
    Memory();
    Libraries();
    Accelerators();
    Limits();
    System();
    Disk();
    return std::move(report_);
  }

 private:
  void Add(const char* section, const char* name, const std::string& value) {
    report_.facts.push_back({section, name, value.empty() ? "unknown" : value});
  }
  template <typename... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) {
    report_.warnings.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void Program() {
    Add("program", "version", Version());
    Add("program", "compiler", __VERSION__);
    Add("program", "build type", SYNTRA_BUILD_TYPE);
  }

  void Cpu() {
    const std::string info = KernelFile("/proc/cpuinfo");
    Add("cpu", "model", ValueOf(info, "model name"));
    const std::string all = " " + ValueOf(info, "flags") + " ";
    std::vector<std::string> found;
    for (const char* flag : {"avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni",
                             "avx512_bf16", "amx_tile", "amx_bf16"}) {
      if (all.find(fmt::format(" {} ", flag)) != std::string::npos) found.push_back(flag);
    }
    Add("cpu", "flags", found.empty() ? "none of interest" : Join(found, " "));
    const int allowed = ProcessorCount();
    Add("cpu", "allowed cpus", fmt::format("{} of {}", allowed, sysconf(_SC_NPROCESSORS_ONLN)));
    Add("cpu", "threads", fmt::format("{}", ThreadCount()));
    if (const char* threads = std::getenv("OMP_NUM_THREADS")) {
      Add("cpu", "OMP_NUM_THREADS", threads);
    }
    if (ThreadCount() > allowed) {
      Warn("{} threads share {} allowed cpus; set OMP_NUM_THREADS={} or train.threads",
           ThreadCount(), allowed, allowed);
    }
    if (const auto quota = ControlGroupCpus()) {
      Add("cpu", "control group quota", fmt::format("{:.1f} cpus", *quota));
      if (ThreadCount() > 1 && *quota < ThreadCount()) {
        Warn("{} threads share a quota of {:.1f} cpus; set train.threads", ThreadCount(), *quota);
      }
    }
    Peak();
  }

  // The peak of no more threads than cpus: OMP_NUM_THREADS may ask for more than can be made.
  void Peak() {
    const int threads = ThreadCount();
    SetThreadCount(std::min(threads, ProcessorCount()));
    for (const auto& [name, type] :
         {std::pair{"peak fp32", DType::kF32}, std::pair{"peak bf16", DType::kBF16}}) {
      const double flops = MeasurePeakFlops(type, kBriefPeakSeconds);
      Add("cpu", name, std::isnan(flops) ? "" : HumanFlops(flops));
    }
    SetThreadCount(threads);
  }

  void Topology() {
    const auto topology = ThisMachine();
    if (!topology) return;
    const auto count = [&](hwloc_obj_type_t type) {
      return hwloc_get_nbobjs_by_type(topology.get(), type);
    };
    Add("topology", "packages", fmt::format("{}", count(HWLOC_OBJ_PACKAGE)));
    Add("topology", "NUMA nodes", fmt::format("{}", count(HWLOC_OBJ_NUMANODE)));
    Add("topology", "cores", fmt::format("{}", count(HWLOC_OBJ_CORE)));
    Add("topology", "hardware threads", fmt::format("{}", count(HWLOC_OBJ_PU)));
    for (const auto& [name, type] :
         {std::pair{"L2", HWLOC_OBJ_L2CACHE}, std::pair{"L3", HWLOC_OBJ_L3CACHE}}) {
      if (count(type) <= 0) continue;
      const auto size = hwloc_get_obj_by_type(topology.get(), type, 0)->attr->cache.size;
      Add("topology", name,
          fmt::format("{} x {}", count(type), HumanBytes(static_cast<double>(size))));
    }
    CoresOfRanks(*topology);
  }

  // The cores of one rank for each GPU or, without GPUs, of two ranks.
  void CoresOfRanks(hwloc_topology& topology) {
    const GpuReport gpus = FindGpus();
    std::vector<RankPlace> places;
    for (const std::string& gpu : gpus.count > 0 ? gpus.addresses : std::vector<std::string>(2)) {
      places.push_back(ThisPlace(gpu));
    }
    std::vector<std::string> all;
    for (size_t rank = 0; rank < places.size(); ++rank) {
      const RankCores cores = CoresOf(topology, places, rank);
      all.push_back(fmt::format("{} (NUMA node {}{})", cores.cpus, cores.nodes,
                                cores.are_near_gpu ? ", near its GPU" : ""));
    }
    Add("topology", ("cpus of " + Counted(std::ssize(all), "rank")).c_str(), Join(all, "; "));
  }

  void Memory() {
    const std::string info = KernelFile("/proc/meminfo");
    for (const auto& [name, key] :
         {std::pair{"total", "MemTotal"}, std::pair{"available", "MemAvailable"},
          std::pair{"swap", "SwapTotal"}}) {
      int64_t kibibytes = 0;
      const std::string value = Split(ValueOf(info, key), ' ')[0];
      if (ParseInt64(value, &kibibytes)) {
        Add("memory", name, HumanBytes(static_cast<double>(kibibytes) * 1024));
      }
    }
    if (const auto limit = ControlGroupMemory()) {
      Add("memory", "control group limit", HumanBytes(static_cast<double>(*limit)));
    }
    Add("memory", "transparent huge pages",
        std::string(StripSpace(KernelFile("/sys/kernel/mm/transparent_hugepage/enabled"))));
  }

  void Libraries() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    // Allowed before MPI_Init.
    if (MPI_Get_library_version(text, &length) == MPI_SUCCESS) {
      Add("libraries", "MPI", Split(Split(std::string(text, length), '\n')[0], ',')[0]);
    }
    unsigned major = 0, minor = 0, release = 0;
    if (H5get_libversion(&major, &minor, &release) >= 0) {
      Add("libraries", "HDF5", fmt::format("{}.{}.{}", major, minor, release));
    }
    const dnnl_version_t* dnnl = dnnl_version();
    Add("libraries", "oneDNN", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch));
    Add("libraries", "SentencePiece", std::string(SentencePieceVersion()));
    Add("libraries", "protobuf",
        google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
    const unsigned hwloc = hwloc_get_api_version();
    Add("libraries", "hwloc", fmt::format("{}.{}", hwloc >> 16, hwloc >> 8 & 0xFF));
  }

  void Accelerators() {
    Add("accelerators", "this build found", SYNTRA_CUDA_SUMMARY);
    const GpuReport found = FindGpus();
    for (size_t i = 0; i < found.facts.size(); ++i) {
      Add("accelerators", fmt::format("GPU {}", i).c_str(), found.facts[i]);
    }
    if (found.count == 0) Add("accelerators", "GPU", found.problem);
    if (found.broken) Warn("{}", found.problem);
    if (!found.versions.empty()) Add("accelerators", "CUDA", found.versions);
    Add("accelerators", "CUDA driver (libcuda.so.1)", CudaDriverVersion());
    if (found.count > 0) Add("accelerators", "cuBLASLt", CublasLtVersion());
    Add("accelerators", "NCCL (libnccl.so.2)", NcclVersion(found.count > 0));
    const std::string driver = KernelFile("/proc/driver/nvidia/version");
    if (!driver.empty()) Add("accelerators", "kernel module", Split(driver, '\n')[0]);
  }

  void Limits() {
    struct Limit {
      const char* name;
      int resource;
      bool bytes;
    };
    const Limit limits[] = {
        {"open files", RLIMIT_NOFILE, false}, {"locked memory", RLIMIT_MEMLOCK, true},
        {"stack", RLIMIT_STACK, true},        {"address space", RLIMIT_AS, true},
        {"core file", RLIMIT_CORE, true},     {"file size", RLIMIT_FSIZE, true}};
    for (const Limit& limit : limits) {
      rlimit value;
      if (getrlimit(static_cast<__rlimit_resource>(limit.resource), &value) != 0) continue;
      const bool unlimited = value.rlim_cur == RLIM_INFINITY;
      Add("limits", limit.name,
          unlimited     ? "unlimited"
          : limit.bytes ? HumanBytes(static_cast<double>(value.rlim_cur))
                        : fmt::format("{}", value.rlim_cur));
      if (limit.resource == RLIMIT_NOFILE && value.rlim_cur < 1024) {
        Warn("only {} open files are allowed; raise it with ulimit -n", value.rlim_cur);
      }
      if (limit.resource == RLIMIT_FSIZE && !unlimited) {
        Warn("files may not grow beyond {}; checkpoints are larger: ulimit -f unlimited",
             HumanBytes(static_cast<double>(value.rlim_cur)));
      }
    }
  }

  void System() {
    utsname name;
    if (uname(&name) == 0) {
      Add("system", "kernel", fmt::format("{} {} {}", name.sysname, name.release, name.machine));
    }
    const std::string release = KernelFile("/etc/os-release");
    for (const std::string& line : Split(release, '\n')) {
      if (!line.starts_with("PRETTY_NAME=")) continue;
      std::string value = line.substr(line.find('=') + 1);
      std::erase(value, '"');
      Add("system", "distribution", value);
    }
    for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG", "TZ"}) {
      if (const char* value = std::getenv(variable)) Add("system", variable, value);
    }
    Add("system", "locale in use", std::setlocale(LC_ALL, nullptr));
  }

  void Disk() {
    constexpr int64_t kFewFiles = 1000;
    for (const char* directory : {".", "/tmp"}) {
      try {
        const FreeDisk free = FreeDiskAt(directory);
        Add("disk", directory, HumanBytes(static_cast<double>(free.bytes)) + " free");
        if (free.bytes < int64_t{1} << 30) Warn("less than 1 GiB is free in {}", directory);
        if (free.files.value_or(kFewFiles) < kFewFiles) {
          Warn("only {} more files can be created in {} (df -i)", *free.files, directory);
        }
      } catch (const Error& error) {
        Add("disk", directory, error.what());
      }
    }
    constexpr auto kNfs = 0x6969;  // NFS_SUPER_MAGIC
    struct statfs status;
    if (statfs(".", &status) == 0 && status.f_type == kNfs) {
      Add("disk", "file system of .", "NFS");
    }
  }

  MachineReport report_;
};

void PrintText(const MachineReport& report) {
  std::string section;
  for (const Fact& fact : report.facts) {
    if (fact.section != section) fmt::print("{}\n", fact.section);
    section = fact.section;
    fmt::print("  {:26} {}\n", fact.name, fact.value);
  }
  if (!report.warnings.empty()) fmt::print("warnings\n");
  for (const std::string& warning : report.warnings) fmt::print("  {}\n", warning);
}

void PrintJson(const MachineReport& report) {
  Json json;
  for (const Fact& fact : report.facts) json[fact.section][fact.name] = fact.value;
  json["warnings"] = report.warnings;
  fmt::print("{}\n", JsonText(json, 2));
}

}  // namespace

Action SetUpDoctor(CLI::App& app) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  return [as_json] {
    const MachineReport report = Examination().Run();
    *as_json ? PrintJson(report) : PrintText(report);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
