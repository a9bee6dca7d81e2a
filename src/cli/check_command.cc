// syntra check: everything that can fail, before it costs anything.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/report_options.h"
#include "data/pattern.h"
#include "data/tokenizer.h"
#include "train/run_directory.h"
#include "train/sizes.h"

namespace syntra {
namespace {

struct Finding {
  std::string subject;
  bool good;
  std::string detail;
  ExitCode code = ExitCode::kDone;  // of a failure
};

// The first existing directory at or above `path`.
Path ExistingAncestor(Path path) {
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path)) path = path.parent_path();
  return path;
}

class Checker {
 public:
  Checker(const Config& config, int ranks) : config_(config), ranks_(ranks) {}

  std::vector<Finding> Run() {
    Check("model", [&] {
      sizes_ = SizesOf(config_, ranks_);
      return fmt::format("{} parameters", WithThousands(sizes_.parameters));
    });
    Check("tokenizer", [&] {
      const Tokenizer tokenizer(config_.data().tokenizer(), config_.data().extra_ids());
      CheckCanTrain(tokenizer, config_.model().vocabulary_size());
      return fmt::format("{} pieces and {} sentinels", tokenizer.piece_count(),
                         tokenizer.extra_ids());
    });
    Check("training data", [&] { return CheckFiles(config_.data().train()); });
    Check("validation data", [&] { return CheckFiles(config_.data().validation()); });
    Check("run directory", [&] { return CheckDirectory(); });
    Check("disk", [&] { return CheckDisk(); });
    Check("memory", [&] { return CheckMemory(); });
    return std::move(findings_);
  }

 private:
  template <typename Subject>
  void Check(const char* name, const Subject& subject) {
    try {
      findings_.push_back({name, true, subject()});
    } catch (const Error& error) {
      findings_.push_back({name, false, error.what(), error.code()});
    }
  }

  template <typename Patterns>
  static std::string CheckFiles(const Patterns& patterns) {
    const std::vector<std::string> list(patterns.begin(), patterns.end());
    if (list.empty()) return "none";
    double bytes = 0;
    const std::vector<Path> files = ExpandPatterns(list);
    for (const Path& file : files) {
      bytes += static_cast<double>(File::OpenForRead(file).Size());
    }
    return fmt::format("{} files, {}", files.size(), HumanBytes(bytes));
  }

  std::string CheckDirectory() const {
    const Path place = ExistingAncestor(config_.train().directory());
    if (access(place.c_str(), W_OK) != 0) {
      Fail(ExitCode::kResources, "cannot write to {}: {}", place.string(), SystemErrorText(errno));
    }
    return config_.train().directory();
  }

  std::string CheckDisk() const {
    const double free =
        static_cast<double>(FreeDiskBytes(ExistingAncestor(config_.train().directory())));
    const double needed = sizes_.checkpoint_bytes * (config_.checkpoint().keep() + 1);
    if (free < needed) {
      Fail(ExitCode::kResources, "{} free, but {} checkpoints need {}", HumanBytes(free),
           config_.checkpoint().keep() + 1, HumanBytes(needed));
    }
    return fmt::format("{} free, checkpoints need {}", HumanBytes(free), HumanBytes(needed));
  }

  std::string CheckMemory() const {
    const double all =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    const double needed = sizes_.total_bytes() * ranks_;
    if (needed > all) {
      Fail(ExitCode::kResources,
           "{} ranks need {}, this machine has {}; lower train.micro_batch_size or set "
           "train.recompute",
           ranks_, HumanBytes(needed), HumanBytes(all));
    }
    return fmt::format("{} of {}", HumanBytes(needed), HumanBytes(all));
  }

  const Config& config_;
  int ranks_;
  Sizes sizes_;
  std::vector<Finding> findings_;
};

void Print(const std::vector<Finding>& findings, bool as_json) {
  Json json;
  for (const Finding& finding : findings) {
    json[finding.subject] = {{"ok", finding.good}, {"detail", finding.detail}};
    if (!as_json) {
      fmt::print("{:6} {:16} {}\n", finding.good ? "ok" : "FAILED", finding.subject,
                 finding.detail);
    }
  }
  if (as_json) fmt::print("{}\n", JsonText(json));
}

}  // namespace

Action SetUpCheck(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto form = AddReportOptions(app);
  return [options, form] {
    const Config config = options->Load(kForTraining);
    const std::vector<Finding> findings = Checker(config, form->ranks).Run();
    Print(findings, form->json);
    for (const Finding& finding : findings) {
      if (!finding.good) return finding.code;
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
