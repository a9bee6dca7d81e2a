// SPDX-License-Identifier: Apache-2.0
// What `plan --nodes` prints of forecasts (plan/forecast.h): text, JSON and a picture, always with
// the figures that they follow from.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "plan/forecast.h"

namespace syntra {

std::string ForecastText(const RunForecast& forecast);

// One line for each layout.
std::string SweepText(std::span<const RunForecast> forecasts);

Json ForecastJson(const RunForecast& forecast);
Json ClusterJson(const Cluster& cluster);

// The efficiency of each model's forecasts against GPUs or ranks, those that do not fit into memory
// left out.
std::string EfficiencySvg(std::span<const RunForecast> forecasts);

}  // namespace syntra
