// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/hopper.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "base/divide.h"
#include "base/error.h"
#include "tests/simt/access_check.h"
#include "tests/simt/simt.h"

namespace syntra::simt {
namespace {

using access_check::Aside;

constexpr int kGroupWarps = 4;  // of a warpgroup
constexpr size_t kPieceBytes = 16, kRowBytes = 128, kPatternBytes = 1024;
// Of a tile: its columns. Of a product: the rows of a warp, the inner elements, the most sums.
constexpr int kColumns = 64, kRows = 16, kInner = 16, kMostSums = 128;

struct TileCopy {
  std::byte* to;
  MappedTiles tiles;
  TilePlace place;

  int64_t bytes() const { return static_cast<int64_t>(kRowBytes) * tiles.tile_rows; }
};

struct BarrierState {
  int arrivals = 0;   // that a phase needs
  int missing = 0;    // of the current phase
  int parity = 0;     // of the current phase
  int64_t bytes = 0;  // that the current phase expects and that have not arrived
  std::deque<TileCopy> copies;
  // What the threads that arrived had done, in all phases and in those that are complete.
  access_check::Clock arrived, complete;
};

// The sums of a lane that products in flight add to.
struct Sums {
  float* registers;
  int count;
  std::array<float, kMostSums> values;
};

struct Product {
  float* sums;
  const uint32_t* a_registers;  // null: A is in shared memory
  std::array<uint32_t, 4> a_pairs;
  uint64_t a, b;
  ProductShape shape;
  int64_t group;

