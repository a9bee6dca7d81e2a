// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "config/print.h"
#include "run/rank_names.h"

namespace syntra {
namespace {

// More say nothing new: another file was given.
constexpr size_t kMostLines = 20;
// A text may be a whole path; its beginning tells enough.
constexpr size_t kLongestValue = 200;

constexpr const char* kAbsent = "nothing";

std::string Shortened(const std::string& value) {
  return value.size() <= kLongestValue ? value : value.substr(0, kLongestValue) + "...";
}

std::string FactsText(const Facts& facts) { return JsonText(Json(facts)); }
Facts ToFacts(const std::string& text) { return ParseJson(text).get<Facts>(); }

// The facts of each rank, and the order in which they are reported.
class FactsComparison {
 public:
  explicit FactsComparison(const std::vector<std::string>& texts) {
    // Most ranks say the same, so each text is read once.
    std::map<std::string, std::vector<int>> ranks_by_text;
    for (size_t rank = 0; rank < texts.size(); ++rank) {
      ranks_by_text[texts[rank]].push_back(static_cast<int>(rank));
    }
    Add(ToFacts(texts.front()), ranks_by_text[texts.front()]);
    for (const auto& [text, ranks] : ranks_by_text) {
      if (text != texts.front()) Add(ToFacts(text), ranks);
    }
    total_ = static_cast<int>(texts.size());
  }

  // "train.steps: 10 on rank 0, 20 on ranks 1-3" for each that differs.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const std::string& name : names_) {
      std::map<std::string, std::vector<int>> values = by_name_.at(name);
      std::vector<bool> says(total_, false);
      for (const auto& [value, ranks] : values) {
        for (const int rank : ranks) says[rank] = true;
      }
      for (int rank = 0; rank < total_; ++rank) {
        if (!says[rank]) values[kAbsent].push_back(rank);
      }
      if (values.size() > 1) lines.push_back(name + ": " + DescribeValues(values));
    }
    return lines;
  }

 private:
  void Add(const Facts& facts, const std::vector<int>& ranks) {
    for (const auto& [name, value] : facts) {
      auto [place, is_new] = by_name_.try_emplace(name);
      if (is_new) names_.push_back(name);
      std::vector<int>& with_value = place->second[value];
      with_value.insert(with_value.end(), ranks.begin(), ranks.end());
      std::ranges::sort(with_value);
    }
  }

  // The value of the lowest rank first.
  static std::string DescribeValues(const std::map<std::string, std::vector<int>>& values) {
    std::vector<std::pair<std::vector<int>, std::string>> sorted;
    for (const auto& [value, ranks] : values) sorted.emplace_back(ranks, value);
    std::ranges::sort(sorted);
    std::vector<std::string> parts;
    for (const auto& [ranks, value] : sorted) {
      parts.push_back(fmt::format("{} on {}", Shortened(value), NameRanks(ranks)));
    }
    return Join(parts, ", ");
  }

  int total_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, std::map<std::string, std::vector<int>>> by_name_;
};

// The file that runs; programs of one version may be built from other sources or for other
// machines.
std::string ProgramDigest() {
  try {
    File program = File::OpenForRead("/proc/self/exe");
    return ToHex(DigestOfRest(program));
  } catch (const Error&) {
    return "unreadable";
  }
}

}  // namespace

std::vector<uint64_t> GatherDigests(Communicator& ranks, uint64_t digest) {
  // A half of a digest is exact as a double.
  const std::array<double, 2> mine{static_cast<double>(digest & 0xffffffff),
                                   static_cast<double>(digest >> 32)};
  const std::vector<double> all = ranks.AllGather(mine);
  std::vector<uint64_t> digests;
  for (size_t i = 0; i < all.size(); i += mine.size()) {
    digests.push_back(static_cast<uint64_t>(all[i]) | static_cast<uint64_t>(all[i + 1]) << 32);
  }
  return digests;
}

void CheckAgreement(Communicator& ranks, const Facts& facts, ExitCode code, const std::string& what,
                    const std::string& remedy) {
  if (ranks.size() == 1) return;
  const std::string text = FactsText(facts);
  const uint64_t digest = ShortDigestOf(std::as_bytes(std::span(text)));
  if (std::ranges::count(GatherDigests(ranks, digest), digest) == ranks.size()) return;
  const std::vector<std::string> texts = ranks.Gather(text);
  if (ranks.rank() != 0) {
    Fail(code, "the ranks of this job have different {}; see what rank 0 says", what);
  }
  std::vector<std::string> lines = FactsComparison(texts).Lines();
  const size_t count = lines.size();
  if (count > kMostLines) {
    lines.resize(kMostLines);
    lines.push_back(fmt::format("and {} more", count - kMostLines));
  }
  Fail(code, "the ranks of this job have different {}:\n  {}\n{}", what, Join(lines, "\n  "),
       remedy);
}

void CheckSameProgram(Communicator& ranks, const std::string& command) {
  if (ranks.size() == 1) return;
  CheckAgreement(
      ranks, {{"command", command}, {"version", Version()}, {"program file", ProgramDigest()}},
      ExitCode::kConfig, "programs", "Start the same program with the same command on all ranks");
}

void CheckSameSettings(Communicator& ranks, const Config& config, bool on_host) {
  if (ranks.size() == 1) return;
  Config compared = config;
  compared.mutable_train()->clear_threads();
  if (!config.train().directory().empty()) {
    compared.mutable_train()->set_directory(
        std::filesystem::absolute(config.train().directory()).string());
  }
  Facts facts = ConfigValues(compared);
  facts.emplace_back("device", on_host ? "CPU" : "GPU");
  CheckAgreement(ranks, facts, ExitCode::kConfig, "settings",
                 "Start all ranks with the same configuration files and options");
}

std::optional<Checkpoint> OpenOnAllRanks(std::optional<Checkpoint> of_rank_0, Communicator& ranks,
                                         const std::string& remedy) {
  std::string path;
  if (of_rank_0) path = std::filesystem::absolute(of_rank_0->path()).string();
  BroadcastText(ranks, &path);
  if (path.empty()) return std::nullopt;
  CheckAgreement(ranks, {{path, Exists(path) ? "there" : "missing"}}, ExitCode::kCheckpoint,
                 "checkpoints", remedy);
  return of_rank_0 ? std::move(of_rank_0) : Checkpoint(path);
}

void CheckSameData(Communicator& ranks, const RunIdentity& identity) {
  CheckAgreement(ranks,
                 {{"data.tokenizer, identity", identity.tokenizer_identity},
                  {"data.train, digest", identity.data_digest},
                  {"data.validation, digest", identity.validation_digest}},
                 ExitCode::kData, "data", kGiveSameFiles);
}

}  // namespace syntra
