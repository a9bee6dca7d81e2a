// SPDX-License-Identifier: Apache-2.0
// syntra check: everything that can fail, before it costs anything.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/report_options.h"
#include "config/print.h"
#include "tasks/task.h"
#include "train/preflight.h"

namespace syntra {
namespace {

using State = Finding::State;

const char* NameOf(State state) {
  switch (state) {
    case State::kGood:
      return "ok";
    case State::kWarning:
      return "warning";
    case State::kSkipped:
      return "skipped";
    case State::kFailed:
      return "FAILED";
  }
  return "";
}

// The device that the run would compute on; the CPU in its place if it cannot be used here.
std::shared_ptr<Backend> OpenDevice(const Config& config, std::vector<Finding>* findings) {
  try {
    std::shared_ptr<Backend> backend = ChooseBackend(config.train().device(), nullptr);
    findings->push_back({"device", State::kGood, std::string(backend->device().name())});
    return backend;
  } catch (const Error& error) {
    findings->push_back({"device", State::kFailed, error.what(), error.code()});
    return ChooseBackend(TrainConfig::CPU, nullptr);
  }
}

// Whether the configuration is one of finetuning: its tasks take the place of a corpus, and what it
// starts from brings the tokenizer.
bool HasTasks(const ConfigOptions& options) {
  try {
    return options.Load(kForModel).data().task_size() > 0;
  } catch (const Error&) {
    return false;  // Load will say it again
  }
}

Finding CheckTaskFiles(const DataConfig& data) {
  try {
    const std::vector<std::unique_ptr<Task>> tasks = MakeTasks(data);
    RequireFiles(tasks, data.directory());
    std::vector<std::string> names;
    for (const std::unique_ptr<Task>& task : tasks) names.push_back(task->traits().name);
    return {"task files", State::kGood, "all there for " + Join(names, ", ")};
  } catch (const Error& error) {
    return {"task files", State::kFailed, error.what(), error.code()};
  }
}

void Print(const std::vector<Finding>& findings, bool as_json) {
  Json json;
  for (const Finding& finding : findings) {
    const char* state = NameOf(finding.state);
    json[finding.subject] = {
        {"ok", finding.state != State::kFailed}, {"state", state}, {"detail", finding.detail}};
    if (!as_json) fmt::print("{:8} {:16} {}\n", state, finding.subject, finding.detail);
  }
  if (as_json) fmt::print("{}\n", JsonText(json));
}

}  // namespace

Action SetUpCheck(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto form = AddReportOptions(app);
  return [options, form] {
    const bool finetunes = HasTasks(*options);
    const Config config = options->Load(finetunes ? kForModel : kForTraining);
    std::vector<Finding> findings{
        {"configuration", State::kGood, "digest " + ConfigDigest(config)}};
    const std::shared_ptr<Backend> backend = OpenDevice(config, &findings);
    const RankPlaces places{
        .ranks = form->ranks, .ranks_on_host = form->ranks, .backend = backend.get()};
    if (finetunes) {
      findings.push_back(CheckTaskFiles(config.data()));
    } else {
      std::ranges::copy(Preflight(config, places), std::back_inserter(findings));
    }
    Print(findings, form->json);
    const auto failed = std::ranges::find(findings, State::kFailed, &Finding::state);
    return failed == findings.end() ? ExitCode::kDone : failed->code;
  };
}

}  // namespace syntra