  int sum_count() const { return kRows * shape.columns / kWarp; }
};

struct Lane {
  std::vector<Product> products;
  std::vector<Sums> sums;
  int64_t group = 0;  // of its next product
  int64_t count = 0;  // of its products
  bool fenced = false;
  int registers = 0;  // that it may use
};

// Of the running block.
struct BlockState {
  std::map<const void*, BarrierState> barriers;
  std::vector<Lane> lanes;
};
BlockState the_block;

Lane& TheLane() { return the_block.lanes[ThreadIndex()]; }

BarrierState& BarrierAt(const void* barrier) {
  const Aside aside;
  const auto found = the_block.barriers.find(barrier);
  if (found != the_block.barriers.end()) return found->second;
  Complain(fmt::format("thread {} uses a barrier that nobody has made", ThreadIndex()));
  return the_block.barriers[barrier];
}

// The bits of an address that select a piece of 16 bytes are combined with the number of the row in
// a pattern (PTX ISA, swizzling modes of 128, 64 and 32 bytes, and none).
size_t Swizzled(size_t address, int bits) {
  const size_t row = address / kRowBytes % (size_t{1} << bits);
  return address ^ row * kPieceBytes;
}

void Deliver(const TileCopy& copy) {
  const size_t first = SharedAddress(copy.to);
  for (int row = 0; row < copy.tiles.tile_rows; ++row) {
    for (size_t piece = 0; piece < kRowBytes / kPieceBytes; ++piece) {
      const size_t at = Swizzled(first + row * kRowBytes + piece * kPieceBytes, 3);
      std::array<BFloat16, 8> elements{};
      const int64_t column = copy.place.column + static_cast<int64_t>(piece * elements.size());
      const int64_t source_row = copy.place.row + row;
      for (int64_t e = 0; e < std::ssize(elements); ++e) {
        if (!copy.tiles.Has(source_row, column + e)) continue;  // it stays zero
        elements[e] = *copy.tiles.At(copy.place.example, source_row, column + e);
      }
      std::memcpy(SharedMemory() + at, elements.data(), kPieceBytes);
    }
  }
}

// Completes the current phase if everything has arrived.
void TryComplete(BarrierState& barrier) {
  if (barrier.missing > 0) return;
  while (barrier.bytes > 0 && !barrier.copies.empty()) {
    Deliver(barrier.copies.front());
    barrier.bytes -= barrier.copies.front().bytes();
    barrier.copies.pop_front();
  }
  if (barrier.bytes < 0 || (barrier.bytes == 0 && !barrier.copies.empty())) {
    Complain("a barrier expects fewer bytes than are copied");
  }
  if (barrier.bytes != 0) return;
  barrier.parity ^= 1;
  barrier.missing = barrier.arrivals;
  barrier.complete = barrier.arrived;
}

}  // namespace

void MakeBarrier(void* barrier, int arrivals) {
  const Aside aside;
  access_check::Note(barrier, sizeof(uint64_t), true);
  the_block.barriers[barrier] = {.arrivals = arrivals, .missing = arrivals};
}

void Arrive(void* barrier, int64_t expected_bytes) {
  const Aside aside;
  BarrierState& state = BarrierAt(barrier);
  access_check::Note(barrier, sizeof(uint64_t), false);
  access_check::Release(state.arrived);
  state.bytes += expected_bytes;
  if (--state.missing < 0) {
    Complain(
        fmt::format("thread {} arrives at a barrier at which all have arrived", ThreadIndex()));
  }
  if (state.bytes == 0) TryComplete(state);
}

void WaitFor(void* barrier, int parity) {
  BarrierState& state = BarrierAt(barrier);
  access_check::Note(barrier, sizeof(uint64_t), false);
  if (state.parity == parity) {
    WaitUntil([&state, parity] {
      TryComplete(state);
      return state.parity != parity;
    });
  }
  access_check::Acquire(state.complete);
}

void FenceAsync() { access_check::FenceAsync(); }

// Registers come in eights (PTX ISA, setmaxnreg).
constexpr int kRegisterStep = 8, kFewestRegisters = 24, kMostRegisters = 256;

void SetRegisters(int count, bool more) {
  int& registers = TheLane().registers;
  const bool possible =
      count % kRegisterStep == 0 && count >= kFewestRegisters && count <= kMostRegisters;
  if (!possible || (more ? count < registers : count > registers)) {
    Complain(fmt::format("thread {} has {} registers and asks for {} {}", ThreadIndex(), registers,
                         more ? "up to" : "down to", count));
  }
  registers = count;
}

// Of a tile's first column, in bytes (PTX ISA, tiled mode, bounding box).
constexpr int kCopyAlignment = 16;

void CopyTile(void* to, std::span<const std::byte> map, const TilePlace& place, void* barrier) {
  const Aside aside;
  BarrierState& state = BarrierAt(barrier);
  TileCopy copy{static_cast<std::byte*>(to), {}, place};
  std::memcpy(&copy.tiles, map.data(), sizeof(copy.tiles));
  const auto& [tensor, tile_rows] = copy.tiles;
  if (SharedAddress(to) % kPatternBytes != 0) {
    return Complain(fmt::format("thread {} copies to a tile that is not aligned", ThreadIndex()));
  }
  if (place.column * static_cast<int64_t>(sizeof(BFloat16)) % kCopyAlignment != 0) {
    return Complain(fmt::format("thread {} copies from column {}", ThreadIndex(), place.column));
  }
  access_check::NoteAsync(barrier, sizeof(uint64_t), false);
  access_check::NoteAsync(to, copy.bytes(), true);
  const int64_t first = std::max(place.column, 0);
  const int64_t columns = std::min<int64_t>(place.column + kColumns, tensor.columns) - first;
  const int64_t last_row = std::min<int64_t>(place.row + tile_rows, tensor.rows);
  for (int64_t row = std::max(place.row, 0); row < last_row && columns > 0; ++row) {
    access_check::Note(copy.tiles.At(place.example, row, first), columns * sizeof(BFloat16), false);
  }
  // Whoever waits for the barrier sees the copy.
  access_check::Release(state.arrived);
  std::fill_n(copy.to, copy.bytes(), kUnwritten);
  state.copies.push_back(copy);
}

namespace {

// A matrix in shared memory (PTX ISA, wgmma, matrix descriptor and canonical layouts). `outer` is
// the index that is not summed over. Rows: inner elements are contiguous; columns: outer ones.
class Operand {
 public:
  Operand(uint64_t descriptor, bool columns) : columns_(columns) {
    first_ = (descriptor & 0x3FFF) << 4;
    leading_ = (descriptor >> 16 & 0x3FFF) << 4;
    stride_ = (descriptor >> 32 & 0x3FFF) << 4;
    constexpr int kBits[] = {0, 3, 2, 1};
    bits_ = kBits[descriptor >> 62];
    if ((descriptor >> 49 & 7) != 0) Complain("a matrix descriptor with a base offset");
  }

