// SPDX-License-Identifier: Apache-2.0
// Predictions of `plan --nodes` as text, as JSON and as a picture, always with the figures that
// they follow from.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "cli/scaling_points.h"

namespace syntra {

std::string PredictionText(const ScalingPoint& point);
// One line for each layout.
std::string SweepText(std::span<const ScalingPoint> points);

Json PredictionJson(const ScalingPoint& point);
Json ClusterJson(const Cluster& cluster);

// The efficiency of each model's points against GPUs or ranks, those that do not fit into memory
// left out.
std::string EfficiencySvg(std::span<const ScalingPoint> points);

}  // namespace syntra
