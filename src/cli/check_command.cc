// SPDX-License-Identifier: Apache-2.0
// syntra check: everything that could stop a run, before it starts.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/json.h"
#include "cli/backend.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "config/print.h"
#include "train/preflight.h"

namespace syntra {
namespace {

using State = Finding::State;

const char* StateName(State state) {
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
    const Device& device = backend->device();
    findings->push_back(
        {"device", State::kGood, device.is_host() ? "the CPU" : std::string(device.name())});
    return backend;
  } catch (const Error& error) {
    findings->push_back({"device", State::kFailed, error.what(), error.code()});
    return ChooseBackend(TrainConfig::CPU, nullptr);
  }
}

// A run that names no model to start from is looked at, too: its files may be missing as well.
void AddLack(const std::string& lacks, std::vector<Finding>* findings) {
  const auto initial = std::ranges::find(*findings, "initial", &Finding::subject);
  if (lacks.empty() || initial == findings->end()) return;
  *initial = {"initial", State::kFailed, lacks, ExitCode::kConfig};
}

void Print(const std::vector<Finding>& findings, bool as_json) {
  Json json;
  for (const Finding& finding : findings) {
    const char* state = StateName(finding.state);
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
  const auto ranks_per_node = std::make_shared<int>(0);
  app.add_option("--ranks-per-node", *ranks_per_node,
                 "Ranks that share a node and its memory; by default all")
      ->check(CLI::Range(1, 1000000));
  const auto begin = std::make_shared<StartOptions>(StartOptions{.may_lack = true});
  AddStartOptions(app, begin.get());
  return [options, form, ranks_per_node, begin] {
    LoadedRun start = LoadForTraining(*options, *begin);
    const Config& config = start.config;
    std::vector<Finding> findings{
        {"configuration", State::kGood, "digest " + ConfigDigest(config)}};
    const std::shared_ptr<Backend> backend = OpenDevice(config, &findings);
    const int on_host = *ranks_per_node > 0 ? *ranks_per_node : form->ranks;
    const RankPlaces places{.ranks = form->ranks,
                            .ranks_on_host = std::min(on_host, form->ranks),
                            .backend = backend.get()};
    std::ranges::copy(Preflight(config, places, std::move(start.initial)).findings,
                      std::back_inserter(findings));
    AddLack(start.lacks, &findings);
    Print(findings, form->json);
    const auto failed = std::ranges::find(findings, State::kFailed, &Finding::state);
    return failed == findings.end() ? ExitCode::kDone : failed->code;
  };
}

}  // namespace syntra