  const std::byte* At(int outer, int inner) const {
    const size_t at = Swizzled(first_ + Offset(outer, inner), bits_);
    return SharedMemory() + at;
  }
  float operator()(int outer, int inner) const {
    BFloat16 element;
    std::memcpy(&element, At(outer, inner), sizeof(element));
    return ToFloat(element);
  }
  // Notes that a product may read the matrix now.
  void NoteReads(int first_outer, int outers) const {
    constexpr int kElements = kPieceBytes / sizeof(BFloat16);
    for (int o = first_outer; o < first_outer + outers; o += columns_ ? kElements : 1) {
      for (int i = 0; i < kInner; i += columns_ ? 1 : kElements) {
        access_check::NoteAsync(At(o, i), kPieceBytes, false);
      }
    }
  }

 private:
  size_t Offset(int outer, int inner) const {
    const size_t pieces = size_t{1} << bits_;  // of a row of the pattern
    const int contiguous = columns_ ? outer : inner, other = columns_ ? inner : outer;
    const size_t element = contiguous % 8 * sizeof(BFloat16);
    const size_t piece = contiguous / 8, row = other % 8 * pieces * kPieceBytes, group = other / 8;
    if (bits_ == 0) {
      return element + row +
             (columns_ ? piece * stride_ + group * leading_ : piece * leading_ + group * stride_);
    }
    // Without columns, both pieces of the inner elements are in the same row of the pattern.
    return element + row + piece % pieces * kPieceBytes + piece / pieces * leading_ +
           group * stride_;
  }

