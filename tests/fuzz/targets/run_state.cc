// SPDX-License-Identifier: Apache-2.0
// What a checkpoint's attributes keep of a run: what is restored is the same once written, and can
// be worked with.
#include "fuzz/target.h"
#include "run/loss_spikes.h"
#include "run/rollbacks.h"
#include "run/skipped_steps.h"

namespace syntra {
namespace {

// Whether the text is taken; it is then the one that would be written.
template <typename State>
bool Restores(State* state, std::string_view text) {
  try {
    state->Restore(text);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kCheckpoint) throw;
    return false;
  }
  const std::string written = state->ToText();
  state->Restore(written);
  SYNTRA_CHECK(state->ToText() == written, "{}", written);
  return true;
}

void Run(std::string_view input) {
  bool restored = false;
  Rollbacks rollbacks;
  if (Restores(&rollbacks, input)) {
    restored = true;
    SYNTRA_CHECK(rollbacks.BatchAt(0) >= 0);
    for (const int64_t step : {int64_t{10}, int64_t{1} << 40}) {
      SYNTRA_CHECK(rollbacks.BatchAt(step) >= step);
    }
  }
  SkippedSteps skipped(1000);
  if (Restores(&skipped, input)) {
    restored = true;
    skipped.Count(10, true);
  }
  LossSpikes spikes;
  if (Restores(&spikes, input)) {
    restored = true;
    for (const double loss : {0.0, 1e308, -1e308, 2.5}) spikes.Add(loss);
    Restores(&spikes, spikes.ToText());
  }
  if (!restored) Fail(ExitCode::kCheckpoint, "none of them");
}

std::vector<std::string> Seeds() {
  std::string losses = "9.5";
  for (int i = 0; i < 30; ++i) losses += fmt::format(" {}", 9.5 - i * 0.01);
  return {"", "12-10 15-13", "3 5 99", losses};
}

}  // namespace

const Target fuzz_run_state = {.name = "run_state",
                               .refusals = {ExitCode::kCheckpoint},
                               .run = Run,
                               .seeds = Seeds,
                               .tokens = {" ", "-", "9223372036854775807-0", "9223372036854775807",
                                          "1e308", "-1e308", "nan", "inf"},
                               .mutations = 2000};

}  // namespace syntra
