// SPDX-License-Identifier: Apache-2.0
// Plans of oneDNN matmul primitives. Each thread that may run a plan has its own memory objects.
// Only their pointers are set before a run, so that a run creates nothing.
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/crash_guard.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/failure.h"
#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/bfloat16.h"
#include "kernels/bit_mask.h"
#include "kernels/cpu/bit_mask.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel_gemm.h"
#include "kernels/cpu/tile_gemm.h"

namespace syntra {
namespace {

using dnnl::memory;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type TypeOf(DType dtype) {
  SYNTRA_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "gemm of {}", NameOf(dtype));
  return dtype == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

// A rows x columns matrix. If transposed, it is stored as columns x rows.
memory::desc MatrixDesc(int64_t rows, int64_t columns, DType dtype, bool transposed,
                        int64_t stride) {
  if (stride == 0) stride = transposed ? rows : columns;
  return {{rows, columns},
          TypeOf(dtype),
          transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

// During its lifetime the library plans for and runs on `count` threads when this thread calls it.
// It must get all of them: a smaller team would compute only its part of a product.
class ThreadLimit {
 public:
  explicit ThreadLimit(int count) { SetThreadCount(count); }
  ~ThreadLimit() { SetThreadCount(saved_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int saved_ = ThreadCount();
};

// One primitive and the memory objects of its arguments for each thread.
class Runner {
 public:
  static constexpr int kMaxArguments = 4;

  Runner(dnnl::primitive primitive, int thread_limit, GemmThreads threads,
         const std::vector<std::pair<int, memory::desc>>& arguments)
      : primitive_(std::move(primitive)),
        thread_limit_(thread_limit),
        contexts_(threads == GemmThreads::kCaller ? ThreadCount() : 1) {
    SYNTRA_CHECK(arguments.size() <= kMaxArguments);
    count_ = static_cast<int>(arguments.size());
    for (Context& context : contexts_) {
      context.stream = dnnl::stream(Engine());
      for (int i = 0; i < count_; ++i) {
        context.memories[i] = memory(arguments[i].second, Engine(), DNNL_MEMORY_NONE);
        context.arguments[i] = {arguments[i].first, context.memories[i].get()};
      }
    }
  }

  // Takes one pointer per argument, in order.
  void Run(std::array<const void*, kMaxArguments> pointers) const {
    const ThreadLimit limit(thread_limit_);
    const size_t thread = contexts_.size() == 1 ? 0 : ThreadIndex();
    SYNTRA_CHECK(thread < contexts_.size(), "thread {} runs a gemm bound for {} threads", thread,
                 contexts_.size());
    const Context& context = contexts_[thread];
    for (int i = 0; i < count_; ++i) {
      context.memories[i].set_data_handle(const_cast<void*>(pointers[i]));
    }
    const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), context.stream.get(),
                                                        count_, context.arguments.data());
    SYNTRA_CHECK(status == dnnl_success, "oneDNN status {}", static_cast<int>(status));
  }

 private:
  struct Context {
    dnnl::stream stream;
    std::array<memory, kMaxArguments> memories;
    std::array<dnnl_exec_arg_t, kMaxArguments> arguments;
  };

  dnnl::primitive primitive_;
  int thread_limit_;
  int count_ = 0;
  std::vector<Context> contexts_;
};

// A product by the library, with a packed B by AMX, or by panels.
class Product {
 public:
  Product(Runner library, size_t scratch)
      : multiplier_(std::move(library)), workspace_bytes_(AlignUp(scratch)) {}
  // `packs_b`: whether each run packs B.
  Product(const TileGemm& tiles, bool packs_b)
      : multiplier_(tiles),
        packed_bytes_(packs_b ? AlignUp(tiles.packed_bytes()) : 0),
        workspace_bytes_(packed_bytes_ + AlignUp(tiles.workspace_bytes())) {}

  explicit Product(const PanelGemm& panels)
      : multiplier_(panels), workspace_bytes_(AlignUp(panels.workspace_bytes())) {}

  size_t workspace_bytes() const { return workspace_bytes_; }
  // `mask`: of products by AMX only.
  void Run(const void* a, const void* b, void* c, std::byte* workspace, void* mask) const {
    if (const auto* panels = std::get_if<PanelGemm>(&multiplier_)) {
      return panels->Run(a, b, c, workspace);
    }
    if (const auto* library = std::get_if<Runner>(&multiplier_)) {
      return library->Run({a, b, c, workspace});
    }
    const auto& tiles = std::get<TileGemm>(multiplier_);
    const auto* packed = static_cast<const std::byte*>(b);
    if (packed_bytes_ > 0) {
      tiles.Pack(b, workspace);
      packed = workspace;
    }
    tiles.Run(a, packed, c, workspace + packed_bytes_, mask);
  }

 private:
  std::variant<Runner, TileGemm, PanelGemm> multiplier_;
  size_t packed_bytes_ = 0, workspace_bytes_;
};

// A C of one column whose elements are `stride` apart.
struct Column {
  GemmProblem problem;
  int64_t stride;

  // Stores dense sums to C.
  void Store(const float* sums, void* c) const {
    const bool narrow = problem.c == DType::kBF16;
    auto* f32 = static_cast<float*>(c);
    auto* bf16 = static_cast<BFloat16*>(c);
    for (int64_t i = 0; i < problem.m; ++i) {
      const int64_t at = i * stride;
      float sum = sums[i];
      if (problem.accumulate) sum += narrow ? ToFloat(bf16[at]) : f32[at];
      if (narrow) {
        bf16[at] = ToBFloat16(sum);
      } else {
        f32[at] = sum;
      }
    }
  }
};

// Whether a transposed A is turned back first.
bool TurnsA(const GemmProblem& product) {
  return product.transpose_a && (product.m == 1 || product.ab == DType::kBF16);
}

// How many bands of a product with an epilogue are small enough for a core's cache.
int64_t CachedBands(const GemmProblem& whole) {
  constexpr int64_t kCached = 512 << 10;
  if (whole.epilogue == Epilogue::kNone) return 0;
  return whole.m * whole.n * static_cast<int64_t>(SizeOf(whole.c)) / kCached;
}

// Into how many bands of rows a product is split. Those of a transposed A are columns, unless it is
// turned.
int64_t BandCount(const GemmProblem& whole, GemmThreads threads, bool turned) {
  constexpr int64_t kFewestRows = 64, kMostEach = 4;  // rows of a band, bands of a thread
  if (threads != GemmThreads::kPool || (whole.transpose_a && !turned)) return 1;
  for (int64_t each = std::max(kMostEach, CachedBands(whole) / ThreadCount()); each > 0; --each) {
    const int64_t bands = each * ThreadCount();
    if (whole.m % bands == 0 && whole.m / bands >= kFewestRows) return bands;
  }
  return 1;
}

// How a product is run. Our own takes the whole of it. In bf16 the library gets a transposed A
// turned back, which costs less than it loses on it; in f32 it costs more. A product on the whole
// pool is then split into bands of rows, a few for each thread so that a slow thread delays no
// other one. Each band runs with a sequential plan. In bf16 this is 2 % faster than the library's
// own split, in f32 as fast. If there is only one band, the library splits it. Epilogues follow
// band by band, while a band's results are in a cache: so they cost less than a pass of their own.
// The library could do a ReLU, but turns NaN into 0.
//
// Vectors are dense: oneDNN 3.7 computes wrong ones if C is a column of a wider matrix, or if A is
// and there is one row of C.
struct Bands {
  GemmProblem problem;  // the product of one band, without epilogue and with A turned
  Epilogue epilogue;
  GemmThreads threads;
  int64_t count = 1;
  size_t a_bytes = 0, c_bytes = 0, mask_bytes = 0;  // from one band to the next
  std::optional<Transposition> turn;
  size_t turned_bytes = 0;
  std::optional<Column> column;
  size_t column_bytes = 0;

  // For our own product.
  explicit Bands(const GemmProblem& whole)
      : problem(whole), epilogue(Epilogue::kNone), threads(GemmThreads::kCaller) {}
  // For the library's.
  Bands(const GemmProblem& whole, GemmThreads requested)
      : problem(whole), epilogue(whole.epilogue) {
    problem.epilogue = Epilogue::kNone;
    const bool turned = TurnsA(problem);
    count = BandCount(whole, requested, turned);
    threads = count > 1 ? GemmThreads::kCaller : requested;
    problem.m = whole.m / count;
    a_bytes = problem.m * (whole.transpose_a ? 1 : whole.a_row()) * SizeOf(whole.ab);
    c_bytes = problem.m * whole.c_row() * SizeOf(whole.c);
    mask_bytes = problem.m * MaskStride(whole.n);
    if (whole.n == 1 && whole.c_row() > 1) {
      column.emplace(Column{problem, whole.c_row()});
      column_bytes = AlignUp(problem.m * sizeof(float));
      problem.c = DType::kF32;
      problem.c_stride = 0;
      problem.accumulate = false;
    }
    if (!turned) return;
    turn = {.rows = whole.k, .columns = problem.m, .stride = whole.a_row(), .dtype = whole.ab};
    turned_bytes = AlignUp(problem.m * whole.k * SizeOf(whole.ab));
    problem.transpose_a = false;
    problem.a_stride = 0;
  }

  // If A is transposed, k is long and there are fewer blocks of 64 columns than threads, the
  // library splits k over threads. Sums would then depend on the number of threads, so it gets
  // fewer.
  int plan_threads() const {
    if (threads == GemmThreads::kCaller) return 1;
    if (!problem.transpose_a || problem.k < 2048) return ThreadCount();
    return static_cast<int>(std::min<int64_t>(ThreadCount(), DivideUp(problem.n, 64)));
  }
  size_t band_bytes(const Product& product) const {
    return turned_bytes + column_bytes + product.workspace_bytes();
  }
  size_t workspace_bytes(const Product& product) const { return count * band_bytes(product); }

  void Run(const Product& product, const void* a, const void* b, void* c, std::byte* workspace,
           void* mask) const {
    const auto* left = static_cast<const std::byte*>(a);
    auto* result = static_cast<std::byte*>(c);
    ParallelTasks(count, [&](int64_t i) {
      std::byte* turned = workspace + i * band_bytes(product);
      std::byte* dense = turned + turned_bytes;
      const std::byte* rows = left + i * a_bytes;
      std::byte* to = result + i * c_bytes;
      if (turn) Transpose(*turn, rows, turned);
      product.Run(turn ? turned : rows, b, column ? dense : to, dense + column_bytes, mask);
      if (column) column->Store(reinterpret_cast<const float*>(dense), to);
      if (epilogue != Epilogue::kNone) Finish(i, result, static_cast<std::byte*>(mask));
    });
  }

  // Does a band's epilogue.
  void Finish(int64_t band, std::byte* c, std::byte* mask) const {
    const TensorType type{problem.c, {problem.m, problem.n}};
    c += band * c_bytes;
    if (mask != nullptr) mask += band * mask_bytes;
    if (epilogue == Epilogue::kMask) {
      ApplyMask(type, mask, c);
    } else {
      Rectify(type, c, mask);
    }
  }
};

// Whether the processor has it and ONEDNN_MAX_CPU_ISA lets the library use it.
bool HasAvx512() {
  constexpr auto kAvx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kAvx512) == kAvx512;
}

void AppendFactor(dnnl::post_ops& to, float factor) {
#if DNNL_VERSION_MAJOR >= 3
  to.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0.0f);
#else
  to.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, factor, 0.0f);
#endif
}

dnnl::matmul::primitive_desc Describe(const GemmProblem& p, const memory::desc& b,
                                      int thread_limit) {
  const ThreadLimit guard(thread_limit);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
  if (p.alpha != 1.0f) AppendFactor(after, p.alpha);
  if (p.accumulate) after.append_sum(1.0f);
  attributes.set_post_ops(after);
  const memory::desc a = MatrixDesc(p.m, p.k, p.ab, p.transpose_a, p.a_stride);
  const memory::desc c = MatrixDesc(p.m, p.n, p.c, false, p.c_stride);
  try {
#if DNNL_VERSION_MAJOR >= 3
    return {Engine(), a, b, c, attributes};
#else
    return {dnnl::matmul::desc(a, b, c), attributes, Engine()};
#endif
  } catch (const dnnl::error& error) {
    if (p.ab == DType::kBF16 && !HasAvx512()) {
      Fail(ExitCode::kConfig,
           "oneDNN multiplies bf16 on processors with AVX-512, and this one has none; set "
           "train.precision: FP32");
    }
    Fail(ExitCode::kInternal, "oneDNN has no {} product {} x {} x {}: {}", NameOf(p.ab), p.m, p.n,
         p.k, error.message);
  }
}

// If the library fails after it has accepted a product, it lacks memory.
[[noreturn]] void ThrowShortage(const dnnl::error& error) {
  throw OutOfMemory(fmt::format("out of memory in oneDNN: {}", error.message));
}

Runner MatmulRunner(const dnnl::matmul::primitive_desc& desc, int planned, GemmThreads threads) {
  // The library's older kernels, which it uses for strided operands, may split k over threads.
  const int limit = std::string_view(desc.impl_info_str()).starts_with("brg") ? planned : 1;
  // The constructor needs the same limit as the plan, because the library looks the plan up by it.
  std::optional<ThreadLimit> guard(planned);
  const dnnl::matmul primitive(desc);
  guard.reset();
  return {primitive,
          limit,
          threads,
          {{DNNL_ARG_SRC, desc.src_desc()},
           {DNNL_ARG_WEIGHTS, desc.weights_desc()},
           {DNNL_ARG_DST, desc.dst_desc()},
           {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}};
}

TileGemm TilesOf(const GemmProblem& p, GemmThreads threads) {
  return {p, threads == GemmThreads::kPool ? ThreadCount() : 1};
}

}  // namespace

struct Gemm::Plan {
  Bands bands;
  Product product;
};

Gemm::Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
Gemm::~Gemm() = default;

Gemm::Gemm(const GemmProblem& p, GemmThreads threads) try {
  const ShortageGuard guard("oneDNN");
  if (threads == GemmThreads::kCaller && TileGemm::Covers(p)) {
    plan_ = std::make_unique<Plan>(Plan{Bands(p), {TilesOf(p, threads), /*packs_b=*/true}});
    return;
  }
  if (threads == GemmThreads::kCaller && PanelGemm::Covers(p)) {
    plan_ = std::make_unique<Plan>(Plan{Bands(p), Product(PanelGemm(p))});
    return;
  }
  const Bands bands(p, threads);
  const dnnl::matmul::primitive_desc desc = Describe(
      bands.problem, MatrixDesc(p.k, p.n, p.ab, p.transpose_b, p.b_stride), bands.plan_threads());
  plan_ = std::make_unique<Plan>(Plan{bands,
                                      {MatmulRunner(desc, bands.plan_threads(), bands.threads),
                                       desc.scratchpad_desc().get_size()}});
} catch (const dnnl::error& error) {
  ThrowShortage(error);
}

size_t Gemm::workspace_bytes() const { return plan_->bands.workspace_bytes(plan_->product); }

void Gemm::Run(const void* a, const void* b, void* c, std::byte* workspace, void* mask) const {
  plan_->bands.Run(plan_->product, a, b, c, workspace, mask);
}

namespace {

// Packs B into the layout that a product needs. Our own loops are several times faster than the
// library and are used for the layouts that they know.
class Packer {
 public:
  // For the library's product.
  Packer(const GemmProblem& p, DType stored, const memory::desc& wanted, GemmThreads threads,
         std::span<const int64_t> parts) {
    const auto tag =
        p.ab == DType::kBF16 ? memory::format_tag::BA16a64b2a : memory::format_tag::BA16a64b;
    if (wanted == memory::desc({p.k, p.n}, TypeOf(p.ab), tag) && PackByParts(p, stored, parts)) {
      return;
    }
    parts_.clear();
    layout_ = fmt::format("{} from {}", LayoutOf(p, wanted), SourceOf(p, stored));
    const memory::desc from = MatrixDesc(p.k, p.n, stored, p.transpose_b, p.b_stride);
    const int thread_limit = threads == GemmThreads::kCaller ? 1 : ThreadCount();
    const ThreadLimit guard(thread_limit);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc desc(Engine(), from, Engine(), wanted, attributes);
    workspace_bytes_ = desc.scratchpad_desc().get_size();
    reorder_.emplace(
        dnnl::reorder(desc), thread_limit, threads,
        std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_FROM, from},
                                                  {DNNL_ARG_TO, wanted},
                                                  {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  }

  // For our own, if our loops know the layout.
  static std::optional<Packer> Own(const GemmProblem& p, DType stored,
                                   std::span<const int64_t> parts) {
    Packer packer;
    if (!packer.PackByParts(p, stored, parts)) return std::nullopt;
    return packer;
  }

  size_t parts() const { return reorder_ ? 1 : parts_.size(); }
  const std::string& layout() const { return layout_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  void Run(std::span<const void* const> b, std::byte* packed, std::byte* workspace) const {
    SYNTRA_CHECK(b.size() == parts(), "{} parts of {}", b.size(), parts());
    if (reorder_) return reorder_->Run({b[0], packed, workspace, nullptr});
    for (size_t i = 0; i < b.size(); ++i) Pack(parts_[i].own, b[i], packed + parts_[i].offset);
  }

 private:
  struct Part {
    PanelPacking own;
    size_t offset;  // bytes
  };

  Packer() = default;

  static std::string SourceOf(const GemmProblem& p, DType stored) {
    return fmt::format("{} x {} {}{} as {}", p.k, p.n, NameOf(stored),
                       p.transpose_b ? " transposed" : "", NameOf(p.ab));
  }

  // Products of other numbers of rows mostly want the same panels, but nothing promises that.
  static std::string LayoutOf(const GemmProblem& p, const memory::desc& wanted) {
    using enum memory::format_tag;
    for (const memory::format_tag tag :
         {BA16a16b, BA16a32b, BA16a48b, BA16a64b, BA16a16b2a, BA16a32b2a, BA16a48b2a, BA16a64b2a}) {
      if (wanted == memory::desc({p.k, p.n}, TypeOf(p.ab), tag)) {
        return fmt::format("layout {}", static_cast<int>(tag));
      }
    }
    return fmt::format("layout for {} rows", p.m);
  }

  // A panel of 64 columns is contiguous. So a part's columns are, and of a part's rows those in 64
  // columns. The last block of 16 rows of words is filled with zeros.
  bool PackByParts(const GemmProblem& p, DType stored, std::span<const int64_t> lengths) {
    const int64_t row = p.transpose_b ? p.k : p.n;
    int64_t before = 0;
    layout_ = fmt::format("panels from {}", SourceOf(p, stored));
    for (const int64_t length : lengths.empty() ? std::span(&row, 1) : lengths) {
      const PanelPacking own{.k = p.transpose_b ? length : p.k,
                             .n = p.transpose_b ? p.n : length,
                             .transposed = p.transpose_b,
                             .stored = stored,
                             .packed = p.ab,
                             .stride = p.b_stride,
                             .whole_k = p.k,
                             .fill = true};
      const int64_t rows = PackedWords(own) * RowsPerWord(p.ab);
      layout_ += fmt::format(" {}", length);
      parts_.push_back({own, before * (p.transpose_b ? kPanelColumns : rows) * SizeOf(p.ab)});
      before += length;
      if (!CanPack(own)) return false;
    }
    return true;
  }

  std::vector<Part> parts_;
  std::string layout_;
  std::optional<Runner> reorder_;
  size_t workspace_bytes_ = 0;
};

}  // namespace

struct PackedGemm::Plan {
  Bands bands;
  size_t packed_bytes;
  Packer packer;
  Product product;
};

PackedGemm::PackedGemm() = default;
PackedGemm::PackedGemm(PackedGemm&&) noexcept = default;
PackedGemm& PackedGemm::operator=(PackedGemm&&) noexcept = default;
PackedGemm::~PackedGemm() = default;

PackedGemm::PackedGemm(const GemmProblem& p, DType stored_b, GemmThreads threads,
                       std::span<const int64_t> parts) try {
  const ShortageGuard guard("oneDNN");
  if (threads == GemmThreads::kPool ? TileGemm::CoversShared(p) : TileGemm::Covers(p)) {
    if (const auto packer = Packer::Own(p, stored_b, parts)) {
      const TileGemm tiles = TilesOf(p, threads);
      plan_ = std::make_unique<Plan>(
          Plan{Bands(p), tiles.packed_bytes(), *packer, {tiles, /*packs_b=*/false}});
      return;
    }
  }
  const Bands bands(p, threads);
  const dnnl::matmul::primitive_desc product = Describe(
      bands.problem, {{p.k, p.n}, TypeOf(p.ab), memory::format_tag::any}, bands.plan_threads());
  plan_ = std::make_unique<Plan>(Plan{bands,
                                      product.weights_desc().get_size(),
                                      Packer(p, stored_b, product.weights_desc(), threads, parts),
                                      {MatmulRunner(product, bands.plan_threads(), bands.threads),
                                       product.scratchpad_desc().get_size()}});
} catch (const dnnl::error& error) {
  ThrowShortage(error);
}

bool PackedGemm::packs_parts() const { return plan_->packer.parts() > 1; }
const std::string& PackedGemm::layout() const { return plan_->packer.layout(); }
size_t PackedGemm::packed_bytes() const { return plan_->packed_bytes; }
size_t PackedGemm::workspace_bytes() const {
  return std::max(plan_->bands.workspace_bytes(plan_->product), plan_->packer.workspace_bytes());
}

void PackedGemm::Pack(std::span<const void* const> parts, std::byte* packed,
                      std::byte* workspace) const {
  plan_->packer.Run(parts, packed, workspace);
}

void PackedGemm::Run(const void* a, const std::byte* packed, void* c, std::byte* workspace,
                     void* mask) const {
  plan_->bands.Run(plan_->product, a, packed, c, workspace, mask);
}

}  // namespace syntra