  size_t first_, leading_, stride_;
  int bits_;
  bool columns_;
};

int FirstRow() { return ThreadIndex() / kWarp % kGroupWarps * kRows; }

Operand OperandA(const Product& product) { return {product.a, product.shape.a_across}; }
Operand OperandB(const Product& product) { return {product.b, product.shape.b_across}; }

void NoteReads(const Product& product) {
  if (product.a_registers == nullptr) OperandA(product).NoteReads(FirstRow(), kRows);
  OperandB(product).NoteReads(0, product.shape.columns);
}

Sums& SumsOf(Lane& lane, const float* registers) {
  const auto found = std::ranges::find(lane.sums, registers, &Sums::registers);
  SYNTRA_CHECK(found != lane.sums.end(), "sums of no product");
  return *found;
}

bool AreNan(const Sums& sums) {
  const auto* bytes = reinterpret_cast<const std::byte*>(sums.registers);
  return std::all_of(bytes, bytes + sums.count * sizeof(float),
                     [](std::byte byte) { return byte == kUnwritten; });
}

// Computes the product that is the first of each lane of the warp.
void Compute(std::span<Lane> warp) {
  const Aside aside;
  const Product& product = warp.front().products.front();
  NoteReads(product);
  const int columns = product.shape.columns;
  float a[kRows][kInner];
  std::vector<std::array<float, kInner>> b(columns);
  for (int i = 0; i < kRows * kInner; ++i) {
    const int row = i / kInner, inner = i % kInner;
    if (product.a_registers == nullptr) {
      a[row][inner] = OperandA(product)(FirstRow() + row, inner);
      continue;
    }
    const Product& of_lane = warp[row % 8 * 4 + inner % 8 / 2].products.front();
    const uint32_t pair = of_lane.a_registers[row / 8 + inner / 8 * 2];
    a[row][inner] = ToFloat(BFloat16{static_cast<uint16_t>(pair >> inner % 2 * 16)});
  }
  const Operand operand_b = OperandB(product);
  for (int i = 0; i < columns * kInner; ++i) {
    b[i / kInner][i % kInner] = operand_b(i / kInner, i % kInner);
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    Sums& sums = SumsOf(warp[lane], warp[lane].products.front().sums);
    for (int s = 0; s < sums.count; ++s) {
      const int row = lane / 4 + s / 2 % 2 * 8, column = s / 4 * 8 + lane % 4 * 2 + s % 2;
      for (int inner = 0; inner < kInner; ++inner) {
        sums.values[s] += a[row][inner] * b[column][inner];
      }
    }
  }
}

// Gives the lane the sums of its first product back, unless others add to them.
void Finish(Lane& lane) {
  const Aside aside;
  const Product product = lane.products.front();
  lane.products.erase(lane.products.begin());
  if (product.a_registers != nullptr &&
      !std::ranges::equal(product.a_pairs, std::span(product.a_registers, 4))) {
    Complain(fmt::format("thread {} changes an operand of a product before it waits for it",
                         ThreadIndex()));
  }
  if (std::ranges::count(lane.products, product.sums, &Product::sums) > 0) return;
  const Sums& sums = SumsOf(lane, product.sums);
  if (!AreNan(sums)) {
    Complain(
        fmt::format("thread {} writes sums of a product before it waits for it", ThreadIndex()));
  }
  std::copy_n(sums.values.begin(), sums.count, product.sums);
  std::erase_if(lane.sums, [&](const Sums& sums) { return sums.registers == product.sums; });
}

// The registers of a thread if one block has a multiprocessor. That has four quarters, to which
// warps go by turns, with 512 registers for each lane.
int RegistersAtStart(int threads) {
  constexpr int kQuarters = 4, kOfLane = 512;
  const int registers = kOfLane / DivideUp(threads, kQuarters * kWarp);
  return std::min(registers, kMostRegisters - 1) / kRegisterStep * kRegisterStep;
}

}  // namespace

void FenceProducts() { TheLane().fenced = true; }

void Multiply(float* sums, const uint32_t* a_pairs, uint64_t a, uint64_t b,
              const ProductShape& shape) {
  const Aside aside;
  Lane& lane = TheLane();
  if (!lane.fenced) {
    Complain(fmt::format("thread {} computes a product without a fence", ThreadIndex()));
  }
  Product product{sums, a_pairs, {}, a, b, shape, lane.group};
  const int count = product.sum_count();
  if (a_pairs != nullptr) std::copy_n(a_pairs, product.a_pairs.size(), product.a_pairs.begin());
  if (std::ranges::find(lane.sums, sums, &Sums::registers) == lane.sums.end()) {
    Sums& before = lane.sums.emplace_back(Sums{sums, count, {}});
    std::copy_n(sums, count, before.values.begin());
    std::fill_n(reinterpret_cast<std::byte*>(sums), count * sizeof(float), kUnwritten);
  }
  lane.products.push_back(product);
  ++lane.count;
  if (ThreadIndex() % kWarp == 0) NoteReads(product);
}

void CommitProducts() { ++TheLane().group; }

void WaitForProducts(int left) {
  Lane& lane = TheLane();
  lane.fenced = false;
  while (!lane.products.empty() && lane.products.front().group + left < lane.group) {
    ShuffleFrom(0, 0);  // all lanes have come
    if (ThreadIndex() % kWarp == 0) {
      Compute(std::span(the_block.lanes).subspan(ThreadIndex(), kWarp));
    }
    ShuffleFrom(0, 0);  // it is computed
    Finish(lane);
  }
}

namespace hopper {

void StartBlock(int threads) {
  the_block.barriers.clear();
  the_block.lanes.assign(threads, {.registers = RegistersAtStart(threads)});
}

void EndBlock() {
  for (const auto& [address, barrier] : the_block.barriers) {
    if (!barrier.copies.empty()) Complain("nobody waited for a copy of a tile");
  }
  const auto threads = static_cast<int>(the_block.lanes.size());
  int registers = 0;
  for (const Lane& lane : the_block.lanes) registers += lane.registers;
  if (const int all = threads * RegistersAtStart(threads); registers > all) {
    Complain(fmt::format("a block of {} registers asks for {}", all, registers));
  }
  for (int i = 0; i < threads; ++i) {
    const Lane &lane = the_block.lanes[i],
               &first = the_block.lanes[i / (kGroupWarps * kWarp) * kGroupWarps * kWarp];
    if (lane.registers != first.registers) {
      Complain(fmt::format("thread {} sets other registers than its warpgroup", i));
      return;
    }
    if (!lane.products.empty()) {
      Complain(
          fmt::format("thread {} never waited for {} of its products", i, lane.products.size()));
    }
    if (lane.count != first.count) {
      Complain(fmt::format("thread {} computes other products than its warpgroup", i));
      return;
    }
  }
}

}  // namespace hopper
}  // namespace syntra::simt
